//! The first process of a container. In a container, the kernel makes each orphan a child of the first
//! process, which must reap it. The first process receives only the signals that it catches.
//!
//! So `dashpot run`, as the entry point of a container, starts a second dashpot, which is an ordinary
//! process. The first dashpot passes signals on to the second, reaps orphans, and ends with the second's exit
//! status.

use std::env::{ArgsOs, args_os};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use dashpot_export::complain;
use rustix::process::{Pid, getpid};
use tokio::runtime::Builder;

use crate::child::{FAILED, passed_on, wait_and_reap};

/// Becomes the first process of a container, if dashpot was started as that. `is_run` says whether words are those
/// of `run`.
pub fn become_init(is_run: impl Fn(ArgsOs) -> bool) -> Option<ExitCode> {
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
        let mut words = args_os();
        let mut command = Command::new("/proc/self/exe");
        command.arg0(words.next().unwrap_or_default()).args(words);
        let id = command.spawn()?.id();
        let dashpot = i32::try_from(id).ok().and_then(Pid::from_raw);
        wait_and_reap(dashpot, &mut signals, None)
            .await
            .map(ExitCode::from)
    })
}
