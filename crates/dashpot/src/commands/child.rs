//! A command that runs under dashpot: `run -- CMD` and `inject … -- CMD`.
//!
//! Its exit status is ours. Failures to start it have the codes that shells, env and timeout give
//! them.

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use rustix::process::{Pid, Signal as UnixSignal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// dashpot itself failed.
pub(crate) const FAILED: u8 = 125;
/// The command was found, and cannot be run.
const CANNOT_RUN: u8 = 126;
/// There is no such command.
const NOT_FOUND: u8 = 127;
/// What shells add to the number of the signal that ended a command.
const SIGNAL_BASE: i32 = 128;

/// Runs a command to its end. Signals that end dashpot are passed on to it, so that there is time
/// to clean up after it.
pub(crate) async fn run_child(
    command: &[OsString],
    variables: &[(String, String)],
) -> io::Result<ExitCode> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut signals = Passed::new()?;
    let spawned = Command::new(program)
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .spawn();
    match spawned {
        Ok(child) => wait(child, &mut signals).await.map(exit_code),
        Err(error) => {
            eprintln!("dashpot: {}: {error}", program.to_string_lossy());
            Ok(ExitCode::from(match error.kind() {
                ErrorKind::NotFound => NOT_FOUND,
                _ => CANNOT_RUN,
            }))
        }
    }
}

async fn wait(mut child: Child, signals: &mut Passed) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status,
            signal = signals.next() => pass_on(&child, signal),
        }
    }
}

fn pass_on(child: &Child, signal: UnixSignal) {
    // A terminal has sent Ctrl-C to the command as well.
    if signal == UnixSignal::INT && io::stdin().is_terminal() {
        return;
    }
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        // If it has just ended, the loop is about to see that.
        let _ = kill_process(pid, signal);
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let signalled = status.signal().map(|signal| SIGNAL_BASE + signal);
    let code = status.code().or(signalled).unwrap_or(i32::from(FAILED));
    ExitCode::from(u8::try_from(code).unwrap_or(FAILED))
}

/// The signals that are passed on.
struct Passed {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Passed {
    fn new() -> io::Result<Passed> {
        Ok(Passed {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> UnixSignal {
        tokio::select! {
            _ = self.interrupt.recv() => UnixSignal::INT,
            _ = self.terminate.recv() => UnixSignal::TERM,
            _ = self.hang_up.recv() => UnixSignal::HUP,
        }
    }
}
