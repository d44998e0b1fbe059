//! The memory of a RAM disk, handed out in chunks that lie side by side in huge pages.
//!
//! Random accesses to small pages miss the processor's TLB, and under virtualisation a miss costs as much as
//! copying 4 KiB. So the store cuts chunks from mappings for which it asks the kernel to use huge pages.
//! Chunks are handed out in the order of their first writes, not of their offsets on the disk, so even a
//! sparsely used disk takes at most one huge page more than it needs. If the kernel has no huge pages left,
//! the memory comes in small pages. The first touch of a huge page takes long, so another thread does it
//! [ahead](super::filler), and chunks are only cut from pages that have come.
//!
//! Chunks that lie in one huge page form a group. The memory of a group goes back to the system when none
//! of its chunks is in use. Because a trim rarely empties whole groups, `tighten` moves chunks out of the
//! emptiest groups, until the remaining groups have few free chunks.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use dashpot_sys::{PageSize, Pages};

use super::filler::{self, Ready};

/// The size of a chunk in bytes.
pub(super) const CHUNK: u64 = 64 << 10;

/// A chunk that is in use: its number plus one, and whether it is [sparse](super::sparse). So `Option<Chunk>`
/// takes 4 bytes, and more of a disk's table of chunks stays in the processor's cache.
#[derive(Debug)]
pub(super) struct Chunk(NonZeroU32);

impl Chunk {
    fn of(group: usize, at: u32) -> Chunk {
        let number = group as u32 * CHUNKS_PER_GROUP + at;
        Chunk(NonZeroU32::MIN.saturating_add(number))
    }

    /// A chunk with this number in small pages.
    pub(super) fn sparse(number: u32) -> Chunk {
        Chunk(NonZeroU32::MIN.saturating_add(number) | SPARSE)
    }

    /// The number of a chunk in small pages. `None` if the chunk is in a huge page.
    #[inline]
    pub(super) fn as_sparse(&self) -> Option<u32> {
        (self.0.get() & SPARSE != 0).then_some((self.0.get() & !SPARSE).wrapping_sub(1))
    }

    fn number(&self) -> u32 {
        self.0.get() - 1
    }

    /// The index of the chunk's group, counted from the first group of the first slab.
    fn group(&self) -> usize {
        (self.number() / CHUNKS_PER_GROUP) as usize
    }

    /// The index of the chunk's slab, and where the chunk begins in the slab.
    fn place(&self) -> (usize, usize) {
        let (slab, range) = place(self.number());
        (slab, range.start)
    }
}

/// The index of the slab of the chunk with a number, and the range of the slab that is the chunk.
pub(super) fn place(number: u32) -> (usize, Range<usize>) {
    let start = (number % CHUNKS_PER_SLAB) as usize * CHUNK as usize;
    let slab = (number / CHUNKS_PER_SLAB) as usize;
    (slab, start..start + CHUNK as usize)
}

#[derive(Debug, Default)]
pub(super) struct Slabs {
    slabs: Vec<Pages>,
    groups: Vec<Group>,
    /// For each group that has memory, the number of its chunks in use, and its index. The emptiest group
    /// comes first.
    order: BTreeSet<(u32, u32)>,
    /// The groups that have no memory.
    bare: Vec<u32>,
    /// The groups whose memory has come.
    ready: Option<Arc<Ready>>,
    /// How many groups wait for their memory.
    asked: usize,
    /// For each chunk, the number that its user gave it. Meaningless while the chunk is free.
    users: Vec<u64>,
    in_use: usize,
    /// How many groups have chunks in use.
    held: usize,
}

/// The state of a group's chunks. Each field has one bit for each chunk.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    used: u32,
    /// The chunks whose bytes may differ from zero.
    written: u32,
}

impl Slabs {
    pub(super) const fn new() -> Slabs {
        Slabs {
            slabs: Vec::new(),
            groups: Vec::new(),
            order: BTreeSet::new(),
            bare: Vec::new(),
            ready: None,
            asked: 0,
            users: Vec::new(),
            in_use: 0,
            held: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Whether a chunk can be taken at once.
    pub(super) fn has_room(&self) -> bool {
        let first = self.order.first();
        first.is_some_and(|(used, _)| *used < CHUNKS_PER_GROUP)
    }

    /// Takes the memory that has come. Asks for more, if few groups are empty for the number of those in use.
    pub(super) fn restock(&mut self) {
        let ready = Arc::clone(self.ready.get_or_insert_default());
        self.stock(&ready);
        if self.empty() + self.asked < self.ahead() {
            let group = self.bare_group();
            let (slab, start) = Chunk::of(group as usize, 0).place();
            let range = start..start + GROUP;
            if let Some(provision) = self.slabs[slab].provision(range) {
                self.asked += 1;
                filler::provide(provision, group, &ready);
            }
        }
    }

    fn stock(&mut self, ready: &Ready) {
        for group in ready.take() {
            self.asked -= 1;
            self.order.insert((0, group));
        }
    }

    /// How many groups have memory, but no chunk in use.
    fn empty(&self) -> usize {
        self.order.range(..(1, 0)).count()
    }

    /// How many groups should have memory, but no chunk in use.
    fn ahead(&self) -> usize {
        (1 + self.held / 8).min(AHEAD)
    }

    /// Takes a chunk of zeroes. If it has no [room](Slabs::has_room), the first use of the chunk may take
    /// long. If `tighten` moves the chunk, it reports this with the number `user`.
    pub(super) fn take(&mut self, user: u64) -> Chunk {
        let (mut chunk, written) = self.claim(user);
        if written {
            self.bytes_mut(&mut chunk).fill(0);
        }
        chunk
    }

    /// Takes a chunk with arbitrary bytes. Also returns whether any of these bytes may differ from zero.
    fn claim(&mut self, user: u64) -> (Chunk, bool) {
        let group = self.fullest_with_room();
        let bits = &mut self.groups[group];
        let at = bits.used.trailing_ones();
        let written = bits.written & 1 << at != 0;
        bits.written |= 1 << at;
        let used = bits.used | 1 << at;
        self.mark(group, used);
        let chunk = Chunk::of(group, at);
        self.users[chunk.number() as usize] = user;
        (chunk, written)
    }

    /// The fullest group with a free chunk. Chunks are taken from this group so that emptier groups can
    /// become empty.
    fn fullest_with_room(&mut self) -> usize {
        let with_room =
            |order: &BTreeSet<_>| order.range(..(CHUNKS_PER_GROUP, 0)).next_back().copied();
        if let Some((1.., group)) = with_room(&self.order) {
            return group as usize;
        }
        if let Some((0, group)) = self.order.first() {
            return *group as usize;
        }
        let group = self.bare_group();
        self.order.insert((0, group));
        group as usize
    }

    /// Takes a group that has no memory.
    fn bare_group(&mut self) -> u32 {
        if self.bare.is_empty() {
            self.map_more();
        }
        self.bare.pop().unwrap_or_default()
    }

    fn map_more(&mut self) {
        self.slabs.push(map(PageSize::Huge));
        let from = self.groups.len();
        let to = from + (CHUNKS_PER_SLAB / CHUNKS_PER_GROUP) as usize;
        self.groups.resize(to, Group::default());
        self.bare.extend((from..to).rev().map(|group| group as u32));
        self.users.resize(to * CHUNKS_PER_GROUP as usize, 0);
    }

    /// Notes which chunks of a group are in use now.
    fn mark(&mut self, group: usize, used: u32) {
        let before = std::mem::replace(&mut self.groups[group].used, used);
        self.order.remove(&(before.count_ones(), group as u32));
        self.order.insert((used.count_ones(), group as u32));
        self.in_use = self.in_use + used.count_ones() as usize - before.count_ones() as usize;
        self.held = self.held + usize::from(used != 0) - usize::from(before != 0);
    }

    /// Takes a chunk back. The chunk's memory goes back to the system with its group, once the group has no
    /// chunk in use.
    pub(super) fn give(&mut self, chunk: Chunk) {
        let (group, at) = (chunk.group(), chunk.number() % CHUNKS_PER_GROUP);
        self.mark(group, self.groups[group].used & !(1 << at));
        if self.in_use == 0 {
            *self = Slabs::new();
        } else if self.groups[group].used == 0 {
            self.give_back(group);
        }
    }

    /// Gives the memory of a group back to the system, and returns true. If the kernel refuses, the group keeps
    /// its memory for the next chunks.
    fn give_back(&mut self, group: usize) -> bool {
        let (slab, start) = Chunk::of(group, 0).place();
        let is_given = self.slabs[slab].give_back(start..start + GROUP).is_ok();
        if is_given {
            self.groups[group].written = 0;
            self.order.remove(&(0, group as u32));
            self.bare.push(group as u32);
        }
        is_given
    }

    /// Gives memory back, until few chunks are free in groups that have chunks in use. For each chunk that it
    /// moves, calls `moved` with the user's number and the new chunk.
    ///
    /// Afterwards, at most one in nine of the chunks that hold memory is free, or at most [`FEW`] of them are
    /// free. While more are free, the emptiest group has at most 28 of 32 chunks in use. So emptying this
    /// group takes at most seven moves for each of its free chunks.
    pub(super) fn tighten(&mut self, mut moved: impl FnMut(u64, Chunk)) {
        // What has come meanwhile holds memory, too.
        if let Some(ready) = self.ready.clone() {
            self.stock(&ready);
        }
        while self.free_beside_used() > FEW.max(self.in_use / 8) {
            let Some(&(_, emptiest)) = self.order.range((1, 0)..).next() else {
                break;
            };
            self.evacuate(emptiest as usize, &mut moved);
        }
        while let Some((0, group)) = self.order.first().copied()
            && self.empty() > 1
        {
            if !self.give_back(group as usize) {
                return;
            }
        }
    }

    /// How many free chunks keep their memory because other chunks of their groups are in use.
    fn free_beside_used(&self) -> usize {
        self.held * CHUNKS_PER_GROUP as usize - self.in_use
    }

    /// Moves the chunks of a group to free places in other groups, and gives the group's memory back.
    fn evacuate(&mut self, group: usize, moved: &mut impl FnMut(u64, Chunk)) {
        let used = self.groups[group].used;
        // While the group is not in `order`, no chunk is moved into it.
        self.order.remove(&(used.count_ones(), group as u32));
        for at in (0..CHUNKS_PER_GROUP).filter(|at| used & 1 << at != 0) {
            let from = Chunk::of(group, at);
            let user = self.users[from.number() as usize];
            let (mut to, _) = self.claim(user);
            self.copy(&from, &mut to);
            moved(user, to);
        }
        self.mark(group, 0);
        self.give_back(group);
    }

    fn copy(&mut self, from: &Chunk, to: &mut Chunk) {
        let ((slab, start), (to_slab, to_start)) = (from.place(), to.place());
        let range = start..start + CHUNK as usize;
        match self.slabs.get_disjoint_mut([slab, to_slab]) {
            Ok([from, to]) => to[to_start..][..CHUNK as usize].copy_from_slice(&from[range]),
            // Both chunks lie in the same slab.
            Err(_) => self.slabs[slab].copy_within(range, to_start),
        }
    }

    pub(super) fn bytes(&self, chunk: &Chunk) -> &[u8] {
        let (slab, start) = chunk.place();
        &self.slabs[slab][start..start + CHUNK as usize]
    }

    pub(super) fn bytes_mut(&mut self, chunk: &mut Chunk) -> &mut [u8] {
        let (slab, start) = chunk.place();
        &mut self.slabs[slab][start..start + CHUNK as usize]
    }
}

/// Maps memory. The kernel provides the memory only when it is first used.
pub(super) fn map(size: PageSize) -> Pages {
    let length = CHUNKS_PER_SLAB as usize * CHUNK as usize;
    let Ok(slab) = Pages::map(length, size) else {
        // This ends the program as the allocator does when no memory is left.
        std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; CHUNK as usize]>());
    };
    slab
}

/// The number of chunks in a mapping of 64 MiB. A mapping is that large because before Linux 6.7 the kernel
/// uses huge pages only where they lie within one mapping.
pub(super) const CHUNKS_PER_SLAB: u32 = 1024;
/// The number of chunks in 2 MiB, which is a huge page on most processors.
const CHUNKS_PER_GROUP: u32 = 32;
/// The size of a group in bytes.
const GROUP: usize = CHUNKS_PER_GROUP as usize * CHUNK as usize;
/// At most this many groups are empty, or wait for their memory.
const AHEAD: usize = 8;
/// The bit of a [`Chunk`] that is in small pages.
const SPARSE: u32 = 1 << 31;
/// The number of chunks in 4 MiB. It is not worth the effort to move chunks in order to free less memory than
/// this.
const FEW: usize = 64;

#[cfg(test)]
mod tests;
