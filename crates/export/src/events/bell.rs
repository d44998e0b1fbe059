//! Wakes the reader of events, which sleeps when there is nothing to read.
//!
//! The reader announces that it is about to sleep, and then looks for events once more. A shard publishes
//! events, and then checks whether the reader is about to sleep. Each of them executes a full fence between
//! its two steps. So at least one of them sees what the other has done, and the reader never sleeps while
//! there are events (Dekker's argument). While the reader is busy, the bell costs a shard only a fence and
//! the reading of a flag in each pass.
//!
//! A reader can also nap while events come in. During a nap, a shard wakes the reader only when a ring
//! fills up. A nap needs no fence, because a shard that misses the beginning of a nap rings the bell in its
//! next pass.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::thread::{self, Thread};
use std::time::Duration;

/// Wakes the one thread that reads events.
#[derive(Debug, Default)]
pub struct Bell {
    /// [`AWAKE`], [`NAPS`] or [`ASLEEP`]. The last two also mean that the reader is about to nap or to sleep.
    rest: AtomicU8,
    reader: OnceLock<Thread>,
}

impl Bell {
    /// Sleeps until a shard rings the bell. Does not sleep if there is `something` to do. Only one
    /// thread may call this function.
    pub fn sleep_unless(&self, something: impl FnOnce() -> bool) {
        self.reader.get_or_init(thread::current);
        // A shard that sees this value also sees which thread to wake.
        self.rest.store(ASLEEP, Ordering::Release);
        fence(Ordering::SeqCst);
        if something() {
            self.rest.store(AWAKE, Ordering::Relaxed);
        }
        while self.rest.load(Ordering::Acquire) == ASLEEP {
            thread::park();
        }
    }

    /// Naps for at most `most`, or until a shard rings the bell because its ring fills up. Only one thread
    /// may call this function.
    pub fn nap(&self, most: Duration) {
        self.reader.get_or_init(thread::current);
        self.rest.store(NAPS, Ordering::Release);
        thread::park_timeout(most);
        self.rest.store(AWAKE, Ordering::Relaxed);
    }

    /// Wakes the reader if it sleeps, or if it naps and a ring `fills_up`.
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
        // If several shards ring, only one of them wakes the reader.
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
