//! While a shard waits for a deadline, it fetches the data that it is about to send into the
//! processor's cache.
//!
//! A burst of held reads is due at one moment, and each copy from cold memory makes the replies behind
//! it late. The time before the deadline would be spun otherwise.

use std::hint::black_box;

use dashpot_engine::{Duration, Engine, Instant};

use super::exports::Stores;
use super::slots::{Slot, Slots};
use crate::clock;
use crate::frontend::boundary::Operation;

/// Reads what the zios will send that are due at `until` or soon after, as far as it fits into a
/// cache, and no longer than until then.
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

/// False if there is nothing to fetch.
fn fetch(slot: &Slot, stores: &Stores) -> bool {
    let (store, request) = (stores.of(slot.disk()), slot.request());
    if request.operation != Operation::Read || !store.reads_at_reply() {
        return false;
    }
    for slice in store.slices(request.offset, u64::from(request.length)) {
        slice.iter().step_by(LINE).for_each(|byte| {
            black_box(*byte);
        });
    }
    true
}

/// Within which time zios are due that were asked for at once: taking them takes that long.
const BURST: Duration = Duration::from_micros(100);
/// Less than the second-level cache of any server processor.
const CACHE: u64 = 512 << 10;
/// Bytes that are fetched together, on every processor at least.
const LINE: usize = 64;
