//! A command that runs under dashpot: `run -- CMD` and `inject … -- CMD`.
//!
//! Its exit status is ours. Failures to start it have the codes that shells, env and timeout give
//! them. It ends with dashpot, however that ends.

use std::env::ArgsOs;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ExitCode, ExitStatus};

use dashpot_export::complain;
use rustix::process::{
    Pid, Signal as UnixSignal, getppid, kill_process, set_parent_process_death_signal,
};
use tokio::process::{Child, Command};

use super::signals::{ENDS, Signals, USERS};

/// dashpot itself failed.
pub(crate) const FAILED: u8 = 125;
/// The command was found, and cannot be run.
const CANNOT_RUN: u8 = 126;
/// There is no such command.
const NOT_FOUND: u8 = 127;
/// What shells add to the number of the signal that ended a command.
const SIGNAL_BASE: i32 = 128;

/// The name by which dashpot starts itself to become the command.
const BECOMES: &str = "dashpot-becomes-command";

/// The signals that are passed on to the command, caught from now on.
pub(crate) fn passed_on() -> io::Result<Signals> {
    Signals::catch(ENDS.into_iter().chain(USERS))
}

/// Runs a command to its end.
pub(crate) async fn run_child(command: &[OsString]) -> io::Result<ExitCode> {
    run_with(command, &[], &mut passed_on()?).await
}

/// Runs a command to its end, with variables of its own. Signals that would end dashpot are passed on to it, so that there is
/// time to clean up after it.
pub(crate) async fn run_with(
    command: &[OsString],
    variables: &[(String, String)],
    signals: &mut Signals,
) -> io::Result<ExitCode> {
    let child = Command::new("/proc/self/exe")
        .arg0(BECOMES)
        .arg(std::process::id().to_string())
        .args(command)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .spawn()?;
    wait(child, signals).await.map(exit_code)
}

/// Becomes the command, if dashpot was started by [`run_with`] for that; returns what went wrong.
///
/// A command that outlives its dashpot, killed by a signal that cannot be caught, would go on
/// without its disks. The kernel ends it then, but only if the process itself asks for that, after
/// it was forked: so dashpot is started first, asks, and makes way for the command.
pub(crate) fn become_command() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    if words.next()? != BECOMES {
        return None;
    }
    let parent = words.next()?;
    let program = words.next()?;
    Some(ExitCode::from(exec(&parent, &program, words)))
}

fn exec(parent: &OsStr, program: &OsStr, arguments: ArgsOs) -> u8 {
    if let Err(error) = set_parent_process_death_signal(Some(UnixSignal::KILL)) {
        complain(format_args!("dashpot: cannot follow its end: {error}"));
        return FAILED;
    }
    // A parent that had ended by then sends no signal any more.
    let is_parent = |pid: Pid| parent == pid.as_raw_nonzero().to_string().as_str();
    if !getppid().is_some_and(is_parent) {
        return FAILED;
    }
    let error = std::process::Command::new(program).args(arguments).exec();
    let program = program.to_string_lossy();
    complain(format_args!("dashpot: {program}: {error}"));
    match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    }
}

async fn wait(mut child: Child, signals: &mut Signals) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status,
            signal = signals.next() => pass_on(&child, signal),
        }
    }
}

fn pass_on(child: &Child, signal: UnixSignal) {
    // A terminal has sent Ctrl-C and Ctrl-\ to the command as well.
    let of_terminal = matches!(signal, UnixSignal::INT | UnixSignal::QUIT);
    if of_terminal && io::stdin().is_terminal() {
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
