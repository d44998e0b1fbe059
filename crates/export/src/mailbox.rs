//! A mailbox: a queue, and a descriptor that becomes readable when the queue is not empty. Other threads use
//! the mailbox to reach a thread that waits in a single epoll call. A mailbox is for control and for handing
//! connections over, not for I/O.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

#[derive(Debug)]
pub(crate) struct Mailbox<M> {
    queue: Mutex<Vec<M>>,
    bell: OwnedFd,
    closed: AtomicBool,
}

impl<M> Mailbox<M> {
    pub(crate) fn new() -> io::Result<Mailbox<M>> {
        Ok(Mailbox {
            queue: Mutex::new(Vec::new()),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            closed: AtomicBool::new(false),
        })
    }

    /// Leaves a message, or gives the message back if the reader is gone.
    pub(crate) fn send(&self, message: M) -> Result<(), M> {
        let mut queue = self.queue();
        if self.closed.load(Ordering::Acquire) {
            return Err(message);
        }
        queue.push(message);
        drop(queue);
        // The write fails only if the counter is full, and then the reader has already been woken.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        Ok(())
    }

    /// Takes all messages that have arrived since the last call.
    pub(crate) fn take(&self) -> Vec<M> {
        let mut rings = [0; 8];
        // This read fails if the counter is zero. The queue is emptied in any case.
        let _ = rustix::io::read(&self.bell, &mut rings);
        std::mem::take(&mut *self.queue())
    }

    /// Marks the reader as gone. Drops the queued messages, so that callers learn that no answer
    /// will come.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        self.closed.store(true, Ordering::Release);
        queue.clear();
    }

    /// Whether the reader is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Locks the queue. The queue is sound even after a panic, because no code that can panic holds its lock.
    fn queue(&self) -> MutexGuard<'_, Vec<M>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> AsFd for Mailbox<M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
