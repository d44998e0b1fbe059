//! The requests that wait until blocks of a volume are on the disks.

use core::ops::Range;

use super::slab::Slab;
use super::table::Table;
use crate::zio::ZioId;

/// A flush, or a durable write, that waits for a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watcher {
    pub(super) zio: ZioId,
    /// How many more writes of the block must end before the version that the request waits for is on the
    /// disks.
    pub(super) writes: u8,
}

/// The watchers of each block, in the order of arrival. The lists are in one slab, because a map would
/// allocate memory for each list.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    lists: Table<Option<List>>,
    nodes: Slab<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct List {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    watcher: Watcher,
    next: Option<u32>,
}

impl Watchers {
    pub(super) fn push(&mut self, block: u32, watcher: Watcher) {
        let next = None;
        let last = self.nodes.insert(Node { watcher, next });
        let before = self.lists.get(block);
        let first = before.map_or(last, |list| list.first);
        if let Some(list) = before {
            self.nodes[list.last].next = Some(last);
        }
        self.lists
            .edit(block, |list| *list = Some(List { first, last }));
    }

    /// The request that has waited longest for a block.
    pub(super) fn first(&self, block: u32) -> Option<ZioId> {
        let first = self.lists.get(block)?.first;
        Some(self.nodes[first].watcher.zio)
    }

    /// Notes that one write of a block has ended. Returns whether a watcher waits for another write.
    pub(super) fn written(&mut self, block: u32) -> bool {
        let mut more = false;
        let mut next = self.lists.get(block).map(|list| list.first);
        while let Some(slot) = next {
            let node = &mut self.nodes[slot];
            node.watcher.writes -= 1;
            more |= node.watcher.writes > 0;
            next = node.next;
        }
        more
    }

    /// Of the watchers of a block that wait for no more writes, takes the first.
    pub(super) fn take_home(&mut self, block: u32) -> Option<ZioId> {
        let mut before = None;
        let mut next = self.lists.get(block).map(|list| list.first);
        while let Some(slot) = next {
            if self.nodes[slot].watcher.writes == 0 {
                return Some(self.remove(block, before, slot));
            }
            (before, next) = (next, self.nodes[slot].next);
        }
        None
    }

    /// Takes the first watcher of a block.
    pub(super) fn take(&mut self, block: u32) -> Option<ZioId> {
        let first = self.lists.get(block)?.first;
        Some(self.remove(block, None, first))
    }

    /// The blocks of a range that have watchers.
    pub(super) fn watched(&self, range: Range<u32>) -> impl Iterator<Item = u32> {
        self.lists.used(range)
    }

    /// Removes the node that follows `before`.
    fn remove(&mut self, block: u32, before: Option<u32>, slot: u32) -> ZioId {
        let Node { watcher, next } = self.nodes.remove(slot);
        if let Some(before) = before {
            self.nodes[before].next = next;
        }
        self.lists.edit(block, |value| {
            *value = value.and_then(|list| {
                let first = if list.first == slot {
                    next?
                } else {
                    list.first
                };
                let last = if list.last == slot {
                    before?
                } else {
                    list.last
                };
                Some(List { first, last })
            });
        });
        watcher.zio
    }
}

#[cfg(test)]
mod tests {
    use super::{Watcher, Watchers};
    use crate::random::Random;
    use crate::zio::ZioId;
    use alloc::vec::Vec;

    /// Compares the watchers with a plain list of requests for each block.
    #[test]
    fn it_is_a_list_for_each_block() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut watchers = Watchers::default();
            let mut naive: [Vec<(u32, u8)>; 3] = Default::default();
            for zio in 0..500 {
                let block = random.below(3);
                let list = &mut naive[block as usize];
                let at = block as u32 * 700;
                match random.below(5) {
                    0 => {
                        list.iter_mut().for_each(|(_, writes)| *writes -= 1);
                        let more = list.iter().any(|(_, writes)| *writes > 0);
                        assert_eq!(watchers.written(at), more, "seed {seed}");
                        let home = list.extract_if(.., |(_, writes)| *writes == 0);
                        for (zio, _) in home {
                            assert_eq!(watchers.take_home(at), Some(ZioId(zio)), "seed {seed}");
                        }
                        assert_eq!(watchers.take_home(at), None, "seed {seed}");
                    }
                    1 if random.below(8) == 0 => {
                        for (zio, _) in list.drain(..) {
                            assert_eq!(watchers.take(at), Some(ZioId(zio)), "seed {seed}");
                        }
                        assert_eq!(watchers.take(at), None, "seed {seed}");
                    }
                    _ => {
                        let writes = 1 + random.below(2) as u8;
                        list.push((zio, writes));
                        let zio = ZioId(zio);
                        watchers.push(at, Watcher { zio, writes });
                    }
                }
                let first = naive[block as usize].first();
                assert_eq!(watchers.first(at), first.map(|(zio, _)| ZioId(*zio)));
                let watched = (0..3).filter(|block| !naive[*block as usize].is_empty());
                assert!(
                    watchers
                        .watched(0..u32::MAX)
                        .eq(watched.map(|block| block * 700))
                );
            }
        }
    }
}
