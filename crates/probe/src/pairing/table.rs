//! Requests or bios in flight, by disk and sector. Several entries at one place keep their order.

use std::collections::hash_map::{Entry, HashMap, OccupiedEntry};

use foldhash::fast::RandomState;

use crate::device::Number;

/// The place of an entry: a sector of a disk.
pub(super) type Sector = (Number, u64);

/// The most entries that are remembered, enough for 64 queues of 4,096 requests.
const LIMIT: usize = 1 << 18;

/// Stands for no slot.
const NONE: u32 = u32::MAX;

/// A table that can have several entries at one place. The table reuses slots, so it allocates only when it
/// has more entries than ever before.
#[derive(Debug)]
pub(super) struct Table<T> {
    chains: HashMap<Sector, Chain, RandomState>,
    slots: Vec<Slot<T>>,
    free: u32,
    /// Entries whose last event came before this time may have ended unseen.
    doubtful_until_ns: u64,
    /// How many entries the table has given up.
    pub(super) dropped: u64,
}

#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct Slot<T> {
    next: u32,
    entry: Option<(Sector, T)>,
}

/// An entry of the table.
pub(super) trait Seen {
    /// When the entry's last event came.
    fn seen_ns(&self) -> u64;
}

impl<T: Seen> Table<T> {
    pub(super) fn new() -> Table<T> {
        Table {
            chains: HashMap::default(),
            slots: Vec::new(),
            free: NONE,
            doubtful_until_ns: 0,
            dropped: 0,
        }
    }

    /// Makes doubtful all entries whose last event came before `until_ns`. A new entry replaces a doubtful
    /// entry at the same place.
    pub(super) fn doubt(&mut self, until_ns: u64) {
        self.doubtful_until_ns = self.doubtful_until_ns.max(until_ns);
    }

    /// Adds an entry after the other entries at the same place. Doubtful entries at that place are given up.
    pub(super) fn add(&mut self, place: Sector, entry: T) {
        self.drop_doubtful(place);
        let Some(slot) = self.vacant() else {
            self.dropped += 1;
            return;
        };
        self.slots[slot as usize] = Slot {
            next: NONE,
            entry: Some((place, entry)),
        };
        self.chains
            .entry(place)
            .and_modify(|chain| {
                self.slots[chain.last as usize].next = slot;
                chain.last = slot;
            })
            .or_insert(Chain {
                first: slot,
                last: slot,
            });
    }

    /// Takes out the oldest suitable entry at a place.
    pub(super) fn remove(&mut self, place: Sector, will_do: impl Fn(&T) -> bool) -> Option<T> {
        if self.chains.is_empty() {
            return None;
        }
        // The same look-up serves to find the chain, and to remove the chain if it becomes empty.
        let Entry::Occupied(chain) = self.chains.entry(place) else {
            return None;
        };
        let mut before = NONE;
        let mut slot = chain.get().first;
        while slot != NONE {
            let here = &self.slots[slot as usize];
            if here.entry.as_ref().is_some_and(|(_, entry)| will_do(entry)) {
                unlink(&mut self.slots, chain, before, slot);
                return self.release(slot);
            }
            before = slot;
            slot = here.next;
        }
        None
    }

    /// Takes out a suitable entry at any place. This scans all entries.
    pub(super) fn remove_anywhere(&mut self, will_do: impl Fn(&T) -> bool) -> Option<T> {
        let (place, _) = self.entries().find(|(_, entry)| will_do(entry))?;
        self.remove(*place, will_do)
    }

    /// Whether an entry may have ended unseen.
    pub(super) fn is_doubtful(&self, entry: &T) -> bool {
        entry.seen_ns() < self.doubtful_until_ns
    }

    /// Each entry, and whether it is doubtful.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&T, bool)> {
        self.entries()
            .map(|(_, entry)| (entry, self.is_doubtful(entry)))
    }

    /// Gives up a disk's doubtful entries if their last events came before `before_ns`.
    pub(super) fn give_up(&mut self, disk: Number, before_ns: u64) {
        let until_ns = self.doubtful_until_ns.min(before_ns);
        self.drop_seen_before(until_ns, |(device, _)| device == disk);
    }

    fn entries(&self) -> impl Iterator<Item = &(Sector, T)> {
        let slots = if self.chains.is_empty() {
            &[][..]
        } else {
            &self.slots[..]
        };
        slots.iter().filter_map(|slot| slot.entry.as_ref())
    }

    /// Gives up doubtful entries at a place. Without losses, which is the usual case, this costs only a
    /// comparison.
    fn drop_doubtful(&mut self, place: Sector) {
        let until_ns = self.doubtful_until_ns;
        if until_ns == 0 {
            return;
        }
        while self
            .remove(place, |entry| entry.seen_ns() < until_ns)
            .is_some()
        {
            self.dropped += 1;
        }
    }

    /// A free slot, unless the table is full.
    fn vacant(&mut self) -> Option<u32> {
        if self.free == NONE && self.slots.len() == LIMIT {
            self.drop_all_doubtful();
        }
        if self.free != NONE {
            let slot = self.free;
            self.free = self.slots[slot as usize].next;
            return Some(slot);
        }
        if self.slots.len() == LIMIT {
            return None;
        }
        self.slots.push(Slot {
            next: NONE,
            entry: None,
        });
        u32::try_from(self.slots.len() - 1).ok()
    }

    /// Gives up all doubtful entries. The other entries are certain until more events are lost.
    fn drop_all_doubtful(&mut self) {
        let until_ns = std::mem::take(&mut self.doubtful_until_ns);
        self.drop_seen_before(until_ns, |_| true);
    }

    fn drop_seen_before(&mut self, until_ns: u64, is_meant: impl Fn(Sector) -> bool) {
        if until_ns == 0 {
            return;
        }
        let old = self
            .entries()
            .filter(|(place, entry)| entry.seen_ns() < until_ns && is_meant(*place));
        let places: Vec<Sector> = old.map(|(place, _)| *place).collect();
        for place in places {
            self.remove(place, |entry| entry.seen_ns() < until_ns);
            self.dropped += 1;
        }
    }

    fn release(&mut self, slot: u32) -> Option<T> {
        let released = &mut self.slots[slot as usize];
        released.next = std::mem::replace(&mut self.free, slot);
        released.entry.take().map(|(_, entry)| entry)
    }
}

/// Takes a slot out of its chain, and an empty chain out of the table.
fn unlink<T>(
    slots: &mut [Slot<T>],
    mut chain: OccupiedEntry<'_, Sector, Chain>,
    before: u32,
    slot: u32,
) {
    let next = slots[slot as usize].next;
    if before == NONE && next == NONE {
        chain.remove();
        return;
    }
    match before {
        NONE => chain.get_mut().first = next,
        _ => slots[before as usize].next = next,
    }
    if next == NONE {
        chain.get_mut().last = before;
    }
}
