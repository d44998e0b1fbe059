//! The steps of a scenario, and how they are undone. A scenario owns what it made, and undoes nothing else.

use std::collections::{BTreeMap, BTreeSet};

use dashpot_engine::Release;
use dashpot_engine::inject::RuleId;
use dashpot_engine::pool::Tunable;
use dashpot_export::{Cut, Keep, Then};
use dashpot_rules::Injection;
use dashpot_rules::scenario::{Action, Power, Step, Survives, Which};

use super::check::pools_of;
use crate::daemon::{Daemon, Scope};
use crate::refusal::{Refusal, RefusalKind};

/// What a scenario has made, and not undone yet.
#[derive(Default)]
pub(super) struct Made {
    /// The rules, each with its label.
    rules: Vec<(Option<String>, RuleId)>,
    suspended: BTreeSet<usize>,
    off: BTreeSet<Powered>,
    /// The tunables, by pool and name.
    tuned: BTreeMap<(usize, &'static str), Tuned>,
}

/// What has power of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Powered {
    Disk(usize),
    Pool(usize),
}

/// A tunable that a scenario has set.
#[derive(Clone, Copy)]
struct Tuned {
    tunable: Tunable,
    before: u64,
    set: u64,
}

impl Made {
    /// Makes a step on each disk in turn.
    pub(super) async fn make(
        &mut self,
        daemon: &Daemon,
        disks: &[usize],
        step: &Step,
    ) -> Result<(), Refusal> {
        match &step.action {
            Action::Wait | Action::Mark(_) | Action::Repeat { .. } => Ok(()),
            Action::Inject { label, injection } => {
                let label = label.as_deref();
                self.inject(daemon, disks, label, injection).await
            }
            Action::Update { label, rule } => {
                for id in self.labelled(label) {
                    daemon.update(&id.0.to_string(), (**rule).clone()).await?;
                }
                Ok(())
            }
            Action::Clear(which) => clear(daemon, self.take(which)).await,
            Action::Suspend => self.suspend(daemon, disks).await,
            Action::Resume => self.resume(daemon).await,
            Action::Crash { then, survives } => {
                let cut = cut(*then, *survives, step.line);
                self.crash(daemon, disks, cut).await
            }
            Action::Tune { pool, changes } => {
                for pool in pools_of(daemon, pool.as_deref(), disks)? {
                    self.tune(daemon, pool, changes).await?;
                }
                Ok(())
            }
        }
    }

    /// Undoes all. Returns what could not be undone.
    pub(super) async fn undo(mut self, daemon: &Daemon) -> Vec<String> {
        let mut done = vec![
            clear(daemon, self.take(&Which::All)).await,
            self.resume(daemon).await,
        ];
        for powered in self.off {
            done.push(restart(daemon, powered).await);
        }
        let pools: BTreeSet<usize> = self.tuned.keys().map(|(pool, _)| *pool).collect();
        for pool in pools {
            let of_pool = self.tuned.iter().filter(|((of, _), _)| *of == pool);
            let of_pool = of_pool.map(|(_, tuned)| *tuned).collect();
            done.push(restore(daemon, pool, of_pool).await);
        }
        let failed = done.into_iter().filter_map(Result::err);
        failed.map(|refusal| refusal.to_string()).collect()
    }

    async fn inject(
        &mut self,
        daemon: &Daemon,
        disks: &[usize],
        label: Option<&str>,
        injection: &Injection,
    ) -> Result<(), Refusal> {
        for disk in disks {
            let name = &daemon.info(*disk).name;
            let armed = daemon.inject(name, injection.clone(), None).await?;
            let rules = armed.iter().map(|rule| (label.map(str::to_owned), rule.id));
            self.rules.extend(rules);
        }
        Ok(())
    }

    /// Suspends the disks that nobody else has suspended.
    async fn suspend(&mut self, daemon: &Daemon, disks: &[usize]) -> Result<(), Refusal> {
        for disk in disks {
            if daemon.snapshot(*disk, 0).await?.suspended.is_none() {
                daemon.suspend(&daemon.info(*disk).name, None, true).await?;
                self.suspended.insert(*disk);
            }
        }
        Ok(())
    }

    async fn resume(&mut self, daemon: &Daemon) -> Result<(), Refusal> {
        while let Some(disk) = self.suspended.pop_first() {
            daemon.resume(&daemon.info(disk).name).await?;
        }
        Ok(())
    }

    /// Cuts the power of the disks. A pool loses power as a whole.
    async fn crash(&mut self, daemon: &Daemon, disks: &[usize], cut: Cut) -> Result<(), Refusal> {
        let powered = disks.iter().map(|disk| match daemon.info(*disk).pool {
            Some(pool) => Powered::Pool(pool),
            None => Powered::Disk(*disk),
        });
        for powered in powered.collect::<BTreeSet<_>>() {
            cut_power(daemon, powered, cut).await?;
            match cut.then {
                Then::Off => self.off.insert(powered),
                Then::GoesOn | Then::Restart => self.off.remove(&powered),
            };
        }
        Ok(())
    }

    async fn tune(
        &mut self,
        daemon: &Daemon,
        pool: usize,
        changes: &[(Tunable, u64)],
    ) -> Result<(), Refusal> {
        let before = daemon.snapshot_pool(pool).await?.tunables;
        daemon.tune(pool, changes.to_vec()).await?;
        for (tunable, set) in changes.iter().copied() {
            let tuned = self.tuned.entry((pool, tunable.info().name));
            let tuned = tuned.or_insert(Tuned {
                tunable,
                before: before.get(tunable),
                set,
            });
            tuned.set = set;
        }
        Ok(())
    }

    fn labelled(&self, label: &str) -> Vec<RuleId> {
        let ours = self.rules.iter();
        let ours = ours.filter(|(of, _)| of.as_deref() == Some(label));
        ours.map(|(_, id)| *id).collect()
    }

    /// Removes rules from what was made, and returns their ids.
    fn take(&mut self, which: &Which) -> Vec<RuleId> {
        let is_meant = |label: &Option<String>| match which {
            Which::All => true,
            Which::Label(wanted) => label.as_ref() == Some(wanted),
        };
        let taken = self.rules.extract_if(.., |(label, _)| is_meant(label));
        taken.map(|(_, id)| id).collect()
    }
}

/// Clears rules, and completes the zios that they hang. Somebody may have cleared some of them already.
async fn clear(daemon: &Daemon, rules: Vec<RuleId>) -> Result<(), Refusal> {
    for rule in rules {
        let scope = Scope::Rule(rule.0.to_string());
        match daemon.clear(&scope, Release::Hung).await {
            Err(refusal) if refusal.kind != RefusalKind::NotFound => return Err(refusal),
            _ => {}
        }
    }
    Ok(())
}

async fn cut_power(daemon: &Daemon, powered: Powered, cut: Cut) -> Result<(), Refusal> {
    match powered {
        Powered::Disk(disk) => daemon.cut(&daemon.info(disk).name, cut).await.map(drop),
        Powered::Pool(pool) => daemon.cut_pool(pool, cut).await.map(drop),
    }
}

/// Serves again what is still off.
async fn restart(daemon: &Daemon, powered: Powered) -> Result<(), Refusal> {
    if !is_off(daemon, powered).await? {
        return Ok(());
    }
    let cut = cut(Power::Restart, Survives::Random, 0);
    cut_power(daemon, powered, cut).await
}

async fn is_off(daemon: &Daemon, powered: Powered) -> Result<bool, Refusal> {
    match powered {
        Powered::Disk(disk) => Ok(daemon.snapshot(disk, 0).await?.off),
        Powered::Pool(pool) => {
            let mut volumes = daemon.volumes();
            match volumes.find(|(_, volume)| volume.pool == pool) {
                Some((volume, _)) => Ok(daemon.snapshot_volume(volume, 0).await?.off),
                None => Ok(false),
            }
        }
    }
}

/// Restores the tunables of a pool that still have the scenario's values.
async fn restore(daemon: &Daemon, pool: usize, tuned: Vec<Tuned>) -> Result<(), Refusal> {
    let now = daemon.snapshot_pool(pool).await?.tunables;
    let ours = tuned
        .iter()
        .filter(|tuned| now.get(tuned.tunable) == tuned.set);
    let changes: Vec<_> = ours.map(|tuned| (tuned.tunable, tuned.before)).collect();
    if changes.is_empty() {
        return Ok(());
    }
    daemon.tune(pool, changes).await.map(drop)
}

/// A power cut. The line of its step is the seed, so that the same scenario chooses alike.
fn cut(then: Power, survives: Survives, line: usize) -> Cut {
    Cut {
        keep: match survives {
            Survives::None => Keep::None,
            Survives::All => Keep::All,
            Survives::Random => Keep::Random,
        },
        tear: None,
        seed: line as u64,
        then: match then {
            Power::GoesOn => Then::GoesOn,
            Power::Off => Then::Off,
            Power::Restart => Then::Restart,
        },
    }
}
