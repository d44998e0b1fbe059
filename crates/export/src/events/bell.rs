//! Wakes a reader that sleeps because it has nothing to read.
//!
//! The reader says that it is about to sleep, and then looks once more; a shard publishes events, and
//! then looks whether the reader is about to sleep. With a full fence between the two halves on both
//! sides, one of them sees what the other has done, so the reader sleeps over no event (Dekker's
//! argument). While there is something to read, a shard reads one flag per pass. An idle daemon sleeps.
//!
//! A reader that takes a nap while events come in is woken only when a ring fills up. That needs no
//! fence: a shard that misses the beginning of a nap rings in the next pass.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::thread::{self, Thread};
use std::time::Duration;

/// Wakes the one thread that reads events.
#[derive(Debug, Default)]
pub struct Bell {
    /// [`AWAKE`], or whether the reader sleeps or takes a nap, or is about to.
    rest: AtomicU8,
    reader: OnceLock<Thread>,
}

impl Bell {
    /// Sleeps until the bell is rung, unless there is `something` to do. Always to be called by the
    /// same thread.
    pub fn sleep_unless(&self, something: impl FnOnce() -> bool) {
        self.reader.get_or_init(thread::current);
        // A shard that sees this sees the thread to wake, too.
        self.rest.store(ASLEEP, Ordering::Release);
        fence(Ordering::SeqCst);
        if something() {
            self.rest.store(AWAKE, Ordering::Relaxed);
        }
        while self.rest.load(Ordering::Acquire) == ASLEEP {
            thread::park();
        }
    }

    /// Rests for so long at most, or until the bell is rung because a ring fills up. Always to be
    /// called by the same thread.
    pub fn nap(&self, most: Duration) {
        self.reader.get_or_init(thread::current);
        self.rest.store(NAPS, Ordering::Release);
        thread::park_timeout(most);
        self.rest.store(AWAKE, Ordering::Relaxed);
    }

    /// Wakes the reader if it sleeps, or takes a nap while a ring `fills_up`.
    #[inline]
    pub fn ring(&self, fills_up: impl FnOnce() -> bool) {
        fence(Ordering::SeqCst);
        match self.rest.load(Ordering::Relaxed) {
            ASLEEP => self.wake(),
            NAPS if fills_up() => self.wake(),
            _ => {}
        }
    }

    #[cold]
    fn wake(&self) {
        // Of several shards one wakes it.
        if self.rest.swap(AWAKE, Ordering::AcqRel) != AWAKE
            && let Some(reader) = self.reader.get()
        {
            reader.unpark();
        }
    }
}

const AWAKE: u8 = 0;
const NAPS: u8 = 1;
const ASLEEP: u8 = 2;
