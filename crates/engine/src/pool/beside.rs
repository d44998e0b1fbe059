//! Makes the metadata of [`super::overhead`] dirty, and queues its zios. Their ends are in `sync.rs`.

use super::config::ThrottleConfig;
use super::overhead::{
    Beside, COPIES, COPY_GAP, Key, LABELS, LENGTH, PASS_BLOCK, PASS_COPIES, PASSES, Tree,
    UBERBLOCK_MEMBERS,
};
use super::pool::Pool;
use super::queue::Queued;
use super::stats::Class;
use super::step::{Step, Work};
use super::tag::Tag;
use crate::time::Instant;
use crate::zio::Op;

/// Makes metadata dirty, and lets it go.
impl Pool {
    /// Decides whether the open txg has overhead, if it has no dirty data yet.
    pub(super) fn decide_overhead(&mut self) {
        let on = self.wants_overhead();
        if !self.txgs.is_dirty(self.txgs.open()) {
            self.overhead.decide(self.txgs.open(), on);
        }
    }

    pub(super) fn overhead_of_volume(&mut self, volume: usize) {
        self.overhead.add_volume(self.volumes[volume].count);
        self.decide_overhead();
    }

    pub(super) fn wants_overhead(&self) -> bool {
        self.throttle_config == ThrottleConfig::OpenZfs && self.tunables.has_overhead()
    }

    /// Makes the metadata above a block dirty, because the block has just become dirty in the open txg.
    pub(super) fn dirty_above(&mut self, volume: usize, block: u32, step: &Step<'_>) {
        let open = self.txgs.open();
        if !self.overhead.is_on(open) {
            return;
        }
        self.overhead.block_dirtied(open, volume, block);
        let tree = self.overhead.tree(volume);
        let mut next = Some(Tree::above_block(volume, block));
        while let Some(key) = next
            && self.overhead.dirtied(open, key)
        {
            self.txgs.dirtied();
            self.add_beside(open, tree.size(key), step.now);
            next = tree.above(key);
        }
    }

    fn add_beside(&mut self, txg: u64, bytes: u64, now: Instant) {
        self.overhead.add_dirty(txg, bytes);
        self.throttle.dirtied_beside(now, txg, bytes);
    }

    pub(super) fn retire_beside(&mut self, txg: u64, bytes: u64, now: Instant) {
        self.overhead.take_dirty(txg, bytes);
        self.throttle.retired(now, txg, bytes);
    }

    /// Notes that a block right below a node, or a copy of the node, is on the disks. Returns how many nodes no
    /// longer count as dirty.
    pub(super) fn came_home(&mut self, key: Key, txg: u64, is_copy: bool, now: Instant) -> u32 {
        let tree = self.overhead.tree(key.volume);
        let (mut next, mut is_copy, mut settled) = (Some(key), is_copy, 0);
        while let Some(key) = next
            && self.overhead.came_home(txg, key, is_copy)
        {
            self.retire_beside(txg, tree.size(key), now);
            settled += 1;
            (next, is_copy) = (tree.above(key), false);
        }
        settled
    }
}

/// Queues metadata together with the data.
impl Pool {
    /// Adds the copies of the txg's metadata to the batches, from this place on: a volume, and a place in
    /// the metadata of that volume. Returns the place at which to go on in the next step.
    pub(super) fn enlist_metadata(&mut self, txg: u64, from: (usize, u32)) -> Option<(usize, u32)> {
        let (first, mut from) = from;
        for volume in first..self.overhead.volumes() {
            while let Some(place) = self.overhead.next_from(txg, volume, from) {
                if !self.jobs.touch() {
                    return Some((volume, place));
                }
                let key = self.overhead.tree(volume).at(volume, place);
                self.enlist_node(txg, key);
                self.overhead.listed(txg, key);
                from = place + 1;
            }
            from = 0;
        }
        None
    }

    fn enlist_node(&mut self, txg: u64, key: Key) {
        let size = u64::from(self.volumes[key.volume].block_size);
        let tree = self.overhead.tree(key.volume);
        let (turn, behind, length) = tree.spot(key, self.map.members() as u64);
        let last = self.overhead.last_of(txg, key.volume);
        let (_, offset) = self.map.place_of(key.volume, last).unwrap_or_default();
        for copy in 0..u64::from(COPIES) {
            let apart = copy * (self.disks[0].disk.size / COPY_GAP);
            let id = self.begin_beside(Beside {
                of: Some(key),
                ..self.beside(turn + copy, offset + size + behind + apart, length)
            });
            let queued = self.queued_beside(id);
            for disk in self.map.sides(self.overhead.writes[id].member) {
                self.disks[*disk].queue.enlist(queued);
            }
        }
    }

    /// A zio for a member, which is counted round. It ends before the end of the disks.
    fn beside(&self, member: u64, offset: u64, length: u32) -> Beside {
        let member = member as usize % self.map.members();
        let size = self.disks[self.map.sides(member)[0]].disk.size;
        Beside {
            of: None,
            class: Class::AsyncWrite,
            member,
            offset: offset.min(size.saturating_sub(length.into())),
            length,
            dirty: 0,
            left: 0,
            failed: false,
            repeats: false,
        }
    }

    fn begin_beside(&mut self, write: Beside) -> u32 {
        let left = self.map.sides(write.member).len() as u32;
        self.overhead.writes.insert(Beside { left, ..write })
    }

    fn queued_beside(&self, id: u32) -> Queued {
        let write = &self.overhead.writes[id];
        Queued {
            class: write.class,
            op: Op::Write,
            offset: write.offset,
            length: write.length,
            tag: Tag::Beside(id).pack(),
            alone: false,
            beside: true,
        }
    }

    /// Whether a child carries no bytes, so that no store is asked.
    pub(crate) fn is_beside(&self, disk: usize, work: Work) -> bool {
        let Work::Picked(picked) = work else {
            return false;
        };
        let first = self.disks[disk].queue.members(picked).next();
        first.is_some_and(|first| matches!(Tag::unpack(first.tag), Tag::Beside(_)))
    }
}

/// The end of a txg.
impl Pool {
    pub(super) fn begin_pass(&mut self, txg: u64, pass: usize, now: Instant) {
        let blocks = PASSES[pass];
        self.add_beside(txg, u64::from(blocks) * PASS_BLOCK, now);
        self.overhead.left = blocks * PASS_COPIES;
        let size = self.disks[0].disk.size;
        for copy in 0..PASS_COPIES {
            let start = size / 4 * u64::from(copy + 1) / u64::from(LENGTH) * u64::from(LENGTH);
            for block in 0..blocks {
                let offset = start + u64::from(block * LENGTH);
                let member = txg + u64::from(copy);
                let id = self.begin_beside(Beside {
                    dirty: PASS_BLOCK / u64::from(PASS_COPIES),
                    ..self.beside(member, offset, LENGTH)
                });
                self.push_beside(id, now);
            }
        }
    }

    pub(super) fn write_uberblocks(&mut self, txg: u64, now: Instant) {
        let members = self.map.members().min(UBERBLOCK_MEMBERS);
        self.overhead.left = members as u32 * LABELS as u32;
        for at in 0..members {
            let member = (txg as usize + at) % self.map.members();
            let size = self.disks[self.map.sides(member)[0]].disk.size;
            for label in 0..LABELS {
                let id = self.begin_beside(Beside {
                    class: Class::SyncWrite,
                    ..self.beside(
                        member as u64,
                        label_of(size, label) + slot_in_label(txg),
                        LENGTH,
                    )
                });
                self.push_beside(id, now);
            }
        }
    }

    pub(super) fn push_beside(&mut self, id: u32, now: Instant) {
        let queued = self.queued_beside(id);
        for disk in self.map.sides(self.overhead.writes[id].member) {
            self.disks[*disk].queue.push(now, queued);
        }
    }
}

/// Where a label begins on a disk: two are at its beginning, and two at its end.
fn label_of(size: u64, label: u64) -> u64 {
    if label < LABELS / 2 {
        label * LABEL
    } else {
        size.saturating_sub((LABELS - label) * LABEL)
    }
}

/// Where the uberblock of a txg is in a label.
fn slot_in_label(txg: u64) -> u64 {
    LABEL / 2 + txg % UBERBLOCKS * u64::from(LENGTH)
}

/// The size of a label in bytes. Its second half has the uberblocks.
const LABEL: u64 = 256 << 10;
const UBERBLOCKS: u64 = 32;
