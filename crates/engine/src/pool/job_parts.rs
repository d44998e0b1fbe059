//! How a pool starts and continues requests, and how it begins a job and continues it in each tick.

use super::cut::Memory;
use super::jobs::Job;
use super::pool::Pool;
use super::request::Phase;
use super::step::Step;
use crate::zio::{Errno, Op, ZioId};

impl Pool {
    /// Whether the pool has unfinished jobs, which need ticks.
    pub(crate) fn has_jobs(&self) -> bool {
        !self.jobs.waiting.is_empty()
    }

    /// Begins a job, and ends it if it is short.
    pub(super) fn begin_job(&mut self, job: Job, step: &mut Step<'_>) {
        if self.jobs.begins(job, step.now) {
            let rest = self.some_of(job, step);
            self.jobs.waiting.extend(rest);
        }
    }

    /// Does a part of a job. Returns the rest, if there is one.
    pub(super) fn some_of(&mut self, job: Job, step: &mut Step<'_>) -> Option<Job> {
        match job {
            Job::Dirty { zio, from } => {
                let rest = self.dirty_some(zio, from, step);
                rest.map(|from| Job::Dirty { zio, from })
            }
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

/// The course of requests.
impl Pool {
    /// Starts a request.
    pub(super) fn start(&mut self, id: ZioId, op: Op, step: &mut Step<'_>) {
        match op {
            Op::Read => self.read(id, step),
            Op::Write | Op::Zero | Op::Trim => self.write(id, step),
            Op::Flush => self.flush(id, step),
            Op::Cache => self.finish(id, Ok(()), step),
            // A pool has no files.
            _ => self.finish(id, Err(Errno::NotSup), step),
        }
    }

    /// Continues what waits for nothing more, or the next request whose turn has come: after a failure, at the
    /// throttle, or for a lock. False if there is none.
    pub(super) fn resume_next(&mut self, step: &mut Step<'_>) -> bool {
        if self.go_on_next(step) {
            return true;
        }
        if let Some(id) = self.failures.pop_resumed() {
            self.ask(id, step);
        } else if let Some(id) = self.throttle.pop_admitted(step.now) {
            self.admitted(id, step);
        } else if let Some(id) = self.unlocked.pop_front() {
            self.lock_and_fill(id, true, step);
        } else {
            return false;
        }
        true
    }

    /// Continues the next request that waits for nothing more, or else sends the newer version of the next block
    /// whose write has ended. False if there is none.
    pub(super) fn go_on_next(&mut self, step: &mut Step<'_>) -> bool {
        if let Some(id) = self.requests.next_ready() {
            self.go_on(id, step);
        } else if let Some((volume, block)) = self.written.pop_front() {
            self.after_write(volume, block, step);
        } else {
            return false;
        }
        true
    }

    /// Continues a request that waits for nothing more.
    fn go_on(&mut self, id: ZioId, step: &mut Step<'_>) {
        let request = &self.requests[id];
        let (op, outcome) = (request.zio.op, request.outcome);
        match request.phase {
            Phase::Reading if op != Op::Read && outcome.is_ok() => self.filled(id, step),
            Phase::Writing if outcome.is_ok() => self.home(id, step),
            _ => self.finish(id, outcome, step),
        }
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
