//! Data that is about to be sent is fetched into the processor's cache while its deadline is waited
//! for.
//!
//! A burst of held reads is due at one moment, and each copy from cold memory makes those behind it
//! late. The time before the deadline that would be spun is there to be used.

use std::hint::black_box;

use dashpot_engine::{Duration, Engine, Instant};

use crate::clock;
use crate::frontend::boundary::Operation;
use crate::shard::Disk;
use crate::shard::slots::{Slot, Slots};

/// Reads what the zios will send that are due at `until` or soon after, as far as it fits into a
/// cache, and no longer than until then.
pub(crate) fn fetch_next(engine: &Engine, slots: &Slots, disks: &[Disk], until: Instant) {
    let mut room = CACHE;
    for slot in engine.due_by(until + BURST).filter_map(|id| slots.get(id)) {
        let length = u64::from(slot.request.length);
        if length > room || clock::now() >= until {
            return;
        }
        if fetch(slot, disks) {
            room -= length;
        }
    }
}

/// False if there is nothing to fetch.
fn fetch(slot: &Slot, disks: &[Disk]) -> bool {
    let store = &disks[slot.disk.0 as usize].store;
    let reads = matches!(slot.request.operation, Operation::Read);
    if !reads || !store.reads_at_reply() {
        return false;
    }
    for slice in store.slices(slot.request.offset, u64::from(slot.request.length)) {
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
