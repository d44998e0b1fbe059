//! `--exit-with-parent`: notices when the process that started this process ends.
//!
//! A descriptor of the parent becomes readable when the parent ends. The kernel's own signal for the end of a
//! parent, PR_SET_PDEATHSIG, already comes when the *thread* that started this process ends, and a test
//! runner may start this process from a thread that ends early.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{PidfdFlags, Signal, getppid, pidfd_open};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

/// The parent process. Its end counts as a SIGTERM, and, after [`GRACE`], as a SIGKILL.
#[derive(Debug)]
pub(crate) enum Parent {
    Lives(oneshot::Receiver<()>),
    Ended(Pin<Box<Sleep>>),
    Forgotten,
}

impl Parent {
    /// Begins to watch the parent.
    pub(crate) fn watch() -> anyhow::Result<Parent> {
        let Some(pid) = getppid() else {
            bail!(
                "--exit-with-parent: the parent is in another PID namespace: leave the option out"
            );
        };
        let cannot = "--exit-with-parent: cannot watch the parent";
        let process = pidfd_open(pid, PidfdFlags::empty()).context(cannot)?;
        // The parent may have ended before `pidfd_open`, and its id may now belong to another process.
        if getppid() != Some(pid) {
            bail!("--exit-with-parent: the parent has ended");
        }
        let (ended, end) = oneshot::channel();
        // A thread waits for the parent, because the async runtime cannot watch a descriptor without
        // `unsafe`.
        let wait = move || {
            wait_for(&process);
            // If the receiver is gone, this process is ending anyway.
            let _ = ended.send(());
        };
        let thread = thread::Builder::new().name("parent".to_owned());
        thread.spawn(wait).context(cannot)?;
        Ok(Parent::Lives(end))
    }

    /// Returns SIGTERM when the parent has ended, and SIGKILL if this process still lives after [`GRACE`].
    pub(crate) fn poll_signal(&mut self, context: &mut Context<'_>) -> Poll<Signal> {
        match self {
            Parent::Lives(end) => {
                // An error means that the thread has failed. Treat it as the parent's end, because this
                // process must not go on without watching its parent.
                let _ended = ready!(Pin::new(end).poll(context));
                *self = Parent::Ended(Box::pin(sleep(GRACE)));
                Poll::Ready(Signal::TERM)
            }
            Parent::Ended(grace) => {
                ready!(grace.as_mut().poll(context));
                *self = Parent::Forgotten;
                Poll::Ready(Signal::KILL)
            }
            Parent::Forgotten => Poll::Pending,
        }
    }
}

/// Returns when the process has ended, or if this thread cannot wait for it.
fn wait_for(process: &OwnedFd) {
    let _ = retry_on_intr(|| poll(&mut [PollFd::new(process, PollFlags::IN)], None));
}

/// How long the command, or the I/O that rules hold, may take to end in an orderly way after the parent has
/// ended.
const GRACE: Duration = Duration::from_secs(5);
