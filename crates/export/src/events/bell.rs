//! Wakes a reader that has nothing to read, and nobody else.
//!
//! The reader says that it is about to sleep, and then looks once more; a shard publishes events, and
//! then looks whether the reader is about to sleep. With a full fence between the two halves on both
//! sides, one of them sees what the other has done: no event is slept over (Dekker's argument). While
//! there is something to read a shard reads one flag per pass, and a daemon that is idle sleeps.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::{self, Thread};

/// Wakes the one thread that reads events.
#[derive(Debug, Default)]
pub struct Bell {
    /// Whether the reader sleeps, or is about to.
    armed: AtomicBool,
    reader: OnceLock<Thread>,
}

impl Bell {
    /// Sleeps until the bell is rung, unless there is `something` to do. Always to be called by the
    /// same thread.
    pub fn sleep_unless(&self, something: impl FnOnce() -> bool) {
        self.reader.get_or_init(thread::current);
        // Who sees this sees the thread to wake, too.
        self.armed.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        if something() {
            self.armed.store(false, Ordering::Relaxed);
        }
        while self.armed.load(Ordering::Acquire) {
            thread::park();
        }
    }

    /// Wakes the reader if it sleeps.
    #[inline]
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.armed.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Of several shards one wakes it.
        if self.armed.swap(false, Ordering::AcqRel)
            && let Some(reader) = self.reader.get()
        {
            reader.unpark();
        }
    }
}
