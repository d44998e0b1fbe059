//! A pool: its disks and volumes, its throttle and its txgs.
//!
//! ```text
//! write ─ lock ─ fill ─ throttle ─ dirty ─ reply        txg ─ home ─ queue ─ disks ─ sync
//! ```
//!
//! Modelled on OpenZFS's zvol, `dmu_tx.c`, `dsl_pool.c` and `txg.c`. Three things differ. A block has one
//! place on the disks, its home, and is written there (no allocator, no ZIL). There is no cache of clean
//! blocks. A FLUSH writes the blocks that it must make durable to their homes.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::block_io::{BlockRead, BlockWrite, Retry};
use super::block_map::BlockMap;
use super::config::{PoolConfig, PoolDisk, PoolError, ThrottleConfig, VolumeConfig, WritePolicy};
use super::cut::Cut;
use super::failures::Failures;
use super::jobs::{Jobs, TOUCHED_MAX};
use super::limits::{check_layout, limits};
use super::mirrors::Mirrors;
use super::overhead::Overhead;
use super::queue::{Limits, Queue};
use super::request::{Phase, Request, Requests};
use super::slab::Slab;
use super::stats::QueueState;
use super::step::{Ended, Step, SyncFor, Work};
use super::tag::Tag;
use super::throttle::Throttle;
use super::tunable::{Tunable, TunableError, Tunables};
use super::txg::Txgs;
use super::unplaced::Unplaced;
use super::volume::Volume;
use crate::time::Instant;
use crate::zio::{Errno, Op, Outcome, VolumeId, Zio, ZioId};

#[derive(Debug)]
pub(crate) struct Pool {
    pub(super) id: u32,
    pub(super) map: BlockMap,
    pub(super) disks: Vec<Leaf>,
    pub(super) unplaced: Unplaced,
    /// `None` if all members are single disks.
    pub(super) mirrors: Option<Box<Mirrors>>,
    pub(super) throttle_config: ThrottleConfig,
    pub(super) tunables: Tunables,
    pub(super) throttle: Throttle,
    pub(super) txgs: Txgs,
    pub(super) overhead: Overhead,
    pub(super) volumes: Vec<Volume>,
    pub(super) requests: Requests,
    pub(super) writes: Slab<BlockWrite>,
    pub(super) reads: Slab<BlockRead>,
    pub(super) failures: Failures,
    /// Blocks whose write has ended in this step, and whose newer versions this step still has to send.
    pub(super) written: VecDeque<(usize, u32)>,
    /// Requests that are next for a lock, and that this step still has to resume.
    pub(super) unlocked: VecDeque<ZioId>,
    /// How many disks must still sync for the syncing txg; `None` before all its blocks are on the disks.
    pub(super) commit: Option<u32>,
    deadline: Instant,
    /// Work on many blocks, which takes more than one step.
    pub(super) jobs: Jobs,
    /// The power cut whose work has not ended yet.
    pub(super) cut: Option<Box<Cut>>,
    /// The tags of the I/Os that are joined into one. The list is kept so that its memory can be reused.
    tags: Vec<u32>,
    pub(super) closing: Option<Errno>,
    /// Whether the pool writes dirty data to the disks without waiting for a reason to sync.
    pub(super) drains: bool,
}

/// A disk of a pool.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) disk: PoolDisk,
    pub(super) queue: Queue,
    pub(super) limits: Limits,
    /// Whether the disk's last sync at the end of a txg failed. That sync will be repeated.
    pub(super) sync_failed: bool,
}

impl Leaf {
    pub(super) fn state(&self) -> QueueState {
        let classes = &self.queue.stats().classes;
        QueueState {
            disk: self.disk.disk,
            pending: core::array::from_fn(|class| classes[class].pending),
            active: core::array::from_fn(|class| classes[class].active),
        }
    }

    /// The number of zios in the disk's queue and at the disk.
    pub(super) fn outstanding(&self) -> u32 {
        let classes = self.queue.stats().classes.iter();
        classes.map(|class| class.pending + class.active).sum()
    }
}

/// Takes the requests of clients.
impl Pool {
    pub(crate) fn new(id: u32, config: PoolConfig, now: Instant) -> Result<Pool, PoolError> {
        let disks: Vec<PoolDisk> = config.members.iter().flatten().copied().collect();
        check_layout(&config.members, &disks)?;
        let leaf = |disk: &PoolDisk| Leaf {
            disk: *disk,
            queue: Queue::new(disk.disk),
            limits: limits(&config.tunables, disk.rotational),
            sync_failed: false,
        };
        Ok(Pool {
            id,
            map: BlockMap::new(&config),
            unplaced: Unplaced::default(),
            mirrors: Mirrors::new(config.members.iter().map(|sides| sides_of(sides))),
            disks: disks.iter().map(leaf).collect(),
            throttle_config: config.throttle,
            throttle: Throttle::new(config.throttle, &config.tunables, Txgs::FIRST),
            tunables: config.tunables,
            txgs: Txgs::new(now),
            overhead: Overhead::default(),
            volumes: Vec::new(),
            requests: Requests::default(),
            writes: Slab::default(),
            reads: Slab::default(),
            failures: Failures::none(),
            written: VecDeque::new(),
            unlocked: VecDeque::new(),
            commit: None,
            deadline: Instant::NEVER,
            jobs: Jobs::default(),
            cut: None,
            tags: Vec::new(),
            closing: None,
            drains: false,
        })
    }

    /// Adds a volume, placed after the existing volumes. Returns the volume's index in the pool.
    pub(crate) fn add_volume(
        &mut self,
        config: &VolumeConfig,
        step: &mut Step<'_>,
    ) -> Result<usize, PoolError> {
        let block_size = config.block_size;
        if !block_size.is_power_of_two() || !(512..=BLOCK_MAX).contains(&block_size) {
            return Err(PoolError::BlockSize(block_size));
        }
        if config.size == 0 || !config.size.is_multiple_of(u64::from(block_size)) {
            return Err(PoolError::Size(config.size));
        }
        if config.size / u64::from(block_size) > u64::from(u32::MAX) {
            return Err(PoolError::TooManyBlocks(config.size));
        }
        self.map.add_volume(config)?;
        self.volumes.push(Volume::new(config));
        let place = self.volumes.len() - 1;
        self.overhead_of_volume(place);
        if place == 0 && config.write == WritePolicy::Back {
            self.fill_pipeline(step);
        }
        Ok(place)
    }

    pub(crate) fn submit(&mut self, zio: Zio<VolumeId>, volume: usize, step: &mut Step<'_>) {
        let target = &mut self.volumes[volume];
        let depth = target.occupancy.enter(step.now, &mut target.stats);
        // A pool has no cache to read ahead into, so a read-ahead moves no bytes.
        if zio.op != Op::Cache {
            target.traffic.asked.count(zio.op, u64::from(zio.length));
        }
        let id = zio.id;
        let number = step.events.number();
        let request = Request::new(zio, number, volume, step.now);
        self.requests.insert(request.at_depth(depth));
        if let Some(errno) = self.closing {
            self.finish(id, Err(errno), step);
            return;
        }
        if !self.volumes[volume].holds(&zio) {
            self.finish(id, Err(Errno::Inval), step);
            return;
        }
        if let Some(cut) = &mut self.cut {
            self.requests[id].go_to(Phase::Cut, step.now);
            cut.wait(id);
        } else {
            self.start(id, zio.op, step);
        }
        self.settle(step);
    }

    /// Notes that the reply has left.
    pub(crate) fn replied(&mut self, id: ZioId, offered: Instant, step: &mut Step<'_>) {
        let request = self.requests.remove(id);
        request.lent.into_iter().for_each(|buf| step.free(buf));
        let now = step.now;
        let volume = &mut self.volumes[request.volume];
        volume.occupancy.leave(now, &mut volume.stats);
        let stats = volume.stats.op_mut(request.zio.op);
        stats.completed += 1;
        match request.outcome {
            Ok(()) => stats.bytes += u64::from(request.zio.length),
            Err(_) => stats.failed += 1,
        }
        let total = now.since(request.zio.arrived);
        stats.record_reply(total, offered.since(request.submitted));
    }

    /// Handles a child that has ended.
    pub(crate) fn ended(&mut self, ended: Ended, step: &mut Step<'_>) {
        let disk = ended.child.disk;
        match ended.child.work {
            Work::Picked(picked) => {
                if ended.outcome.is_ok() {
                    self.count_done(disk, picked);
                }
                let mut tags = core::mem::take(&mut self.tags);
                let queue = &mut self.disks[disk].queue;
                if ended.outcome.is_ok() || !queue.repeat_apart(step.now, picked) {
                    tags.extend(queue.members(picked).map(|member| member.tag));
                    queue.done(step.now, picked, ended.outcome);
                }
                for tag in tags.drain(..) {
                    self.member_done(disk, tag, ended.outcome, step);
                    while self.go_on_next(step) {}
                }
                self.tags = tags;
                self.pump(disk, step);
            }
            Work::Sync { who, covers } => {
                if ended.outcome.is_ok() {
                    self.note_sync(disk, covers);
                }
                match who {
                    SyncFor::Request(id) => self.requests.one_less(id, ended.outcome),
                    SyncFor::Txg => self.disk_synced(disk, ended.outcome, step),
                    // The regions stay dirty until another sync succeeds.
                    SyncFor::Repair => {}
                }
            }
            Work::Orphan => {}
        }
        self.settle(step);
    }

    /// Ends one of the I/Os that the queue had joined into a single I/O for a disk.
    fn member_done(&mut self, disk: usize, tag: u32, outcome: Outcome, step: &mut Step<'_>) {
        match Tag::unpack(tag) {
            Tag::Write(id) => self.side_written(id, outcome, step),
            Tag::Read(id) => self.side_read(disk, id, outcome, step),
            Tag::Repair => self.piece_done(disk, outcome, step),
            Tag::Beside(id) => self.side_beside(id, outcome, step),
        }
    }

    /// Continues the jobs, once in each tick.
    pub(crate) fn go_on_with_jobs(&mut self, step: &mut Step<'_>) {
        self.jobs.begin_anew(step.now);
        if !self.has_jobs() {
            return;
        }
        while self.jobs.has_room()
            && let Some(job) = self.jobs.waiting.pop_front()
        {
            let rest = self.some_of(job, step);
            self.jobs.waiting.extend(rest);
        }
        self.settle(step);
    }

    /// Does everything in the pool that is due.
    pub(crate) fn tick(&mut self, step: &mut Step<'_>) {
        while let Some(retry) = self.failures.pop_due(step.now) {
            match retry {
                Retry::Commit { disk } => self.sync_disk(disk, SyncFor::Txg, step),
                Retry::Block { volume, block } => self.repeat_block(volume, block, step),
                Retry::Extent(id) => self.repeat_extent(id, step),
                Retry::Beside(id) => self.repeat_beside(id, step),
            }
        }
        self.throttle.wake(step.now);
        self.settle(step);
    }

    /// When [`Pool::tick`] is to be called, or [`Instant::NEVER`].
    #[inline]
    pub(crate) fn next_deadline(&self) -> Instant {
        self.deadline
    }

    pub(crate) fn tune(
        &mut self,
        changes: Vec<(Tunable, u64)>,
        step: &mut Step<'_>,
    ) -> Result<(), TunableError> {
        self.tunables.set_all(changes)?;
        for leaf in &mut self.disks {
            leaf.limits = limits(&self.tunables, leaf.disk.rotational);
        }
        self.throttle.tuned(step.now, &self.tunables);
        self.decide_overhead();
        self.sync_if_full();
        self.fail_if_asked(step);
        self.pump_all(step);
        self.settle(step);
        Ok(())
    }

    /// Writes dirty data to the disks at once from now on.
    pub(crate) fn drain(&mut self, step: &mut Step<'_>) {
        self.drains = true;
        self.stop_repairing(step);
        self.settle(step);
    }
}

/// Finishes each step.
impl Pool {
    /// Carries out all consequences of the step, until there are no more.
    pub(crate) fn settle(&mut self, step: &mut Step<'_>) {
        let mut places = TOUCHED_MAX;
        loop {
            if self.resume_next(step)
                || self.map.is_dynamic()
                    && (self.end_done_at_once(step) || self.place_new(&mut places, step))
            {
                // Something has changed, so the loop looks for more consequences.
            } else if self.cut.is_some() || !self.advance_txgs(step) {
                break;
            }
        }
        if self.mirrors.is_some() {
            self.go_on_repairing(step);
            self.go_on_recording(step);
        }
        self.deadline = self.find_deadline(step.now);
    }

    /// The engine asks for the deadline after every step, so each step computes it once.
    fn find_deadline(&self, now: Instant) -> Instant {
        let retry = self.failures.next_retry();
        let wake = self.throttle.next_wake().unwrap_or(Instant::NEVER);
        let timer = self.txgs.next_deadline(self.txg_timeout());
        let mirrors = self.mirrors.as_ref();
        let repair = mirrors.map_or(Instant::NEVER, |mirrors| mirrors.next_deadline(now));
        retry.min(wake).min(timer).min(repair)
    }
}

/// The maximum block size of a volume. By default, ZFS allows only 128 KiB for a zvol
/// (`SPA_OLD_MAXBLOCKSIZE`), but larger blocks are useful for comparison.
const BLOCK_MAX: u32 = 1 << 20;

/// The number of a mirror's sides, and the size of its smallest side in bytes.
fn sides_of(sides: &[PoolDisk]) -> (usize, u64) {
    let smallest = sides.iter().map(|disk| disk.size).min();
    (sides.len(), smallest.unwrap_or(0))
}
