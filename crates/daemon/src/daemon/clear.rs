//! Clears one rule, the rules of a disk, or all rules. If a shard fails, a call for all disks still changes
//! the disks of the other shards.

use dashpot_engine::inject::RuleId;
use dashpot_engine::{Answer, Command, DiskId, Target};
use dashpot_rules::Injection;
use tokio::sync::MutexGuard;

use super::Daemon;
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
    /// The indices of the disks with rules that could not be cleared, and the reasons.
    pub failed: Vec<(usize, Refusal)>,
}

/// The result of a reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    pub cleared: Cleared,
    pub armed: Vec<RuleId>,
}

impl Daemon {
    /// Removes rules. With `release`, all zios held by these rules complete at once.
    pub async fn clear(&self, scope: &Scope, release: bool) -> Result<Cleared, Refusal> {
        let mut registry = self.registry.lock().await;
        let rules = match scope {
            Scope::Rule(key) => self.clear_rules(&mut registry, key, release).await?,
            Scope::Disk(name) => {
                let disk = self.disk(name)?;
                self.clear_disk(&mut registry, disk, release).await?
            }
            Scope::All => return Ok(self.clear_all(&mut registry, release).await),
        };
        let failed = Vec::new();
        Ok(Cleared { rules, failed })
    }

    /// Restores the state in which the lab starts: releases and clears every rule, forgets cleared rules,
    /// resumes every disk, and arms the lab's rules. A reset keeps the counters of disks.
    pub async fn reset(&self) -> Reset {
        let mut registry = self.registry.lock().await;
        let mut cleared = self.clear_all(&mut registry, true).await;
        registry.past.forget();
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

    async fn clear_all(&self, registry: &mut MutexGuard<'_, Registry>, release: bool) -> Cleared {
        let mut cleared = Cleared::default();
        for (disk, _) in self.disks() {
            match self.clear_disk(registry, disk, release).await {
                Ok(rules) => cleared.rules.extend(rules),
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
        release: bool,
    ) -> Result<Vec<RuleId>, Refusal> {
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
        release: bool,
    ) -> Result<Vec<RuleId>, Refusal> {
        let mut cleared = Vec::new();
        for record in registry.find(key)? {
            let target = Target::Rule(record.id);
            let clear = |_| Command::Clear { target, release };
            cleared.extend(self.clear_with(registry, record.disk, clear).await?);
        }
        Ok(cleared)
    }

    async fn clear_with(
        &self,
        registry: &mut MutexGuard<'_, Registry>,
        disk: usize,
        build: impl FnOnce(DiskId) -> Command,
    ) -> Result<Vec<RuleId>, Refusal> {
        let last = self.ask_snapshot(disk, 0)?;
        let Answer::Cleared(ids) = self.command(disk, build).await? else {
            return Ok(Vec::new());
        };
        let removed = registry.remove(&ids);
        if let Ok(last) = last.await {
            for record in removed {
                registry.past.remember(record, &last);
            }
        }
        Ok(ids)
    }
}
