//! Tells the engine of the work that stores have finished: the ring, worker threads, lossy stores, and stores
//! that work in pieces.

use dashpot_engine::{DiskId, Input, ZioId};

use super::Shard;
use crate::store::{Ended, Finished};

impl Shard {
    /// Takes the results of finished work, at most [`COMPLETIONS_PER_PASS`] of them.
    pub(super) fn end_device_work(&mut self) {
        for _ in 0..COMPLETIONS_PER_PASS {
            let Some(completion) = self.storage.ring().next_completion() else {
                return;
            };
            self.read_clock();
            if let Some((id, outcome)) = self.store_work().take_completion(completion) {
                self.step(Input::Done(id, outcome), None);
            }
        }
    }

    /// Takes the result of a worker thread's job.
    pub(super) fn work_done(&mut self, id: ZioId, finished: Finished) {
        self.store_work()
            .take_result(id, finished.buffer, finished.outcome);
        self.step(Input::Done(id, finished.outcome), None);
    }

    /// Continues work that was left for this pass: a piece of each long trim or zeroing in memory, and the
    /// zios of pools whose bytes the last pass was not allowed to move.
    pub(super) fn work_on(&mut self) {
        self.storage.unfinished().begin_pass();
        for _ in 0..self.storage.unfinished().pieces() {
            let Some((id, done)) = self.storage.unfinished().pop_piece() else {
                break;
            };
            match self.store_work().work_piece(id, done) {
                Some(Ok(done)) => self.storage.unfinished().push_piece(id, done),
                Some(Err(outcome)) => {
                    self.read_clock();
                    self.step(Input::Done(id, outcome), None);
                }
                None => {}
            }
        }
        for disk in self.storage.unfinished().take_tended() {
            let ended = self.storage.tend(disk);
            self.end_tasks(disk, ended);
        }
    }

    /// Takes the result of a batch of a lossy store.
    pub(super) fn settled(&mut self, disk: DiskId, finished: Finished) {
        let ended = self.storage.settled(disk, finished);
        self.end_tasks(disk, ended);
    }

    fn end_tasks(&mut self, disk: DiskId, ended: Vec<Ended>) {
        if ended.is_empty() {
            return;
        }
        self.read_clock();
        for one in ended {
            match one {
                Ended::Done(Some(id), outcome) => {
                    if !id.is_child() {
                        self.zios.end_work(id);
                    }
                    self.step(Input::Done(id, outcome), None);
                }
                Ended::Done(None, _) => {}
                Ended::Retry(id, done) => self.storage.unfinished().push_piece(id, done),
                Ended::Restored(outcome) => self.control.cuts().restored(disk, outcome),
            }
        }
    }
}

/// How many results the shard takes before it looks at the sockets.
const COMPLETIONS_PER_PASS: usize = 256;
