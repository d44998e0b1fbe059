//! While a shard waits for a deadline, it loads into the processor's cache the data that it will send.
//!
//! A burst of held reads falls due at the same moment, and each copy from cold memory delays the replies
//! after it. Prefetching costs nothing, because otherwise the shard would only spin until the deadline.

use std::hint::black_box;

use dashpot_engine::{Duration, Engine, Instant};

use super::exports::Stores;
use super::slots::{Slot, Slots};
use crate::clock;
use crate::frontend::boundary::Operation;

/// Reads the data of the zios that are due at `until` or soon after, to load it into the cache. Stops at
/// `until`, or before a zio whose data would exceed [`CACHE`].
pub(super) fn prefetch(engine: &Engine, slots: &Slots, stores: &Stores, until: Instant) {
    let mut room = CACHE;
    for slot in engine.due_by(until + BURST).filter_map(|id| slots.get(id)) {
        let length = u64::from(slot.request().length);
        if length > room || clock::now() >= until {
            return;
        }
        if fetch(slot, stores) {
            room -= length;
        }
    }
}

/// Reads the data of one zio, to load it into the cache. Returns false if the zio has no data to load.
fn fetch(slot: &Slot, stores: &Stores) -> bool {
    let request = slot.request();
    let store = stores.of(slot.device());
    let Some(store) = store.filter(|store| store.reads_at_reply()) else {
        return false;
    };
    if request.operation != Operation::Read {
        return false;
    }
    for slice in store.slices(request.offset, u64::from(request.length)) {
        slice.iter().step_by(LINE).for_each(|byte| {
            black_box(*byte);
        });
    }
    true
}

/// Zios that were requested together fall due within about this time of each other, because the shard needs
/// this long to admit them all.
const BURST: Duration = Duration::from_micros(100);
/// The largest number of bytes to load. It is less than the second-level cache of any server processor.
const CACHE: u64 = 512 << 10;
/// The length of a cache line. Every processor loads at least this many bytes at once.
const LINE: usize = 64;
