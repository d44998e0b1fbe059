//! Does the tasks of a lossy store, which move writes between the cache and the medium.

use std::ops::Range;

use dashpot_engine::{Errno, Instant, Outcome};

use super::batch::Settled;
use super::task::{Ended, Going, Kind, Task};
use super::{Asker, Change, ChangeAnswer, Lossy};
use crate::store::medium::Medium;

/// A look at a run takes about as long as to move this many bytes.
pub(super) const PER_VISIT: u64 = 1 << 10;

impl<M: Medium> Lossy<M> {
    pub(super) fn push(&mut self, kind: Kind, sectors: Range<u64>) {
        let is_clean = |task: &Task| matches!(task.kind, Kind::Clean) && task.left == sectors;
        if !matches!(kind, Kind::Clean) || !self.tasks.back().is_some_and(is_clean) {
            self.tasks.push_back(Task::new(kind, sectors));
        }
    }

    pub(crate) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Does the next batch of the first task, or asks the caller to do it elsewhere. Adds the tasks that end
    /// to `ended`.
    pub(crate) fn go_on(&mut self, ended: &mut Vec<Ended>) -> Going {
        if self.at_medium.is_some() || self.paused {
            return Going::Idle;
        }
        let Some(task) = self.tasks.front_mut() else {
            return Going::Idle;
        };
        if let Some((zio, done)) = task.parked() {
            self.tasks.pop_front();
            ended.push(Ended::Retry(zio, done));
            return Going::More(0);
        }
        if let Kind::Early { begun } = &mut task.kind
            && !std::mem::replace(begun, true)
        {
            self.cache.make_sure();
        }
        let choice = task.choice();
        let (mut batch, visits) = self.cache.collect(&mut task.left, &choice);
        batch.sync = task.left.is_empty() && task.syncs();
        if task.makes_room() {
            self.early += batch.writes();
        }
        let moved = batch.moves + visits.count() * PER_VISIT;
        self.at_medium = Some(visits);
        let settled = match () {
            () if batch.is_empty() => Settled::nothing(),
            () if self.medium.waits() => return Going::Elsewhere(batch),
            () => batch.run(&mut self.medium),
        };
        self.settled(&settled, ended);
        Going::More(moved)
    }

    /// Takes the result of the batch that is at the medium.
    pub(crate) fn settled(&mut self, settled: &Settled, ended: &mut Vec<Ended>) {
        let Some(visits) = self.at_medium.take() else {
            return;
        };
        self.cache.settled(&visits, settled);
        let is_last = |task: &&mut Task| task.left.is_empty() || settled.outcome.is_err();
        if self.tasks.front_mut().filter(is_last).is_none() {
            return;
        }
        let task = self.tasks.pop_front();
        match task.map(|task| task.kind) {
            Some(Kind::Flush { zio, .. } | Kind::Fua { zio, .. }) => {
                ended.push(Ended::Done(zio, settled.outcome));
            }
            Some(Kind::Restore) => ended.push(Ended::Restored(settled.outcome)),
            Some(Kind::Early { .. }) => {
                if let Err(errno) = settled.outcome {
                    self.fail_parked(errno, ended);
                }
            }
            Some(Kind::Clean | Kind::Retry { .. }) | None => {}
        }
    }

    /// Fails the zios that wait for room in the cache, because the medium takes nothing.
    fn fail_parked(&mut self, errno: Errno, ended: &mut Vec<Ended>) {
        let parked = self.take_parked().into_iter();
        ended.extend(parked.map(|(zio, _)| Ended::Done(Some(zio), Err(errno))));
    }

    /// Makes a change that counts as told at once, and waits for the medium.
    pub(crate) fn change_now(&mut self, change: Change<'_>) -> Outcome {
        let asker = Asker {
            zio: None,
            client: "".into(),
            told_before: 0,
            at: Instant::ZERO,
        };
        while self.ask(asker.clone(), change) == ChangeAnswer::Full {
            self.push(Kind::Early { begun: false }, 0..u64::MAX);
            self.finish()?;
        }
        self.finish()
    }

    /// Writes all of the cache to the medium, and waits for it.
    pub(crate) fn sync_all(&mut self) -> Outcome {
        self.finish()?;
        self.cache.make_all_sure();
        self.early = 0;
        self.push(Kind::Restore, 0..u64::MAX);
        self.finish()
    }

    /// Does all tasks, and waits for the medium. No batch may be at the medium. Returns the first error.
    pub(crate) fn finish(&mut self) -> Outcome {
        let mut ended = Vec::new();
        loop {
            match self.go_on(&mut ended) {
                Going::Idle => break,
                Going::More(_) => {}
                Going::Elsewhere(batch) => {
                    let settled = batch.run(&mut self.medium);
                    self.settled(&settled, &mut ended);
                }
            }
        }
        ended.iter().try_for_each(|one| match one {
            Ended::Done(_, outcome) | Ended::Restored(outcome) => *outcome,
            Ended::Retry(..) => Ok(()),
        })
    }
}
