//! Cleared rules, with the counters that each rule had when it was cleared.
//!
//! Tests need these rules: a test arms a rule, clears it, and then asks what the rule injected. The memory of
//! cleared rules is bounded in number and in bytes. The daemon forgets the oldest rules first, and counts
//! those that it has forgotten. A reset frees the names and ids of cleared rules, but the rules stay in the list
//! of all, because a report at the end of a run has them, too.

use std::collections::VecDeque;

use dashpot_engine::RuleStats;
use dashpot_engine::histogram::Histogram;
use dashpot_engine::inject::RuleId;
use dashpot_export::{DiskSnapshot, RuleSnapshot};

use super::record::Record;

/// The most cleared rules that the daemon remembers.
const RULES_MAX: usize = 64;
/// The most bytes that the remembered rules may take.
const BYTES_MAX: usize = 8 << 20;

/// A rule that was cleared.
#[derive(Clone, Debug)]
pub struct Gone {
    /// The name and the words of the rule.
    pub record: Record,
    /// A snapshot of the rule's disk from when the rule was cleared, without the disk's other rules.
    pub snapshot: DiskSnapshot,
}

/// The rules that were cleared last, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    rules: VecDeque<Gone>,
    bytes: usize,
    /// How many of the rules were cleared before the last reset.
    before_reset: usize,
    /// How many cleared rules are not here any more.
    forgotten: u64,
}

impl Past {
    /// Remembers a rule, with its state in the last snapshot of its disk. Counts it as forgotten if there is no
    /// such state.
    pub(crate) fn remember(&mut self, record: Record, last: Option<&DiskSnapshot>) {
        let of_rule =
            |last: &'_ DiskSnapshot| last.rules.iter().find(|rule| rule.id == record.id).cloned();
        let (Some(last), Some(rule)) = (last, last.and_then(of_rule)) else {
            self.forgotten += 1;
            return;
        };
        let gone = Gone {
            snapshot: alone(rule, last),
            record: Record {
                is_gone: true,
                ..record
            },
        };
        self.bytes += gone.bytes();
        self.rules.push_back(gone);
        while self.rules.len() > RULES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.rules.pop_front() else {
                return;
            };
            self.bytes -= oldest.bytes();
            self.before_reset = self.before_reset.saturating_sub(1);
            self.forgotten += 1;
        }
    }

    /// Frees the names and ids of all rules, so that no rule is found by them any more.
    pub(crate) fn reset(&mut self) {
        self.before_reset = self.rules.len();
    }

    /// How many cleared rules are not remembered any more.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The rules, also those from before a reset, in the order in which they were cleared.
    pub(crate) fn all(&self) -> Vec<Gone> {
        self.rules.iter().cloned().collect()
    }

    /// The rule with this id that was cleared since the last reset or, for a name, all those of the last call
    /// that armed a rule with this name.
    pub(crate) fn find(&self, key: &str) -> Vec<Gone> {
        let id = key.parse().ok().map(RuleId);
        let is_meant =
            |gone: &&Gone| Some(gone.record.id) == id || gone.record.name.as_deref() == Some(key);
        let since_reset = self.rules.range(self.before_reset..);
        let mut meant = since_reset.clone().rev().filter(is_meant);
        let Some(last) = meant.next() else {
            return Vec::new();
        };
        let came_with = |gone: &&Gone| match id {
            Some(id) => gone.record.id == id,
            None => gone.record.came_with(&last.record),
        };
        let found = since_reset.filter(came_with);
        found.cloned().collect()
    }
}

impl Gone {
    /// Roughly how much memory the cleared rule takes.
    fn bytes(&self) -> usize {
        let of_rule = |rule: &RuleSnapshot| {
            let words = rule.spec.client.as_ref().map_or(0, String::len);
            let since = rule.since_update.as_ref();
            let since = since.map_or(0, |since| histograms(&since.stats));
            (histograms(&rule.stats) + since) * size_of::<Histogram>() + words
        };
        let rules: usize = self.snapshot.rules.iter().map(of_rule).sum();
        size_of::<Gone>() + size_of::<Histogram>() + self.record.words.len() + rules
    }
}

fn histograms(stats: &RuleStats) -> usize {
    // A rule may have histograms of lateness and of stops, and of requested and achieved times if these vary.
    let kept = [stats.holds.lateness(), stats.holds.stopped()];
    kept.iter()
        .zip([3, 1])
        .map(|(kept, count)| count * usize::from(kept.is_some()))
        .sum()
}

/// The snapshot of a disk with only one of the disk's rules.
fn alone(rule: RuleSnapshot, last: &DiskSnapshot) -> DiskSnapshot {
    DiskSnapshot {
        at: last.at,
        rules: vec![rule],
        work: last.work,
        stops: last.stops,
        ..DiskSnapshot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{DiskSnapshot, Past, RULES_MAX, RuleSnapshot, alone};
    use crate::registry::{Record, Registry};
    use dashpot_engine::inject::{RuleId, RuleSpec};
    use dashpot_engine::{Duration, Instant, RuleStats};
    use dashpot_rules::parse_injection;

    /// Arms rules, and clears them.
    fn go(registry: &mut Registry, past: &mut Past, words: &str) -> Vec<u32> {
        let plan = registry.plan(0, parse_injection(words).unwrap(), None);
        let records = plan.clone().unwrap().records;
        registry.commit(plan.unwrap());
        for record in &records {
            past.remember(record.clone(), Some(&last_look(record)));
        }
        let ids: Vec<RuleId> = records.iter().map(|record| record.id).collect();
        registry.remove(&ids);
        ids.iter().map(|id| id.0).collect()
    }

    fn last_look(record: &Record) -> DiskSnapshot {
        let rule = RuleSnapshot {
            id: record.id,
            group: record.group,
            spec: RuleSpec::delay(Duration::from_millis(1), None),
            armed: Instant::ZERO,
            counted: (0, Instant::ZERO),
            rests: false,
            stats: RuleStats::default(),
            now: 0,
            since_update: None,
            backlog: Duration::ZERO,
            overloaded_seconds: 0,
            stalls: 0,
            depth: Default::default(),
        };
        alone(rule, &DiskSnapshot::default())
    }

    fn found(past: &Past, key: &str) -> Vec<u32> {
        let found = past.find(key);
        assert!(found.iter().all(|gone| gone.record.is_gone));
        found.iter().map(|gone| gone.record.id.0).collect()
    }

    #[test]
    fn a_name_means_those_that_had_it_last() {
        let (mut registry, mut past) = (Registry::default(), Past::default());
        go(&mut registry, &mut past, "-D 1ms --name x");
        let both = go(&mut registry, &mut past, "-D 1ms -D 2ms --name x");
        go(&mut registry, &mut past, "-D 1ms --name y");
        assert_eq!(found(&past, "x"), both);
        assert_eq!(found(&past, "1"), [1]);
        assert_eq!(found(&past, "z"), [0; 0]);
        past.reset();
        assert_eq!(found(&past, "x"), [0; 0]);
        assert_eq!((past.all().len(), past.forgotten()), (4, 0));
        let again = go(&mut registry, &mut past, "-D 1ms --name x");
        assert_eq!(found(&past, "x"), again);
    }

    #[test]
    fn the_oldest_are_forgotten_and_counted() {
        let (mut registry, mut past) = (Registry::default(), Past::default());
        for _ in 0..RULES_MAX + 2 {
            go(&mut registry, &mut past, "-D 1ms");
        }
        assert_eq!(past.rules.len(), RULES_MAX);
        assert_eq!((found(&past, "2"), found(&past, "3")), (vec![], vec![3]));
        assert_eq!(past.forgotten(), 2);
        let record = past.rules[0].record.clone();
        past.remember(record.clone(), None);
        past.remember(record, Some(&DiskSnapshot::default()));
        assert_eq!((past.rules.len(), past.forgotten()), (RULES_MAX, 4));
        let bytes: usize = past.rules.iter().map(super::Gone::bytes).sum();
        assert_eq!(past.bytes, bytes);
    }
}
