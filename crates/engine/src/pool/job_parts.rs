//! The parts of jobs: how a pool begins a job, and continues it in each tick.

use super::blocks::Content;
use super::cut::Memory;
use super::jobs::{Home, Job, Stage, Sync, TOUCHED_MAX};
use super::piece::Piece;
use super::pool::Pool;
use super::request::Phase;
use super::step::Step;
use super::volume::Volume;
use crate::zio::{Op, ZioId};

impl Pool {
    /// Whether the pool has unfinished jobs, which need ticks.
    pub(crate) fn has_jobs(&self) -> bool {
        !self.jobs.waiting.is_empty()
    }

    /// Begins a job, and ends it if it is short.
    pub(super) fn begin_job(&mut self, job: Job, step: &mut Step<'_>) {
        let rest = self.first_of(job, step);
        self.jobs.waiting.extend(rest);
    }

    /// Does the first part of a job, unless other jobs wait. Returns the rest, if there is one.
    fn first_of(&mut self, job: Job, step: &mut Step<'_>) -> Option<Job> {
        if self.has_jobs() {
            return Some(job);
        }
        if step.now > self.jobs.since {
            self.jobs.begin_anew(step.now);
        }
        self.some_of(job, step)
    }

    /// Does a part of a job. Returns the rest, if there is one.
    pub(super) fn some_of(&mut self, job: Job, step: &mut Step<'_>) -> Option<Job> {
        match job {
            Job::Dirty { zio, from } => self.dirty_some(zio, from, step),
            Job::Through { zio, from } => self.write_some_through(zio, from, step),
            Job::Read { zio, from } => self.read_some(zio, from, step),
            Job::Home(home) => self.send_some_home(home, step).map(Job::Home),
            Job::Sync(sync) => self.sync_some(sync, step).map(Job::Sync),
            Job::Released => (!self.queue_released(step)).then_some(job),
            Job::Place => None,
            Job::Cut => (!self.go_on_with_cut(step)).then_some(job),
            Job::Landed(landed) => self.send_some_behind(landed, step).map(Job::Landed),
        }
    }
}

/// Makes the blocks of long writes, zeroes and trims dirty.
impl Pool {
    /// Makes the blocks of an admitted write, zero or trim dirty, in several steps if there are many. The
    /// request holds its locks until the last step.
    pub(super) fn dirty_in_parts(&mut self, id: ZioId, step: &mut Step<'_>) {
        if let Some(rest) = self.first_of(Job::Dirty { zio: id, from: 0 }, step) {
            self.lock_at_once(id);
            let (_, zio) = self.begin(id, Phase::Writing, step.now);
            if let Job::Dirty { from, .. } = rest
                && zio.op == Op::Write
            {
                self.throttle.comes(u64::from(zio.length - from));
            }
            self.jobs.waiting.push_back(rest);
        }
    }

    fn dirty_some(&mut self, id: ZioId, begin: u32, step: &mut Step<'_>) -> Option<Job> {
        let request = &self.requests[id];
        let (volume, zio) = (request.volume, request.zio);
        // The first part of a write has told the throttle about the rest. Only the later parts find the write
        // in this phase.
        let is_known = zio.op == Op::Write && request.phase == Phase::Writing;
        let mut from = begin;
        while from < zio.length {
            if !self.jobs.touch() {
                self.sync_if_full();
                return Some(Job::Dirty { zio: id, from });
            }
            let target = &self.volumes[volume];
            let most = TOUCHED_MAX - self.jobs.touched;
            let piece = target.pieces_from(&zio, from).next()?;
            let (piece, touched) = target.first_part(piece, most);
            self.jobs.touched += touched;
            self.throttle.promise(target.most_dirty_of(piece));
            if is_known {
                self.throttle.came(u64::from(piece.length));
            }
            let content = match zio.op {
                Op::Zero => Content::Zero,
                _ => Content::Trim,
            };
            if piece.is_run() {
                self.dirty_run(volume, piece, content, begin > 0 && from == begin, step);
            } else {
                self.dirty(volume, &zio, piece, step);
            }
            from += piece.length;
        }
        self.all_dirty(id, step);
        None
    }
}

impl Volume {
    /// The first part of a piece. A part of a run touches at most `most` blocks and at most `most` extents.
    /// Also returns how many blocks and extents the part touches.
    fn first_part(&self, piece: Piece, most: u32) -> (Piece, u32) {
        if !piece.is_run() {
            return (piece, 0);
        }
        let (range, most) = (piece.block..piece.end(), most.max(1) as usize);
        let block = self.blocks.used(range.clone()).nth(most);
        let extent = self.extents.meeting(range).nth(most);
        let ends = [block, extent, Some(piece.end())];
        let end = ends.into_iter().flatten().min().unwrap_or(piece.end());
        let count = end - piece.block;
        let part = Piece {
            count,
            length: count * self.block_size,
            ..piece
        };
        let range = part.block..end;
        let blocks = self.blocks.used(range.clone()).count();
        (part, (blocks + self.extents.meeting(range).count()) as u32)
    }
}

/// Queues writes to the disks.
impl Pool {
    fn send_some_home(&mut self, mut home: Home, step: &mut Step<'_>) -> Option<Home> {
        let Home { zio, volume, .. } = home;
        loop {
            let (range, target) = (home.at..home.end, &self.volumes[volume]);
            let found = match home.stage {
                Stage::OnWay | Stage::Begun => target.extents.next_on_way(range),
                Stage::Extents => target.extents.next_dirty(range),
                Stage::Blocks => target.blocks.next_used(range).map(|block| block..block + 1),
            };
            let Some(found) = found else {
                home.at = home.start;
                home.stage = match home.stage {
                    Stage::OnWay => Stage::Extents,
                    Stage::Extents if home.is_parted => Stage::Begun,
                    Stage::Extents | Stage::Begun => Stage::Blocks,
                    Stage::Blocks => break,
                };
                continue;
            };
            if !self.jobs.touch() {
                home.is_parted = true;
                return Some(home);
            }
            match home.stage {
                Stage::OnWay | Stage::Begun => self.watch_on_way(volume, found.start, zio, step),
                Stage::Extents => self.watch_extent(volume, found.start, zio, step),
                Stage::Blocks => self.watch(volume, found.start, zio, step),
            }
            home.at = found.end;
        }
        self.one_less(zio, Ok(()), step);
        None
    }

    fn sync_some(&mut self, mut sync: Sync, step: &mut Step<'_>) -> Option<Sync> {
        let mut is_done = true;
        // If all blocks of the txg were written because requests waited for them, the txg may have ended
        // already.
        while self.txgs.syncing() == Some(sync.txg)
            && let Some(target) = self.volumes.get(sync.volume)
        {
            let range = sync.at..u32::MAX;
            let found = if sync.has_extents {
                target.blocks.next_used(range).map(|block| block..block + 1)
            } else {
                target.extents.next_dirty(range)
            };
            let Some(found) = found else {
                (sync.volume, sync.at) = (sync.volume + usize::from(sync.has_extents), 0);
                sync.has_extents = !sync.has_extents;
                continue;
            };
            if !self.jobs.touch() {
                is_done = false;
                break;
            }
            if sync.has_extents {
                self.enlist(sync.volume, found.start, sync.txg, step.now);
            } else {
                self.enlist_extent(sync.volume, found.start, sync.txg, step.now);
            }
            sync.at = found.end;
        }
        if is_done
            && self.txgs.syncing() == Some(sync.txg)
            && let Some(rest) = self.enlist_metadata(sync.txg, sync.metadata)
        {
            (sync.metadata, is_done) = (rest, false);
        }
        self.push_batches(step.now);
        if is_done {
            self.pump_all(step);
            self.commit_if_home(step);
        }
        (!is_done).then_some(sync)
    }
}

/// Lets go on what has waited for a power cut or for a mirror.
impl Pool {
    /// Does a part of a cut's work: frees what is lost, and then starts the requests that have waited. Returns
    /// whether the cut has ended.
    fn go_on_with_cut(&mut self, step: &mut Step<'_>) -> bool {
        let Some(cut) = &mut self.cut else {
            return true;
        };
        let mut memory = Memory {
            volumes: &mut self.volumes,
            map: &mut self.map,
            reads: &mut self.reads,
            writes: &mut self.writes,
        };
        if !cut.lose_some(&mut memory, &mut self.jobs, step) {
            return false;
        }
        while self.jobs.has_room() {
            if !self.start_next(step) {
                self.cut = None;
                return true;
            }
            self.jobs.touch();
        }
        false
    }

    /// Starts the next of the requests that have waited for the end of a cut. Returns false if there is none.
    fn start_next(&mut self, step: &mut Step<'_>) -> bool {
        // If other jobs of this step have let earlier requests go on, these requests go first.
        while self.resume_next(step) {}
        let Some(id) = self.cut.as_mut().and_then(|cut| cut.next_waiting()) else {
            return false;
        };
        let request = &self.requests[id];
        let (zio, volume) = (request.zio, request.volume);
        let blocks = self.volumes[volume].blocks_of(&zio);
        self.start(id, zio.op, step);
        if !self.volumes[volume].is_long(&zio) {
            self.jobs.touched += blocks.end - blocks.start;
        }
        true
    }

    /// Queues some of the released writes. Returns whether all released writes are queued.
    fn queue_released(&mut self, step: &mut Step<'_>) -> bool {
        while let Some(mirrors) = &mut self.mirrors
            && !mirrors.released.is_empty()
        {
            if !self.jobs.touch() {
                return false;
            }
            if let Some(id) = mirrors.released.pop_front() {
                self.push_write(id, step);
            }
        }
        true
    }
}
