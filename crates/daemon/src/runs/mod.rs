//! The scenarios that run, and those that ended last.

mod run;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use self::run::{Run, State};

/// The runs of scenarios.
#[derive(Default)]
pub(crate) struct Runs(Mutex<Known>);

#[derive(Default)]
struct Known {
    last: u64,
    running: Vec<Arc<Run>>,
    ended: VecDeque<Arc<Run>>,
}

/// The most ended runs that are remembered.
const ENDED_MAX: usize = 16;

impl Runs {
    /// Adds the run that `make` makes with its id. If another one runs on one of its disks, returns that disk and the
    /// other.
    pub(crate) fn begin(
        &self,
        make: impl FnOnce(u64) -> Run,
    ) -> Result<Arc<Run>, (usize, Arc<Run>)> {
        let mut known = self.lock();
        let run = Arc::new(make(known.last + 1));
        let mut disks = run.disks.iter();
        if let Some(taken) = disks.find_map(|disk| Some((*disk, known.of_disk(*disk)?))) {
            return Err(taken);
        }
        known.last = run.id;
        known.running.push(Arc::clone(&run));
        Ok(run)
    }

    /// The run on a disk.
    pub(crate) fn of_disk(&self, disk: usize) -> Option<Arc<Run>> {
        self.lock().of_disk(disk)
    }

    /// Those that run.
    pub(crate) fn running(&self) -> Vec<Arc<Run>> {
        self.lock().running.clone()
    }

    /// Those that ended last, and those that run, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Run>> {
        let known = self.lock();
        known.ended.iter().chain(&known.running).cloned().collect()
    }

    /// Notes that a run has ended.
    pub(crate) fn end(&self, run: &Arc<Run>) {
        let mut known = self.lock();
        known.running.retain(|other| !Arc::ptr_eq(other, run));
        known.ended.push_back(Arc::clone(run));
        if known.ended.len() > ENDED_MAX {
            known.ended.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn of_disk(&self, disk: usize) -> Option<Arc<Run>> {
        let mut running = self.running.iter();
        running.find(|run| run.disks.contains(&disk)).cloned()
    }
}
