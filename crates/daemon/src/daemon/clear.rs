//! Clears one rule, the rules of a disk, or all rules. If a shard fails, a call for all disks still changes
//! the disks of the other shards.

use dashpot_engine::inject::RuleId;
use dashpot_engine::{Answer, Command, DiskId, Left, Release, Target};
use dashpot_rules::Injection;
use tokio::sync::MutexGuard;

use super::{Daemon, asked};
use crate::refusal::Refusal;
use crate::registry::Registry;

/// The rules that a caller wants to clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The rules with this id or name.
    Rule(String),
    /// The rules of the disk with this name.
    Disk(String),
    /// All rules.
    All,
}

/// The result of clearing rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// The rules that were removed.
    pub rules: Vec<RuleId>,
    /// The zios that these rules still hold.
    pub left: Left,
    /// The indices of the disks with rules that could not be cleared, and the reasons.
    pub failed: Vec<(usize, Refusal)>,
}

impl Cleared {
    fn add(&mut self, more: Cleared) {
        self.rules.extend(more.rules);
        self.left.held += more.left.held;
        self.left.hung += more.left.hung;
        self.failed.extend(more.failed);
    }
}

/// The result of a reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    pub cleared: Cleared,
    pub armed: Vec<RuleId>,
}

impl Daemon {
    /// Removes rules. `release` says which of the zios that these rules hold complete at once.
    pub async fn clear(&self, scope: &Scope, release: Release) -> Result<Cleared, Refusal> {
        let mut registry = self.registry.lock().await;
        match scope {
            Scope::Rule(key) => self.clear_rules(&mut registry, key, release).await,
            Scope::Disk(name) => {
                let disk = self.disk(name)?;
                self.clear_disk(&mut registry, disk, release).await
            }
            Scope::All => Ok(self.clear_all(&mut registry, release).await),
        }
    }

    /// Restores the state in which the lab starts: releases and clears every rule, frees the names of cleared
    /// rules, resumes every disk, and arms the lab's rules. A reset keeps the counters of disks.
    pub async fn reset(&self) -> Reset {
        let mut registry = self.registry.lock().await;
        let mut cleared = self.clear_all(&mut registry, Release::All).await;
        registry.past.reset();
        let mut armed = Vec::new();
        for (disk, _) in self.disks() {
            if cleared.failed.iter().any(|(failed, _)| *failed == disk) {
                continue;
            }
            match self.resume_and_arm(&mut registry, disk).await {
                Ok(rules) => armed.extend(rules),
                Err(refusal) => cleared.failed.push((disk, refusal)),
            }
        }
        Reset { cleared, armed }
    }

    async fn resume_and_arm(
        &self,
        registry: &mut MutexGuard<'_, Registry>,
        disk: usize,
    ) -> Result<Vec<RuleId>, Refusal> {
        self.command(disk, Command::Resume).await?;
        let of_disk = self.lab_rules.iter().filter(|(of, _)| *of == disk);
        let injections: Vec<Injection> = of_disk.map(|(_, rule)| rule.clone()).collect();
        let mut armed = Vec::new();
        for injection in injections {
            let records = self.inject_in(registry, disk, injection, None).await?;
            armed.extend(records.iter().map(|record| record.id));
        }
        Ok(armed)
    }

    async fn clear_all(
        &self,
        registry: &mut MutexGuard<'_, Registry>,
        release: Release,
    ) -> Cleared {
        let mut cleared = Cleared::default();
        for (disk, _) in self.disks() {
            match self.clear_disk(registry, disk, release).await {
                Ok(of_disk) => cleared.add(of_disk),
                Err(refusal) => cleared.failed.push((disk, refusal)),
            }
        }
        cleared.rules.sort_unstable();
        cleared
    }

    async fn clear_disk(
        &self,
        registry: &mut MutexGuard<'_, Registry>,
        disk: usize,
        release: Release,
    ) -> Result<Cleared, Refusal> {
        let clear = |disk| Command::Clear {
            target: Target::Disk(disk),
            release,
        };
        self.clear_with(registry, disk, clear).await
    }

    async fn clear_rules(
        &self,
        registry: &mut MutexGuard<'_, Registry>,
        key: &str,
        release: Release,
    ) -> Result<Cleared, Refusal> {
        let mut cleared = Cleared::default();
        for record in registry.find(key)? {
            let target = Target::Rule(record.id);
            let clear = |_| Command::Clear { target, release };
            cleared.add(self.clear_with(registry, record.disk, clear).await?);
        }
        Ok(cleared)
    }

    pub(super) async fn clear_with(
        &self,
        registry: &mut MutexGuard<'_, Registry>,
        disk: usize,
        build: impl FnOnce(DiskId) -> Command,
    ) -> Result<Cleared, Refusal> {
        // The shard takes the snapshot before it clears the rules.
        let last = asked(|answer| self.handle.snapshot(disk, 0, answer));
        let Answer::Cleared(rules, left) = self.command(disk, build).await? else {
            return Ok(Cleared::default());
        };
        let removed = registry.remove(&rules);
        let last = last.await.ok();
        for record in removed {
            registry.past.remember(record, last.as_ref());
        }
        Ok(Cleared {
            rules,
            left,
            failed: Vec::new(),
        })
    }
}
