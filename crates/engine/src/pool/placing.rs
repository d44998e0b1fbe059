//! How new blocks get their places under the dynamic layout.
//!
//! A new block goes to the member with the fewest bytes queued. While all members have many I/Os queued, new
//! blocks wait, and then go to the first member whose queue is short again (OpenZFS: the allocation throttle
//! of `metaslab.c` and `zio.c`).

use core::cmp::Reverse;

use super::block_io::BlockWrite;
use super::placement::Placement;
use super::pool::Pool;
use super::stats::Class;
use super::step::Step;
use super::tunable::Tunable;

/// Gives places to new blocks.
impl Pool {
    /// Gives places to at most this many new blocks, while a member has a short queue. Returns whether a
    /// block got a place.
    pub(super) fn place_new(&mut self, most: &mut u32, step: &mut Step<'_>) -> bool {
        let (before, mut old) = (*most, OLD_MAX);
        while let Some(id) = self.next_unplaced(&mut old)
            && let Some(member) = self.member_for_new()
        {
            if *most == 0 {
                self.jobs.place_later();
                break;
            }
            *most -= 1;
            self.place(id, member);
            self.queue_write(id, step.now);
        }
        if old == 0 {
            self.jobs.place_later();
        }
        let has_placed = *most < before;
        if has_placed {
            self.pump_all(step);
        }
        has_placed
    }

    fn next_unplaced(&mut self, most_old: &mut u32) -> Option<u32> {
        let writes = &self.writes;
        let waits = |id, is_sync| {
            let write: &BlockWrite = &writes[id];
            write.unplaced && (write.class == Class::SyncWrite) == is_sync
        };
        self.unplaced.next(waits, most_old)
    }

    fn place(&mut self, id: u32, member: usize) {
        let sides = self.map.sides(member).len() as u32;
        let write = &mut self.writes[id];
        (write.sides, write.left, write.unplaced) = (sides, sides, false);
        if let Some(placement) = self.map.placement_mut() {
            placement.place(write.volume, write.block, member);
        }
    }

    /// Of the members that have room and a short queue, the member with the fewest bytes queued. Among
    /// members with equally few bytes, the one with the most room.
    fn member_for_new(&self) -> Option<usize> {
        let most = self.queue_depth();
        let lefts = self.map.placement().into_iter().flat_map(Placement::left);
        let loads = lefts
            .enumerate()
            .map(|(member, left)| (member, left, self.load(member)));
        let short = loads.filter(|(_, left, (_, queued))| *left > 0 && *queued < most);
        let best = short.min_by_key(|(_, left, (bytes, _))| (*bytes, Reverse(*left)));
        best.map(|(member, ..)| member)
    }

    /// How many bytes and I/Os are queued or in flight on the busiest side of a member.
    fn load(&self, member: usize) -> (u64, u64) {
        let sides = self.map.sides(member).iter();
        let loads = sides.map(|disk| self.disks[*disk].queue.load());
        loads.max().unwrap_or_default()
    }

    /// A member takes new blocks while it has fewer I/Os queued than this number.
    fn queue_depth(&self) -> u64 {
        let percent = self.tunables.get(Tunable::QueueDepthPct);
        let active = self.tunables.get(Tunable::AsyncWriteMaxActive);
        (percent * active / 100).max(1)
    }

    /// Ends a write that has nothing to do, because no disk has its blocks. Returns whether there was a
    /// write to end.
    pub(super) fn end_done_at_once(&mut self, step: &mut Step<'_>) -> bool {
        let id = self.unplaced.pop_done();
        if let Some(id) = id {
            self.end_write(id, step);
        }
        id.is_some()
    }
}

/// One step drops at most this many out-of-date entries from the list of unplaced writes.
const OLD_MAX: u32 = 4_096;
