//! The facts about rules that the daemon knows and the engine does not: names, words, the next id.
//!
//! Ids start at 1, grow by one across all disks, and are never used again. A group has the id of
//! the first rule of the call that made it.

mod past;
mod record;

use std::collections::BTreeMap;

use dashpot_engine::Instant;
use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_rules::{Injection, TypedRule};

use self::past::Past;
use super::limits::{RulesHeld, check_lanes, check_rules, lanes};
use super::refusal::Refusal;

pub use self::past::Gone;
pub use self::record::Record;
use self::record::Term;

/// Rules that are about to be armed, together.
#[derive(Clone, Debug)]
pub struct Plan {
    pub records: Vec<Record>,
    specs: Vec<RuleSpec>,
}

impl Plan {
    pub fn group(&self) -> Option<GroupId> {
        self.records.first().map(|record| record.group)
    }

    /// The rules, for the engine.
    pub fn rules(&self) -> Vec<(RuleId, RuleSpec)> {
        let ids = self.records.iter().map(|record| record.id);
        ids.zip(self.specs.iter().cloned()).collect()
    }
}

/// All armed rules, by id.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    rules: BTreeMap<RuleId, Record>,
    /// The cleared rules.
    pub(super) past: Past,
    last: u32,
}

impl Registry {
    /// Gives ids and a group to the rules of an injection. The registry itself is not changed.
    pub fn plan(
        &self,
        disk: usize,
        injection: Injection,
        pool: Option<&str>,
    ) -> Result<Plan, Refusal> {
        if let Some(name) = &injection.name {
            self.check_free(name)?;
        }
        check_rules(self.rules.len(), injection.rules.len())?;
        let more = injection.rules.iter().map(|rule| lanes(&rule.spec)).sum();
        check_lanes(self.lanes_without(None), more)?;
        let first = RuleId(self.last + 1);
        let group = self.group_for(disk, injection.with.as_deref(), pool.is_some(), first)?;
        let record = |(rule, id): (&TypedRule, u32)| Record {
            id: RuleId(id),
            disk,
            group,
            call: first,
            name: injection.name.clone(),
            words: rule.words.clone(),
            pool: pool.map(str::to_owned),
            lanes: lanes(&rule.spec),
            term: None,
            is_gone: false,
        };
        Ok(Plan {
            records: injection.rules.iter().zip(first.0..).map(record).collect(),
            specs: injection.rules.into_iter().map(|rule| rule.spec).collect(),
        })
    }

    /// Records rules that the engine has armed.
    pub fn commit(&mut self, plan: Plan) {
        for record in plan.records {
            self.last = self.last.max(record.id.0);
            self.rules.insert(record.id, record);
        }
    }

    /// Refuses a replacement that would need too many lanes.
    pub fn check_replacement(&self, id: RuleId, rule: &TypedRule) -> Result<(), Refusal> {
        check_lanes(self.lanes_without(Some(id)), lanes(&rule.spec))
    }

    /// Records the new words of a rule.
    pub fn replace(&mut self, id: RuleId, rule: TypedRule) {
        if let Some(record) = self.rules.get_mut(&id) {
            record.words = rule.words;
            record.lanes = lanes(&rule.spec);
        }
    }

    /// Records when the lease of a rule lapses.
    pub(super) fn set_term(&mut self, id: RuleId, term: Option<Term>) {
        if let Some(record) = self.rules.get_mut(&id) {
            record.term = term;
        }
    }

    /// Ends the leases that have lapsed, and returns their rules.
    pub(super) fn lapsed(&mut self, now: Instant) -> Vec<Record> {
        let is_over = |record: &&mut Record| record.term.is_some_and(|term| term.lapses <= now);
        let lapsed = self.rules.values_mut().filter(is_over).map(|record| {
            record.term = None;
            record.clone()
        });
        lapsed.collect()
    }

    /// When the next lease lapses.
    pub(super) fn next_lapse(&self) -> Option<Instant> {
        let terms = self.records().filter_map(|record| record.term);
        terms.map(|term| term.lapses).min()
    }

    /// The memory that the rules use, and its bounds.
    pub(super) fn held(&self) -> RulesHeld {
        RulesHeld::of(
            self.rules.len(),
            self.past.forgotten(),
            self.lanes_without(None),
        )
    }

    /// The lanes of all rules except one.
    fn lanes_without(&self, id: Option<RuleId>) -> u64 {
        let others = self.records().filter(|record| Some(record.id) != id);
        others.map(|record| record.lanes).sum()
    }

    /// Removes rules, and returns their records. Ignores unknown ids.
    pub fn remove(&mut self, ids: &[RuleId]) -> Vec<Record> {
        let removed = ids.iter().filter_map(|id| self.rules.remove(id));
        removed.collect()
    }

    /// The records of all armed rules.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.rules.values()
    }

    /// The rule with an id, or the rules with a name. Refuses a key that no rule has.
    pub fn find(&self, key: &str) -> Result<Vec<Record>, Refusal> {
        let id = key.parse().ok().map(RuleId);
        let matches =
            |record: &&Record| Some(record.id) == id || record.name.as_deref() == Some(key);
        let found: Vec<Record> = self.records().filter(matches).cloned().collect();
        if found.is_empty() {
            let names = self.records().filter_map(|record| record.name.as_deref());
            return Err(
                Refusal::not_found("rule", key, names).remedy("'dashpot list' shows the rules")
            );
        }
        Ok(found)
    }

    /// The rule with an id or a name. Refuses a name that several rules have.
    pub fn find_one(&self, key: &str) -> Result<Record, Refusal> {
        let mut found = self.find(key)?;
        if found.len() > 1 {
            let ids: Vec<_> = found.iter().map(|record| record.id.0.to_string()).collect();
            return Err(
                Refusal::conflict(format!("'{key}' is the name of {} rules", found.len()))
                    .remedy(format!("give the id of one: {}", ids.join(", "))),
            );
        }
        Ok(found.remove(0))
    }

    fn check_free(&self, name: &str) -> Result<(), Refusal> {
        let taken = |record: &&Record| record.name.as_deref() == Some(name);
        match self.records().find(taken) {
            Some(record) => Err(Refusal::conflict(format!(
                "the name '{name}' is taken by rule {}",
                record.id.0
            ))
            .remedy("choose another, or clear that rule first")),
            None => Ok(()),
        }
    }

    fn group_for(
        &self,
        disk: usize,
        with: Option<&str>,
        pooled: bool,
        first: RuleId,
    ) -> Result<GroupId, Refusal> {
        if let Some(key) = with {
            let joined = self.find(key).map_err(|refusal| Refusal {
                error: format!("--with {key}: {}", refusal.error),
                ..refusal
            })?;
            return match joined.iter().find(|record| record.disk == disk) {
                Some(record) => Ok(record.group),
                None => Err(Refusal::conflict(format!(
                    "--with {key}: that rule belongs to another disk, and lanes belong to one disk"
                ))),
            };
        }
        let of_group = |record: &&Record| pooled && record.pool.is_some() && record.disk == disk;
        let group = self.records().find(of_group).map(|record| record.group);
        Ok(group.unwrap_or(GroupId(first.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Record, Registry};
    use crate::refusal::RefusalKind;
    use dashpot_rules::parse_injection;

    fn arm(registry: &mut Registry, disk: usize, words: &str, pool: Option<&str>) -> Vec<Record> {
        let injection = parse_injection(words).unwrap();
        let plan = registry.plan(disk, injection, pool).unwrap();
        let records = plan.records.clone();
        registry.commit(plan);
        records
    }

    fn ids_and_groups(records: &[Record]) -> Vec<(u32, u32)> {
        records.iter().map(|r| (r.id.0, r.group.0)).collect()
    }

    #[test]
    fn ids_grow_over_all_disks_and_are_never_used_again() {
        let mut registry = Registry::default();
        let first = arm(&mut registry, 0, "-D 10ms:1 -D 25ms:2", None);
        assert_eq!(ids_and_groups(&first), [(1, 1), (2, 1)]);
        let second = arm(&mut registry, 1, "-D 1ms", None);
        assert_eq!(ids_and_groups(&second), [(3, 3)]);
        registry.remove(&[second[0].id]);
        assert_eq!(
            ids_and_groups(&arm(&mut registry, 0, "-D 1ms", None)),
            [(4, 4)]
        );
    }

    #[test]
    fn rules_join_a_group_of_their_own_disk_only() {
        let mut registry = Registry::default();
        arm(&mut registry, 0, "-D 10ms:1 --name base", None);
        let joined = arm(&mut registry, 0, "-D 25ms:2 --with base", None);
        assert_eq!(ids_and_groups(&joined), [(2, 1)]);
        let foreign = parse_injection("-D 1ms --with 1").unwrap();
        let refusal = registry.plan(1, foreign, None).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Conflict);
    }

    #[test]
    fn zinject_s_rules_of_a_disk_are_one_group_apart_from_the_others() {
        let mut registry = Registry::default();
        arm(&mut registry, 0, "-D 2ms", None);
        let shared =
            |registry: &mut _, disk| ids_and_groups(&arm(registry, disk, "-D 1ms:1", Some("tank")));
        assert_eq!(shared(&mut registry, 0), [(2, 2)]);
        assert_eq!(shared(&mut registry, 1), [(3, 3)]);
        assert_eq!(shared(&mut registry, 0), [(4, 2)]);
    }

    #[test]
    fn names_are_taken_once_and_may_stand_for_several_rules() {
        let mut registry = Registry::default();
        arm(&mut registry, 0, "-D 10ms:1 -D 25ms:2 --name two", None);
        assert_eq!(registry.find("two").unwrap().len(), 2);
        assert_eq!(registry.find_one("2").unwrap().id.0, 2);
        assert_eq!(
            registry.find_one("two").unwrap_err().to_string(),
            "'two' is the name of 2 rules: give the id of one: 1, 2"
        );
        let again = parse_injection("-D 1ms --name two").unwrap();
        let refusal = registry.plan(0, again, None).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Conflict);
        assert_eq!(
            registry.find("three").unwrap_err().kind,
            RefusalKind::NotFound
        );
    }

    #[test]
    fn all_lanes_together_have_a_bound_and_cleared_ones_are_free_again() {
        let mut registry = Registry::default();
        let many = "-D 0s:65534";
        let armed = (0..16).flat_map(|disk| arm(&mut registry, disk, many, None));
        let armed: Vec<Record> = armed.collect();
        let plan = |registry: &Registry| {
            let injection = parse_injection(many).unwrap();
            registry.plan(0, injection, None)
        };
        let refusal = plan(&registry).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Conflict);
        assert!(refusal.error.contains("at most 1048576"), "{refusal}");
        arm(&mut registry, 0, "-D 1ms", None);
        let rule = |words| parse_injection(words).unwrap().replacement().unwrap();
        let (first, second) = (armed[0].id, armed[1].id);
        registry.check_replacement(first, &rule(many)).unwrap();
        registry.replace(first, rule("-D 1ms:1"));
        plan(&registry).unwrap();
        registry.replace(first, rule(many));
        plan(&registry).unwrap_err();
        registry.remove(&[second]);
        plan(&registry).unwrap();
    }

    #[test]
    fn all_rules_together_have_a_bound() {
        let mut registry = Registry::default();
        for disk in 0..4 {
            (0..1_024).for_each(|_| drop(arm(&mut registry, disk, "-D 1ms", None)));
        }
        let one_more = parse_injection("-D 1ms").unwrap();
        assert!(registry.plan(4, one_more, None).is_err());
    }
}
