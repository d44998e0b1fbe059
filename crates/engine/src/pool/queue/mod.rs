//! The queue of one disk of a pool. The queue decides which I/O goes to the disk next, and which other I/O
//! the queue joins with it.
//!
//! The model is OpenZFS's `vdev_queue.c`, in version 2.2 and later. Each class has a minimum and a maximum
//! number of I/Os at the disk. I/O that a client waits for is served in the order of arrival. Other I/O is
//! served in the order of offsets, as by an elevator. Adjacent I/O is joined. This queue has no classes for
//! scrub, resilver and the like, no credits, and no optional I/O. The queue does not check ZFS's limit of 16
//! MiB for an aggregate, because the bounds of the tunable enforce that limit. Zeroes are a kind of write
//! that is joined only with other zeroes.

mod counts;
mod io;
mod rule;
mod sorted;
#[cfg(test)]
mod tests;
mod waiting;

use alloc::vec::Vec;

use crate::pool::stats::{Class, QueueStats, Traffic};
use crate::time::Instant;
use crate::zio::{DiskId, Op, Outcome};

use super::slab::Slab;
use counts::Times;
pub(crate) use io::{Limits, Member, Picked, PickedId, Queued};
use rule::Rule;
use waiting::{END, Waiting};

/// The I/O that waits for one disk, and the I/O at the disk.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Waiting,
    /// The I/Os of a sync that are to be queued at once.
    batch: Vec<Queued>,
    rule: Rule,
    issued: Slab<Issued>,
    /// Where the last picked I/O ends.
    last_end: u64,
    stats: QueueStats,
    /// The total size, in bytes, of the I/O that waits or is at the disk.
    bytes: u64,
    apart: Traffic,
    joined: Traffic,
}

/// An I/O at the disk.
#[derive(Clone, Copy, Debug)]
struct Issued {
    picked: Picked,
    /// The slot of the first member.
    first: u32,
    at: Instant,
}

impl Queue {
    pub(crate) fn new(disk: DiskId) -> Queue {
        Queue {
            waiting: Waiting::default(),
            batch: Vec::new(),
            rule: Rule::default(),
            issued: Slab::default(),
            last_end: 0,
            stats: QueueStats {
                disk,
                classes: Default::default(),
            },
            bytes: 0,
            apart: Traffic::default(),
            joined: Traffic::default(),
        }
    }

    /// How many bytes and I/Os wait or are at the disk, counted before joining.
    pub(crate) fn load(&self) -> (u64, u64) {
        (self.bytes, self.waiting.entries.count() as u64)
    }

    /// Queues an I/O.
    pub(crate) fn push(&mut self, now: Instant, io: Queued) {
        self.stats.classes[io.class as usize].pending += 1;
        self.bytes += u64::from(io.length);
        self.waiting.push(now, io);
    }

    /// Adds an I/O to the batch of the disk.
    #[inline]
    pub(crate) fn enlist(&mut self, io: Queued) {
        self.batch.push(io);
    }

    /// Queues the batch, sorted by offset, because that is the fastest order.
    pub(crate) fn push_batch(&mut self, now: Instant) {
        let mut batch = core::mem::take(&mut self.batch);
        batch.sort_unstable_by_key(|io| (io.offset, io.tag));
        for io in batch.drain(..) {
            self.push(now, io);
        }
        // The list is kept for its memory.
        self.batch = batch;
    }

    /// Picks the next I/O for the disk, or returns `None`. After `None`, call this function again only when
    /// an I/O has been queued or has ended, or a limit has changed. At most `max_async_writes` async writes
    /// may be at the disk.
    pub(crate) fn pick(
        &mut self,
        now: Instant,
        limits: &Limits,
        async_write_max: u32,
    ) -> Option<Picked> {
        let class = self
            .rule
            .class_to_issue(&self.stats.classes, limits, async_write_max)?;
        let slot = self.waiting.in_turn(class, self.last_end)?;
        let (first, last) = self.waiting.join(slot, limits);
        Some(self.issue(now, class, first, last))
    }

    /// The members of a picked I/O that is not yet done, in the order of their offsets.
    pub(crate) fn members(&self, id: PickedId) -> impl Iterator<Item = Member> + '_ {
        self.slots(id).map(|slot| {
            let entry = self.waiting.entries[slot];
            Member {
                tag: entry.io.tag,
                offset: entry.io.offset,
                length: entry.io.length,
                queued: entry.queued,
            }
        })
    }

    /// A picked I/O that is not yet done.
    pub(crate) fn picked(&self, id: PickedId) -> Picked {
        self.issued[id.0].picked
    }

    /// Ends a picked I/O: forgets its members and frees its place.
    pub(crate) fn done(&mut self, now: Instant, id: PickedId, outcome: Outcome) {
        let Issued { picked, first, at } = self.issued.remove(id.0);
        let stats = &mut self.stats.classes[picked.class as usize];
        stats.active -= 1;
        if outcome.is_ok() && picked.op != Op::Flush {
            let times = Times {
                queued: self.waiting.entries[first].queued,
                issued: at,
                done: now,
            };
            stats.record(times, picked.length, picked.count > 1);
        }
        if outcome.is_ok() {
            self.joined.count(picked.op, picked.length.into());
        }
        let mut slot = first;
        while slot != END {
            let entry = self.waiting.entries.remove(slot);
            self.bytes -= u64::from(entry.io.length);
            if outcome.is_ok() {
                self.apart.count(entry.io.op, entry.io.length.into());
            }
            slot = entry.next;
        }
    }

    /// Puts the members of a failed I/O back into the queue, and lets each go to the disk alone, because one
    /// bad block must not fail its neighbours (OpenZFS: `zio_vdev_io_assess`). Returns false if the I/O was
    /// not joined.
    pub(crate) fn repeat_apart(&mut self, now: Instant, id: PickedId) -> bool {
        let Issued { picked, first, .. } = self.issued[id.0];
        if picked.count == 1 {
            return false;
        }
        self.issued.remove(id.0);
        self.stats.classes[picked.class as usize].active -= 1;
        let mut slot = first;
        while slot != END {
            let entry = self.waiting.entries.remove(slot);
            slot = entry.next;
            self.bytes -= u64::from(entry.io.length);
            let alone = Queued {
                alone: true,
                ..entry.io
            };
            self.push(now, alone);
        }
        true
    }

    /// Moves an I/O to the end of another class, because a client has begun to wait for it
    /// (OpenZFS: `vdev_queue_change_io_priority`). Does nothing if the I/O has left the queue.
    pub(crate) fn promote(&mut self, tag: u32, to: Class) {
        let Some(slot) = self.waiting.slot_of(tag) else {
            return;
        };
        let from = self.waiting.entries[slot].io.class;
        if from != to {
            self.stats.classes[from as usize].pending -= 1;
            self.stats.classes[to as usize].pending += 1;
            self.waiting.change_class(slot, to);
        }
    }

    /// Forgets the I/O that waits, and the I/O at the disk. The counters continue.
    pub(crate) fn forget_all(&mut self) {
        self.waiting.clear();
        self.rule = Rule::default();
        self.issued.clear();
        self.bytes = 0;
        for class in &mut self.stats.classes {
            (class.pending, class.active) = (0, 0);
        }
    }

    /// The state of the queue, and the latencies and sizes of successful I/O.
    pub(crate) fn stats(&self) -> &QueueStats {
        &self.stats
    }

    /// The total of successful I/O without flushes, counted before joining.
    pub(crate) fn apart(&self) -> Traffic {
        self.apart
    }

    /// The total of successful I/O without flushes, counted after joining.
    pub(crate) fn joined(&self) -> Traffic {
        self.joined
    }

    /// Sends the linked members from `first` to `last` to the disk as one I/O.
    fn issue(&mut self, now: Instant, class: Class, first: u32, last: u32) -> Picked {
        let begin = self.waiting.entries[first].io;
        let end = self.waiting.entries[last].io.end();
        let mut picked = Picked {
            id: PickedId(0),
            class,
            op: begin.op,
            offset: begin.offset,
            length: (end - begin.offset) as u32,
            count: 0,
        };
        let mut slot = first;
        while slot != END {
            let entry = self.waiting.take(slot);
            self.stats.classes[entry.io.class as usize].pending -= 1;
            picked.count += 1;
            slot = entry.next;
        }
        self.stats.classes[class as usize].active += 1;
        self.last_end = end;
        let at = now;
        picked.id = PickedId(self.issued.insert(Issued { picked, first, at }));
        self.issued[picked.id.0].picked = picked;
        picked
    }

    /// The slots of the members of a picked I/O.
    fn slots(&self, id: PickedId) -> impl Iterator<Item = u32> + '_ {
        let following =
            |slot: &u32| Some(self.waiting.entries[*slot].next).filter(|next| *next != END);
        core::iter::successors(Some(self.issued[id.0].first), following)
    }
}
