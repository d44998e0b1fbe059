//! Carries out commands, which change rules, the states of disks, and tunables.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::Engine;
use super::part::Part;
use crate::command::{Action, Answer, Command, CommandError, CommandId, Left, Release, Target};
use crate::flight::State;
use crate::inject::{GroupId, RULES_MAX, Rule, RuleId, RuleSpec};
use crate::pool::{Pool, Step, Tunable};
use crate::time::{Duration, Instant};
use crate::zio::{DiskId, Errno, PoolId, ZioId};

impl Engine {
    /// This function is not inlined, because a larger [`Engine::step`] would slow down every zio.
    #[cold]
    pub(super) fn command(&mut self, id: CommandId, command: Command, actions: &mut Vec<Action>) {
        let answer = match command {
            Command::Inject { disk, group, rules } => self.inject(disk, group, rules),
            Command::Update(rule, spec) => self.update(rule, *spec, actions),
            Command::Clear { target, release } => self.clear(target, release, actions),
            Command::Suspend { disk, lasts, now } => {
                match self.suspend(id, disk, lasts, now, actions) {
                    Ok(()) => return,
                    Err(error) => Err(error),
                }
            }
            Command::Resume(disk) => match self.resume(disk, actions) {
                Some(waiting) => Ok(Answer::Resumed { waiting }),
                None => Err(CommandError::UnknownDisk(disk)),
            },
            Command::Tune { pool, changes } => self.tune(pool, changes, actions),
            Command::Crash(pool) => self.crash(pool, actions),
            Command::Repair(pool) => {
                let repaired = self.settle_pool(pool.0 as usize, actions, |pool, _| pool.repair());
                let repaired = repaired.ok_or(CommandError::UnknownPool(pool));
                repaired.map(|()| Answer::Done)
            }
            Command::Drain => {
                for pool in 0..self.pools.len() {
                    self.with_pool(pool, actions, Pool::drain);
                }
                Ok(Answer::Done)
            }
            Command::FailHeld(errno) => {
                self.fail_held(errno, actions);
                Ok(Answer::Done)
            }
        };
        actions.push(Action::Answer(id, answer));
    }

    fn inject(
        &mut self,
        disk: DiskId,
        group: GroupId,
        rules: Vec<(RuleId, RuleSpec)>,
    ) -> Result<Answer, CommandError> {
        let now = self.now;
        let target = self.disks.get_mut(disk.0 as usize);
        let target = target.ok_or(CommandError::UnknownDisk(disk))?;
        let armed = target.injector.rules();
        if armed.len() + rules.len() > RULES_MAX {
            return Err(CommandError::TooManyRules { limit: RULES_MAX });
        }
        let next = check_all(&rules, self.next_rule)?;
        let arm = |(id, spec)| Rule::new(id, group, spec, target.seed, now, &target.clients);
        target.injector.add(rules.into_iter().map(arm));
        self.next_rule = next;
        Ok(Answer::Done)
    }

    fn update(
        &mut self,
        rule: RuleId,
        spec: RuleSpec,
        actions: &mut Vec<Action>,
    ) -> Result<Answer, CommandError> {
        check(&spec)?;
        let id = self.disk_of_rule(rule)?;
        self.with_disk(id, actions, |disk, flights, ctx| {
            disk.update(id, rule, spec, flights, ctx);
        });
        Ok(Answer::Done)
    }

    fn clear(
        &mut self,
        target: Target,
        release: Release,
        actions: &mut Vec<Action>,
    ) -> Result<Answer, CommandError> {
        let mut cleared = Vec::new();
        // Zios that are still held by rules removed earlier belong to no rule, so only a command for the
        // whole disk releases them.
        let whole = release == Release::All && !matches!(target, Target::Rule(_));
        let mut left = Left::default();
        for (disk, rules) in self.rules_of(target)? {
            if release == Release::All {
                self.release(disk, (!whole).then(|| rules.clone()), false, actions);
            } else {
                if release == Release::Hung {
                    self.release(disk, Some(rules.clone()), true, actions);
                }
                self.count_left(disk, &rules, release, &mut left);
            }
            self.with_disk(disk, actions, |disk, flights, ctx| {
                disk.remove(&rules, flights, ctx);
            });
            cleared.extend(rules);
        }
        cleared.sort_unstable();
        Ok(Answer::Cleared(cleared, left))
    }

    /// Counts the zios that these rules hold, and that `release` leaves held.
    fn count_left(&self, disk: DiskId, rules: &[RuleId], release: Release, left: &mut Left) {
        let injector = &self.disks[disk.0 as usize].injector;
        for flight in self.zios(disk).flights.of_disk(disk) {
            let is_held = matches!(flight.state, State::HeldBefore | State::Held | State::Store)
                && flight.target > self.now;
            let stays = release == Release::Nothing || !injector.hangs(flight);
            if is_held && stays && injector.is_decided_by(rules, flight) {
                left.held += 1;
                left.hung += u64::from(flight.target == Instant::NEVER);
            }
        }
    }

    /// Releases the zios that these rules hold, or only those that they hang; if `rules` is `None`, releases
    /// the zios that any rule holds.
    fn release(
        &mut self,
        disk: DiskId,
        rules: Option<Vec<RuleId>>,
        only_hung: bool,
        actions: &mut Vec<Action>,
    ) {
        let held = self.listed(disk, |state| {
            matches!(state, State::HeldBefore | State::Held | State::Store)
        });
        let part = Part::Release {
            disk,
            rules,
            only_hung,
            held,
        };
        self.in_parts(part, actions);
    }

    /// The rules to which a command applies, by disk, in the order of their ids.
    fn rules_of(&self, target: Target) -> Result<Vec<(DiskId, Vec<RuleId>)>, CommandError> {
        let of_disk = |disk: DiskId| {
            let rules = self.disks[disk.0 as usize].injector.rules();
            (disk, rules.iter().map(|rule| rule.id).collect())
        };
        match target {
            Target::Rule(rule) => Ok(vec![(self.disk_of_rule(rule)?, vec![rule])]),
            Target::Disk(disk) if self.disk(disk).is_none() => Err(CommandError::UnknownDisk(disk)),
            Target::Disk(disk) => Ok(vec![of_disk(disk)]),
            Target::All => Ok((0..self.disks.len() as u32)
                .map(|disk| of_disk(DiskId(disk)))
                .collect()),
        }
    }

    fn disk_of_rule(&self, rule: RuleId) -> Result<DiskId, CommandError> {
        let disk = self
            .disks
            .iter()
            .position(|disk| disk.injector.find(rule).is_some());
        disk.map(|disk| DiskId(disk as u32))
            .ok_or(CommandError::UnknownRule(rule))
    }

    fn suspend(
        &mut self,
        id: CommandId,
        disk: DiskId,
        lasts: Option<Duration>,
        at_once: bool,
        actions: &mut Vec<Action>,
    ) -> Result<(), CommandError> {
        let resumes_at = self.with_disk(disk, actions, |disk, _, ctx| {
            disk.suspend(id, lasts, at_once, ctx);
            disk.resumes_at()
        });
        match resumes_at.ok_or(CommandError::UnknownDisk(disk))? {
            Some(at) => self.resumes.set(disk.0, at),
            None => self.resumes.remove(disk.0),
        }
        Ok(())
    }

    pub(super) fn resume(&mut self, disk: DiskId, actions: &mut Vec<Action>) -> Option<u32> {
        self.resumes.remove(disk.0);
        let waiting = self.with_disk(disk, actions, |disk, _, ctx| disk.resume(ctx))?;
        self.in_parts(Part::Resume(disk), actions);
        Some(waiting)
    }

    fn tune(
        &mut self,
        pool: PoolId,
        changes: Vec<(Tunable, u64)>,
        actions: &mut Vec<Action>,
    ) -> Result<Answer, CommandError> {
        let tune = |pool: &mut Pool, step: &mut Step<'_>| pool.tune(changes, step);
        let tuned = self.with_pool(pool.0 as usize, actions, tune);
        let tuned = tuned.ok_or(CommandError::UnknownPool(pool))?;
        tuned.map_err(CommandError::Tunable)?;
        Ok(Answer::Done)
    }

    fn crash(&mut self, pool: PoolId, actions: &mut Vec<Action>) -> Result<Answer, CommandError> {
        for disk in self.disks_of(pool) {
            let zios = self.children.flights.of_disk(disk);
            let zios: Vec<ZioId> = zios.map(|flight| flight.zio.id).collect();
            zios.iter().for_each(|zio| self.sent.orphan(*zio));
            self.with_disk(disk, actions, |disk, flights, ctx| {
                disk.abort(&zios, flights, ctx);
            });
        }
        let lost = self.settle_pool(pool.0 as usize, actions, Pool::crash);
        let lost = lost.ok_or(CommandError::UnknownPool(pool))?;
        Ok(Answer::Crashed(lost))
    }

    fn fail_held(&mut self, errno: Errno, actions: &mut Vec<Action>) {
        for pool in 0..self.pools.len() {
            self.settle_pool(pool, actions, |pool, step| pool.close(errno, step));
        }
        for disk in (0..self.disks.len() as u32).map(DiskId) {
            if self.is_pooled(disk) {
                // The disk exists, so the engine never refuses this command.
                let _ = self.clear(Target::Disk(disk), Release::All, actions);
                self.resume(disk, actions);
                continue;
            }
            let held = self.listed(disk, |state| {
                matches!(state, State::Suspended | State::HeldBefore | State::Held)
            });
            self.with_disk(disk, actions, |disk, _, _| disk.close(errno));
            self.in_parts(Part::Fail { disk, errno, held }, actions);
        }
    }
}

fn check(spec: &RuleSpec) -> Result<(), CommandError> {
    spec.check()
        .map_err(|error| CommandError::InvalidRule(error.to_string()))
}

/// Refuses rules that the engine cannot carry out, and ids that have been used. Returns the smallest id that
/// the next rule may have.
fn check_all(rules: &[(RuleId, RuleSpec)], mut next: u32) -> Result<u32, CommandError> {
    for (id, spec) in rules {
        check(spec)?;
        if id.0 < next {
            let why = "the ids of rules must grow".to_string();
            return Err(CommandError::InvalidRule(why));
        }
        next = id.0.saturating_add(1);
    }
    Ok(next)
}
