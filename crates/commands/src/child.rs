//! A command that runs under dashpot: `run -- CMD` and `inject … -- CMD`.
//!
//! dashpot's exit status is the command's. If the command cannot start, dashpot's exit status is 126 or 127,
//! like that of shells, env and timeout. However dashpot ends, the command ends with it, unless `--on-loss` says otherwise.

use std::env::ArgsOs;
use std::ffi::{OsStr, OsString};
use std::future::pending;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ExitCode, ExitStatus};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use dashpot_export::complain;
use rustix::process::{
    Pid, Signal as UnixSignal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper,
    set_parent_process_death_signal,
};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::program::{Program, filtered};
use crate::signals::{ENDS, Signals, USERS};

/// The exit status if dashpot itself failed.
pub const FAILED: u8 = 125;
/// The exit status if the command exists but cannot be run.
const CANNOT_RUN: u8 = 126;
/// The exit status if there is no such command.
const NOT_FOUND: u8 = 127;
/// If a signal ended a command, the exit status is the number of the signal plus this number, as in shells.
const SIGNAL_BASE: i32 = 128;

/// How long a program may take to end after a signal before dashpot prints which of the program's calls are
/// held.
const PATIENCE: Duration = Duration::from_millis(300);

/// The name by which dashpot starts itself to become the command.
const BECOMES: &str = "dashpot-becomes-command";
/// An argument for the process that becomes the command. It tells that process to end when dashpot ends.
const DIES_ALONG: &str = "dies-along";

/// Begins to catch the signals that dashpot passes on to the command.
pub(crate) fn passed_on() -> io::Result<Signals> {
    Signals::catch(ENDS.into_iter().chain(USERS))
}

/// Runs a command until the command ends. Returns its exit status.
pub(crate) async fn run_child(command: &[OsString]) -> io::Result<u8> {
    run_with(command, &[], None, &mut passed_on()?, &Launcher::new()?).await
}

/// A thread that starts commands. A command inherits the flags of the thread that starts it, and must not
/// inherit `PR_SET_IO_FLUSHER`. This thread must outlive the commands: if it ended, the kernel would take
/// that for the end of dashpot, and kill the commands.
#[derive(Debug)]
pub(crate) struct Launcher(mpsc::Sender<Box<dyn FnOnce() + Send>>);

impl Launcher {
    /// Starts the thread, and waits until it has begun. A thread maps memory when it starts, and the kernel
    /// refuses to map more once dashpot has locked its memory and given up root.
    pub(crate) fn new() -> io::Result<Launcher> {
        let (orders, ordered) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let begun = Arc::new(Barrier::new(2));
        let begins = Arc::clone(&begun);
        let launch = move || {
            begins.wait();
            ordered.into_iter().for_each(|order| order());
        };
        thread::Builder::new()
            .name("launcher".to_owned())
            .spawn(launch)?;
        begun.wait();
        Ok(Launcher(orders))
    }

    async fn spawn(&self, mut command: Command) -> io::Result<Child> {
        let (answer, answered) = oneshot::channel();
        let runtime = Handle::current();
        let order = move || {
            let _entered = runtime.enter();
            drop(answer.send(command.spawn()));
        };
        // If this fails, the thread is gone, and `answered` returns an error.
        let _ = self.0.send(Box::new(order));
        answered.await.map_err(io::Error::other)?
    }
}

/// Runs a command, with additional variables, until it ends. If there is a `program`, dashpot receives the
/// command's calls. If a signal that would end dashpot comes, passes the signal on to the command instead, so
/// that dashpot can clean up afterwards. Returns the command's exit status.
pub(crate) async fn run_with(
    command: &[OsString],
    variables: &[(String, String)],
    program: Option<&Program>,
    signals: &mut Signals,
    launcher: &Launcher,
) -> io::Result<u8> {
    let mut becomes = Command::new("/proc/self/exe");
    becomes
        .arg0(BECOMES)
        .arg(std::process::id().to_string())
        .arg(program.map_or(OsStr::new(""), |it| it.socket().as_os_str()))
        .arg(program.map(Program::types).unwrap_or_default())
        .arg(match program {
            None => DIES_ALONG,
            // The keeper decides what becomes of the program, and it must find the program's children, too.
            Some(_) => "",
        })
        .args(command)
        .envs(variables.iter().map(|(name, value)| (name, value)));
    let Some(program) = program else {
        let child = launcher.spawn(becomes).await?;
        return wait(child, signals).await.map(exit_code);
    };
    adopt_orphans()?;
    let child = launcher.spawn(becomes).await?;
    wait_and_reap(pid_of(&child), signals, Some(program)).await
}

/// Makes the kernel give the orphans of a program to dashpot. Where Yama restricts ptrace(2), an unprivileged
/// process may read only the memory of its descendants. A process that the program leaves running as a daemon
/// would otherwise become a child of the host's first process, and dashpot could not read its memory.
fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Becomes the command, if [`run_with`] started this process for that. Returns only on failure.
///
/// If a signal that dashpot cannot catch kills dashpot, the kernel should also end the command, which would
/// otherwise go on without its disks. The kernel ends a process together with its parent only if the process
/// itself has asked for that after its fork. So dashpot starts a second dashpot, which asks the kernel, and
/// then becomes the command.
pub fn become_command() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    if words.next()? != BECOMES {
        return None;
    }
    let parent = words.next()?;
    let socket = words.next()?;
    let types = words.next()?;
    let dies_along = words.next()? == DIES_ALONG;
    let program = words.next()?;
    if dies_along && let Err(code) = die_along(&parent) {
        return Some(ExitCode::from(code));
    }
    if !socket.is_empty()
        && let Err(error) = filtered::install(&socket, &types)
    {
        complain(format_args!("dashpot: {error:#}"));
        return Some(ExitCode::from(FAILED));
    }
    Some(ExitCode::from(exec(&program, words)))
}

/// Makes the kernel end this process when its parent ends. Fails if the parent has ended already.
fn die_along(parent: &OsStr) -> Result<(), u8> {
    if let Err(error) = set_parent_process_death_signal(Some(UnixSignal::KILL)) {
        complain(format_args!(
            "dashpot: cannot make the command end with dashpot: {error}"
        ));
        return Err(FAILED);
    }
    // If the parent ended before this request, the kernel sends no signal.
    let is_parent = |pid: Pid| parent == pid.as_raw_nonzero().to_string().as_str();
    if !getppid().is_some_and(is_parent) {
        return Err(FAILED);
    }
    Ok(())
}

fn exec(program: &OsStr, arguments: ArgsOs) -> u8 {
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
            signal = signals.next() => pass_on(pid_of(&child), signal),
        }
    }
}

/// Waits for the end of a child, passes signals on to it, and reaps all other children that end.
pub(crate) async fn wait_and_reap(
    child: Option<Pid>,
    signals: &mut Signals,
    program: Option<&Program>,
) -> io::Result<u8> {
    let mut ends = signal(SignalKind::child())?;
    let mut unheard = None;
    loop {
        if let Some(status) = reap(child)? {
            return Ok(exit_code(status));
        }
        tokio::select! {
            _ = ends.recv() => {}
            signal = signals.next() => {
                pass_on(child, signal);
                unheard = ENDS.contains(&signal).then(|| Instant::now() + PATIENCE);
            }
            () = until(unheard) => {
                unheard = None;
                if let Some(program) = program {
                    program.say_what_holds(PATIENCE).await;
                }
            }
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

/// Reaps children that have ended, one after the other, until no more are left or `awaited` is among them.
/// Returns the status of `awaited` if it was reaped.
fn reap(awaited: Option<Pid>) -> io::Result<Option<ExitStatus>> {
    while let Some((pid, status)) = rustix::process::wait(WaitOptions::NOHANG)? {
        if Some(pid) == awaited {
            return Ok(Some(ExitStatus::from_raw(status.as_raw())));
        }
    }
    Ok(None)
}

fn pid_of(child: &Child) -> Option<Pid> {
    let id = child.id()?;
    Pid::from_raw(i32::try_from(id).ok()?)
}

/// Passes a signal on to a child.
fn pass_on(child: Option<Pid>, signal: UnixSignal) {
    // The terminal has already sent Ctrl-C and Ctrl-\ to the command, which must not get them twice.
    let of_terminal = matches!(signal, UnixSignal::INT | UnixSignal::QUIT);
    if of_terminal && io::stdin().is_terminal() {
        return;
    }
    if let Some(pid) = child {
        // If the command has just ended, `wait_and_reap` will notice.
        let _ = kill_process(pid, signal);
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let signalled = status.signal().map(|signal| SIGNAL_BASE + signal);
    let code = status.code().or(signalled).unwrap_or(i32::from(FAILED));
    u8::try_from(code).unwrap_or(FAILED)
}
