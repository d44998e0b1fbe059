//! The collector turns the shards' events into counts by client and by size, into histograms of
//! each second, and into a memory of the last finished zios.
//!
//! [`Collected`] is plain data, to which one record at a time is added. A thread empties the rings into
//! [`Collected`] every [`NAP`] while there is traffic, and earlier when a ring fills up. The thread sleeps
//! when there is no traffic. A request for figures first makes the shards send their records, and then
//! empties the rings itself, so that the answer has every zio that had finished before the request.

mod clients;
mod collected;
mod open;
mod recent;
mod seconds;
mod tally;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use dashpot_export::{Bell, DeviceId, Drops, EventReader};

pub(crate) use collected::{Collected, Part};
pub(crate) use recent::{Copied, Kept};
pub(crate) use seconds::{SecondCell, SecondCells, Steps};
pub(crate) use tally::Tally;

/// While there is traffic, the collector empties the rings at least this often.
const NAP: Duration = Duration::from_millis(50);

/// Collects the events of a server in a thread of its own. Dropping the collector ends the thread.
pub struct Collector {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    bell: Arc<Bell>,
    over: AtomicBool,
}

struct State {
    reader: EventReader,
    collected: Collected,
    /// The dropped events of each shard, as the shard last reported them.
    drops: Vec<Drops>,
}

/// A view of a collector at one moment.
pub struct View<'a> {
    pub collected: &'a Collected,
    drops: &'a [Drops],
}

impl Collector {
    /// Starts the thread that collects the events of this many devices, and remembers the last finished
    /// zios in at most `bytes` bytes. Fails if the thread cannot start.
    pub fn start(reader: EventReader, devices: usize, bytes: u64) -> io::Result<Collector> {
        let bell = reader.bell();
        let state = Mutex::new(State {
            reader,
            collected: Collected::new(devices, bytes)?,
            drops: Vec::new(),
        });
        let over = AtomicBool::new(false);
        let shared = Arc::new(Shared { state, bell, over });
        let of_thread = Arc::clone(&shared);
        let builder = Builder::new().name("dashpot-events".to_owned());
        let thread = builder.spawn(move || of_thread.run())?;
        Ok(Collector {
            shared,
            thread: Some(thread),
        })
    }

    /// How much memory the remembered zios take at most.
    pub(crate) fn remembers_bytes(&self) -> u64 {
        self.shared.lock().collected.recent().bytes_max()
    }

    /// Runs `look` on everything that the shards have sent. `drops` has the latest counts of dropped events
    /// of some shards.
    pub fn look<T>(&self, drops: Vec<(usize, Drops)>, look: impl FnOnce(&View<'_>) -> T) -> T {
        let mut state = self.shared.lock();
        for (shard, drops) in drops {
            if state.drops.len() <= shard {
                state.drops.resize_with(shard + 1, Drops::default);
            }
            // Of two concurrent calls, the call with the older counts may come last. Its counts must not
            // replace the newer ones.
            if drops.total(None) >= state.drops[shard].total(None) {
                state.drops[shard] = drops;
            }
        }
        state.drain();
        state.collected.settle();
        look(&View {
            collected: &state.collected,
            drops: &state.drops,
        })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.shared.bell.ring(|| true);
        if let Some(thread) = self.thread.take() {
            // The thread may be napping.
            thread.thread().unpark();
            // A thread that has panicked has printed its message.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        while !self.is_over() {
            if self.lock().drain() {
                self.bell.nap(NAP);
            } else {
                let something = || self.is_over() || !self.lock().reader.is_empty();
                self.bell.sleep_unless(something);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Locks the state. A panic in a caller's `look` does not damage the state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Empties the rings. Returns whether there were any records.
    fn drain(&mut self) -> bool {
        let collected = &mut self.collected;
        self.reader.drain(|record| collected.take(record))
    }
}

impl View<'_> {
    /// How many events of a device, or of all devices, were dropped since the start.
    pub fn dropped(&self, device: Option<DeviceId>) -> u64 {
        self.drops.iter().map(|drops| drops.total(device)).sum()
    }

    /// The dropped events of a device, or of all devices, by second. The seconds are in no particular order,
    /// and a second may occur several times.
    pub fn dropped_by_second(&self, device: Option<DeviceId>) -> impl Iterator<Item = (u64, u64)> {
        self.drops
            .iter()
            .flat_map(move |drops| drops.seconds(device))
    }
}
