//! The queue of one disk of a pool (OpenZFS: `vdev_queue.c`): which I/O goes to the disk next, and
//! which others go with it.

mod io;

use alloc::vec::Vec;

use crate::pool::{Class, QueueStats, Traffic};
use crate::time::Instant;
use crate::zio::{DiskId, Outcome};

pub(crate) use io::{Limits, Member, Picked, PickedId, Queued};

/// The I/O that waits for one disk, and what is there.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Vec<(Instant, Queued)>,
    issued: Vec<Option<(Class, Vec<Member>)>>,
    stats: QueueStats,
    joined_from: Traffic,
    joined_to: Traffic,
}

impl Queue {
    pub(crate) fn new(disk: DiskId) -> Queue {
        Queue {
            waiting: Vec::new(),
            issued: Vec::new(),
            stats: QueueStats {
                disk,
                classes: Default::default(),
            },
            joined_from: Traffic::default(),
            joined_to: Traffic::default(),
        }
    }

    /// Puts an I/O in.
    pub(crate) fn push(&mut self, now: Instant, io: Queued) {
        self.stats.classes[io.class as usize].pending += 1;
        self.waiting.push((now, io));
    }

    /// Puts many in at once, which costs less than one by one; they need not be sorted, and are
    /// afterwards.
    pub(crate) fn push_batch(&mut self, now: Instant, batch: &mut [Queued]) {
        batch.sort_unstable_by_key(|io| (io.offset, io.tag));
        for io in batch {
            self.push(now, *io);
        }
    }

    /// What goes to the disk next, or `None` until something is done, pushed or allowed. Call it
    /// until it gives nothing.
    pub(crate) fn pick(
        &mut self,
        now: Instant,
        limits: &Limits,
        async_write_max: u32,
    ) -> Option<Picked> {
        let active: u32 = self.stats.classes.iter().map(|class| class.active).sum();
        let allowed = |class: Class| match class {
            Class::AsyncWrite => async_write_max,
            _ => limits.max[class as usize],
        };
        let at = self.waiting.iter().position(|(_, io)| {
            active < limits.max_active
                && self.stats.classes[io.class as usize].active < allowed(io.class)
        })?;
        let (queued, io) = self.waiting.remove(at);
        let _ = now;
        let class = &mut self.stats.classes[io.class as usize];
        class.pending -= 1;
        class.active += 1;
        let member = Member {
            tag: io.tag,
            offset: io.offset,
            length: io.length,
            queued,
        };
        self.issued.push(Some((io.class, [member].into())));
        Some(Picked {
            id: PickedId(self.issued.len() as u32 - 1),
            class: io.class,
            op: io.op,
            offset: io.offset,
            length: io.length,
            count: 1,
        })
    }

    /// The members of what was picked and is not done, by offset.
    pub(crate) fn members(&self, id: PickedId) -> impl Iterator<Item = Member> + '_ {
        let issued = self.issued.get(id.0 as usize).and_then(Option::as_ref);
        issued.into_iter().flat_map(|(_, members)| members).copied()
    }

    /// The disk is done with what was picked: its members are forgotten, its place is free.
    pub(crate) fn done(&mut self, now: Instant, id: PickedId, outcome: Outcome) {
        let _ = (now, outcome);
        if let Some((class, _)) = self.issued.get_mut(id.0 as usize).and_then(Option::take) {
            self.stats.classes[class as usize].active -= 1;
        }
    }

    /// Somebody has begun to wait for it: it goes to the end of another class (OpenZFS:
    /// `vdev_queue_change_io_priority`). Nothing changes if it is not in the queue any more.
    pub(crate) fn promote(&mut self, tag: u32, to: Class) {
        for (_, io) in self.waiting.iter_mut().filter(|(_, io)| io.tag == tag) {
            self.stats.classes[io.class as usize].pending -= 1;
            self.stats.classes[to as usize].pending += 1;
            io.class = to;
        }
    }

    /// Takes an I/O out; false if it is not in the queue any more.
    pub(crate) fn withdraw(&mut self, tag: u32) -> bool {
        let Some(at) = self.waiting.iter().position(|(_, io)| io.tag == tag) else {
            return false;
        };
        let (_, io) = self.waiting.remove(at);
        self.stats.classes[io.class as usize].pending -= 1;
        true
    }

    /// How the queue stands, and the latencies and sizes of what was done without an error.
    pub(crate) fn stats(&self) -> &QueueStats {
        &self.stats
    }

    /// What was picked, counted one by one. Flushes are not counted.
    pub(crate) fn queued(&self) -> Traffic {
        self.joined_from
    }

    /// What was picked, counted as it went to the disk. Flushes are not counted.
    pub(crate) fn issued(&self) -> Traffic {
        self.joined_to
    }
}
