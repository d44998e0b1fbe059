//! Leases: a rule with a lease is cleared when the lease lapses, unless a caller renews it before.
//!
//! A renewal and a lapse hold the same lock, so a renewal that was answered has kept its rule.

use std::time::Duration as Sleep;

use dashpot_engine::inject::RuleId;
use dashpot_engine::{Command, Duration, Instant, Release, Target};
use tokio::time::sleep;

use super::Daemon;
use crate::refusal::Refusal;
use crate::registry::Record;

impl Daemon {
    /// Renews the leases of the rules with an id or a name: all of them, or none. Without `lease` each rule keeps
    /// the length of its lease.
    pub async fn renew(&self, key: &str, lease: Option<Duration>) -> Result<Vec<Record>, Refusal> {
        let mut registry = self.registry.lock().await;
        let mut records = registry.find(key)?;
        let now = self.now();
        for record in &mut records {
            let lasts = lease.or(record.term.map(|term| term.lasts));
            let lasts = lasts.ok_or_else(|| unleased(record.id))?;
            record.lease(lasts, now);
        }
        for record in &records {
            registry.set_term(record.id, record.term);
        }
        self.leases_changed.notify_one();
        Ok(records)
    }

    /// Clears rules whose leases lapse, for ever.
    pub async fn clear_lapsed(&self) {
        loop {
            let next = self.clear_those_lapsed().await;
            let changed = self.leases_changed.notified();
            let Some(next) = next else {
                changed.await;
                continue;
            };
            let left = Sleep::from_nanos(next.since(self.now()).as_nanos());
            tokio::select! {
                () = sleep(left) => {}
                () = changed => {}
            }
        }
    }

    /// Clears the rules whose leases have lapsed, and completes the zios that they hang. Returns when the next
    /// lease lapses.
    async fn clear_those_lapsed(&self) -> Option<Instant> {
        let mut registry = self.registry.lock().await;
        for record in registry.lapsed(self.now()) {
            let clear = |_| Command::Clear {
                target: Target::Rule(record.id),
                release: Release::Hung,
            };
            // This fails only if the shard is gone, and the rule with it.
            let _ = self.clear_with(&mut registry, record.disk, clear).await;
        }
        registry.next_lapse()
    }
}

fn unleased(id: RuleId) -> Refusal {
    Refusal::conflict(format!("rule {} has no lease", id.0))
        .remedy("'dashpot renew --lease TIME' gives it one")
}
