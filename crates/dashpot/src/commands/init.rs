//! The first process of a container. The kernel makes the orphans of the container its children, and it must
//! reap them. It gets only the signals that it catches.
//!
//! So `dashpot run`, as the entry point of a container, starts a second dashpot, which is an ordinary
//! process. The first dashpot passes signals on to the second, reaps orphans, and ends with the second's exit
//! status.

use std::env::args_os;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use dashpot_export::complain;
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, waitpid};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::child::{FAILED, SIGNAL_BASE, pass_on, passed_on};
use crate::cli::is_run;

/// Becomes the first process of a container, if dashpot was started as that.
pub(crate) fn become_init() -> Option<ExitCode> {
    if getpid() != Pid::INIT || !is_run(args_os()) {
        return None;
    }
    Some(init().unwrap_or_else(|error| {
        complain(format_args!(
            "dashpot: cannot be the first process: {error}"
        ));
        ExitCode::from(FAILED)
    }))
}

fn init() -> io::Result<ExitCode> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = passed_on()?;
        let mut ends = signal(SignalKind::child())?;
        let mut words = args_os();
        let mut command = Command::new("/proc/self/exe");
        command.arg0(words.next().unwrap_or_default()).args(words);
        let id = command.spawn()?.id();
        let dashpot = i32::try_from(id).ok().and_then(Pid::from_raw);
        loop {
            if let Some(code) = reap(dashpot)? {
                return Ok(code);
            }
            tokio::select! {
                _ = ends.recv() => {}
                signal = signals.next() => pass_on(dashpot, signal),
            }
        }
    })
}

/// Reaps the children that have ended. Returns the exit code of dashpot if dashpot has ended.
fn reap(dashpot: Option<Pid>) -> io::Result<Option<ExitCode>> {
    while let Some((pid, status)) = waitpid(None, WaitOptions::NOHANG)? {
        if Some(pid) == dashpot {
            return Ok(Some(exit_code(status)));
        }
    }
    Ok(None)
}

fn exit_code(status: WaitStatus) -> ExitCode {
    let signalled = status
        .terminating_signal()
        .map(|signal| SIGNAL_BASE + signal);
    let code = status.exit_status().or(signalled);
    let code = code.and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(FAILED))
}
