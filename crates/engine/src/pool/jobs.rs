//! Jobs: work on many blocks, which takes more than one step.
//!
//! In one step the jobs of a pool touch at most 256 blocks and at most 256 extents, so no client of the
//! same shard waits for a whole flush, sync or trim, or for a long read or write. Ticks do the rest, and the
//! jobs take turns. A driver with virtual time ticks at once, so a job in virtual time takes no time,
//! although it is done in parts.

use alloc::collections::VecDeque;

use crate::time::Instant;
use crate::zio::ZioId;

#[derive(Debug, Default)]
pub(super) struct Jobs {
    pub(super) waiting: VecDeque<Job>,
    /// How many blocks and extents the jobs have touched since `since`. The count restarts with each tick,
    /// and when a job begins later than `since`.
    pub(super) touched: u32,
    /// When the count last restarted.
    pub(super) since: Instant,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Job {
    /// Makes the blocks of a write, zero or trim dirty, from byte `from` of the zio on.
    Dirty { zio: ZioId, from: u32 },
    /// Writes the blocks of a write-through to the disks, from byte `from` of the zio on.
    Through { zio: ZioId, from: u32 },
    /// Reads the blocks of a read, from byte `from` of the zio on.
    Read { zio: ZioId, from: u32 },
    /// Writes to the disks the blocks and extents that a request waits for.
    Home(Home),
    /// Queues the dirty blocks and extents of a txg.
    Sync(Sync),
    /// Sends the blocks that waited until an extent was on the disks.
    Landed(Landed),
    /// Queues the writes that waited for the repair or for the record of a mirror.
    Released,
    /// Makes the engine step again, because the last step could not give places to all new blocks. The job
    /// itself gives no places: every step does so at its end.
    Place,
    /// Frees the memory that a power cut has made useless.
    Cut,
}

/// The blocks from `start` to `end` of a volume, which the pool writes to the disks for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    pub(super) zio: ZioId,
    pub(super) volume: usize,
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) stage: Stage,
    /// The first block that this stage still has to look at.
    pub(super) at: u32,
    /// Whether the pool may have begun to write extents since the job began.
    pub(super) is_parted: bool,
}

/// The stages of a [`Home`]. Each stage looks for blocks or extents of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Extents that were on their way when the job began.
    OnWay,
    /// Extents in memory.
    Extents,
    /// Extents that the pool has begun to write since the job began.
    Begun,
    /// Blocks with versions of their own. This stage is the last, so if a block of an extent has got a
    /// version of its own meanwhile, this stage finds that block, too. The opposite cannot happen: no extent
    /// takes the place of a block that the job still has to look at.
    Blocks,
}

/// A txg that the pool writes to the disks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sync {
    pub(super) txg: u64,
    pub(super) volume: usize,
    /// Whether the extents of the volume are queued. Extents come before blocks, because some blocks are
    /// newer than an extent of their txg.
    pub(super) has_extents: bool,
    /// The first block of the volume that the job still has to look at.
    pub(super) at: u32,
    /// The first metadata that the job still has to look at: a volume, and a place in its metadata. Metadata
    /// comes after all blocks.
    pub(super) metadata: (usize, u32),
}

/// An extent that has been written to the disks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Landed {
    /// The extent's write.
    pub(super) write: u32,
    /// The first block that the job still has to look at.
    pub(super) at: u32,
}

impl Jobs {
    pub(super) fn begin_anew(&mut self, now: Instant) {
        (self.touched, self.since) = (0, now);
    }

    /// Whether work begins now. If other jobs wait, it waits behind them, as `job`.
    pub(super) fn begins(&mut self, job: Job, now: Instant) -> bool {
        let begins = self.waiting.is_empty();
        if !begins {
            self.waiting.push_back(job);
        } else if now > self.since {
            self.begin_anew(now);
        }
        begins
    }

    pub(super) fn has_room(&self) -> bool {
        self.touched < TOUCHED_MAX
    }

    /// Counts one more block or extent as touched, unless the step has touched as many as it may. Returns
    /// whether it has counted.
    pub(super) fn touch(&mut self) -> bool {
        let has_room = self.has_room();
        self.touched += u32::from(has_room);
        has_room
    }

    /// Lets new blocks get their places in the next step.
    pub(super) fn place_later(&mut self) {
        let mut jobs = self.waiting.iter();
        if !jobs.any(|job| matches!(job, Job::Place)) {
            self.waiting.push_back(Job::Place);
        }
    }

    /// Whether a request waits for this block, and the job that will write the block has not reached it yet.
    pub(super) fn will_send(&self, volume: usize, block: u32) -> bool {
        self.waiting.iter().any(|job| match job {
            Job::Home(home) if home.volume == volume => {
                let is_last = home.stage == Stage::Blocks;
                let from = if is_last { home.at } else { home.start };
                (from..home.end).contains(&block)
            }
            _ => false,
        })
    }
}

/// Once the jobs of a pool have touched this many blocks and extents together in one step, the jobs wait for
/// the next tick.
pub(super) const TOUCHED_MAX: u32 = 256;
