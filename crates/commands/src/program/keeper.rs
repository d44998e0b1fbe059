//! The keeper: a process that holds a copy of the program's listener in case dashpot is killed.
//!
//! Once the last holder of a listener has ended, the kernel fails the calls of the program with ENOSYS, and a
//! database that gets this error from fsync panics. So a second process of dashpot holds the listener, and
//! does nothing else. When dashpot ends, the keeper answers the calls as dashpot has told it to, until the
//! last filtered process has ended. If dashpot and the keeper are both killed, calls fail with ENOSYS, but no
//! call waits for ever.

use std::env::args_os;
use std::io::{self, Read, Write};
use std::num::NonZeroI32;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use clap::ValueEnum;
use dashpot_cli::OnLoss;
use dashpot_sys::seccomp::{Answer, CallId, Listener};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, kill_process};

use super::descriptors::{self, GO, inherited};
use super::ledger::Ledger;
use super::tree::Tree;

/// dashpot's socket to the keeper. When this socket closes, the keeper knows that dashpot has
/// ended.
#[derive(Debug)]
pub(super) struct Keeper(UnixStream);

impl Keeper {
    /// Starts the keeper, and waits until it has the descriptors.
    pub(super) fn start(
        listener: &Listener,
        ledger: &Ledger,
        on_loss: OnLoss,
        program: NonZeroI32,
    ) -> io::Result<Keeper> {
        let (mut near, far) = UnixStream::pair()?;
        let word = on_loss.to_possible_value();
        let far: std::os::fd::OwnedFd = far.into();
        Command::new("/proc/self/exe")
            .arg0(KEEPS)
            .args(word.as_ref().map(|word| word.get_name()))
            .args([program.to_string(), std::process::id().to_string()])
            .env_clear()
            .stdin(Stdio::from(far))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        descriptors::send_listener(&near, listener)?;
        descriptors::send(&near, ledger.as_fd(), 0)?;
        near.read_exact(&mut [0])?;
        Ok(Keeper(near))
    }

    /// A second handle to the same end of the socket.
    pub(super) fn share(&self) -> io::Result<Keeper> {
        self.0.try_clone().map(Keeper)
    }

    /// Tells the keeper to let all calls go on from now on.
    pub(super) fn take_over(&self) {
        // If this fails, the keeper was killed, or has ended because no filtered process was left.
        let _ = (&self.0).write_all(&[GO]);
    }
}

/// Becomes the keeper, if dashpot was started for that.
pub fn become_keeper() -> Option<ExitCode> {
    let mut words = args_os();
    if words.next()? != KEEPS {
        return None;
    }
    let word = words.next().unwrap_or_default();
    let on_loss = OnLoss::from_str(&word.to_string_lossy(), false).unwrap_or(OnLoss::Kill);
    let mut number = || words.next()?.to_string_lossy().parse().ok();
    let tree = Tree::of(number(), number());
    Some(match keep(on_loss, tree) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn keep(on_loss: OnLoss, tree: Tree) -> io::Result<()> {
    // Signals to dashpot's group, such as Ctrl-C, are not for the keeper. `setsid` fails only if the keeper
    // already leads a group of its own. In that case, signals to dashpot's group do not reach the keeper.
    let _ = rustix::process::setsid();
    let mut dashpot = inherited()?;
    let listener = descriptors::receive_listener(&dashpot)?;
    let ledger = Ledger::from_fd(descriptors::receive(&dashpot)?.0)?;
    begin(&listener, &ledger)?;
    dashpot.write_all(&[GO])?;
    let mut keeping = Keeping {
        tree,
        listener,
        on_loss,
        answers: false,
    };
    while keeping.meet(&mut dashpot, &ledger)? {}
    keeping.answer_all()
}

/// Notes and answers the first call, which the process that becomes the program makes for this purpose. From
/// then on the ledger knows a call from which the kernel counts, so the keeper finds also a call that dashpot
/// received and had no time to note. Fails if the process has ended.
fn begin(listener: &Listener, ledger: &Ledger) -> io::Result<()> {
    loop {
        let mut polled = [PollFd::new(listener, PollFlags::IN)];
        retry_on_intr(|| poll(&mut polled, None))?;
        if !polled[0].revents().contains(PollFlags::IN) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(call) = listener.receive()? {
            ledger.note(call.id, call.thread);
            let _ = listener.answer(call.id, Answer::GoOn);
            ledger.erase(call.id);
            return Ok(());
        }
    }
}

struct Keeping {
    /// The processes of the program.
    tree: Tree,
    listener: Listener,
    on_loss: OnLoss,
    /// Whether the keeper answers calls itself.
    answers: bool,
}

impl Keeping {
    /// Waits for dashpot or for a call. Returns false once dashpot or the last filtered process has ended.
    fn meet(&mut self, dashpot: &mut UnixStream, ledger: &Ledger) -> io::Result<bool> {
        let [of_dashpot, of_calls] = self.wait(Some(dashpot))?;
        if !of_dashpot.is_empty() {
            match dashpot.read(&mut [0]) {
                Ok(1..) => (self.on_loss, self.answers) = (OnLoss::Pass, true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => {
                    if self.on_loss == OnLoss::Kill {
                        self.tree.look_for_orphans();
                        self.tree.kill();
                    }
                    self.answer_received(ledger)?;
                    return Ok(false);
                }
            }
        }
        if of_calls.contains(PollFlags::IN) {
            self.answer_next()?;
        }
        Ok(!of_calls.contains(PollFlags::HUP))
    }

    /// Answers calls until no filtered process is left.
    fn answer_all(&mut self) -> io::Result<()> {
        self.answers = true;
        loop {
            let [_, of_calls] = self.wait(None)?;
            if !of_calls.contains(PollFlags::IN) {
                return Ok(());
            }
            self.answer_next()?;
        }
    }

    /// Waits until dashpot has said something or has ended. If the keeper answers calls, a call also ends the
    /// wait.
    fn wait(&mut self, dashpot: Option<&UnixStream>) -> io::Result<[PollFlags; 2]> {
        let wanted = if self.answers {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        let looks = dashpot.is_some() && self.on_loss == OnLoss::Kill;
        let timeout = looks.then_some(BETWEEN_LOOKS);
        let calls = PollFd::new(&self.listener, wanted);
        let mut polled = vec![calls];
        polled.extend(dashpot.map(|dashpot| PollFd::new(dashpot, PollFlags::IN)));
        loop {
            match poll(&mut polled, timeout.as_ref()) {
                Ok(0) => self.tree.look_for_orphans(),
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let of_dashpot = polled.get(1).map(PollFd::revents);
        Ok([
            of_dashpot.unwrap_or(PollFlags::empty()),
            polled[0].revents(),
        ])
    }

    fn answer_next(&self) -> io::Result<()> {
        if let Some(call) = self.listener.receive()? {
            self.answer(call.id, call.thread);
        }
        Ok(())
    }

    /// Answers the calls that dashpot has received. If dashpot has already answered a call, a second answer
    /// does nothing.
    fn answer_received(&self, ledger: &Ledger) -> io::Result<()> {
        for call in ledger.received() {
            self.answer(call.id, call.thread);
        }
        Ok(())
    }

    fn answer(&self, id: CallId, thread: Option<Pid>) {
        let answer = match self.on_loss {
            OnLoss::Pass => Answer::GoOn,
            OnLoss::Fail | OnLoss::Kill => Answer::Fail(Errno::IO),
        };
        if self.on_loss == OnLoss::Kill
            && self.listener.waits(id)
            && let Some(thread) = thread
        {
            // While the call waits, the thread that made the call keeps its id. A signal to the id of a
            // thread goes to the whole process.
            let _ = kill_process(thread, Signal::KILL);
        }
        // A call that no longer waits needs no answer.
        let _ = self.listener.answer(id, answer);
    }
}

/// How often the keeper looks for orphans of the program, if it has to kill them with dashpot.
const BETWEEN_LOOKS: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// The name under which dashpot starts the keeper.
const KEEPS: &str = "dashpot-keeps-calls";
