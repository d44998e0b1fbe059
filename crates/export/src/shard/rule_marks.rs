//! The marks of rules. A mark keeps the shard's counts at the moment when the rule was armed or last updated.
//! Next to a rule, `list` shows the shard's counts since this mark, so that earlier load is left out.

use std::collections::HashMap;

use dashpot_engine::DiskId;
use dashpot_engine::inject::RuleId;

use crate::snapshot::Counted;

#[derive(Debug, Default)]
pub(super) struct RuleMarks {
    marks: HashMap<RuleId, (DiskId, Counted)>,
}

impl RuleMarks {
    /// Marks the rules of a disk.
    pub(super) fn set(
        &mut self,
        disk: DiskId,
        rules: impl Iterator<Item = RuleId>,
        counted: Counted,
    ) {
        let marked = |rule| (rule, (disk, counted.clone()));
        self.marks.extend(rules.map(marked));
    }

    pub(super) fn disk(&self, rule: RuleId) -> Option<DiskId> {
        self.marks.get(&rule).map(|(disk, _)| *disk)
    }

    /// Forgets the marks of rules that are no longer armed.
    pub(super) fn keep(&mut self, is_armed: impl Fn(DiskId, RuleId) -> bool) {
        self.marks.retain(|rule, (disk, _)| is_armed(*disk, *rule));
    }

    /// The shard's counts since a rule's mark. `counted` is its counts since the start.
    pub(super) fn since(&self, rule: RuleId, counted: &Counted) -> Counted {
        let Some((_, mark)) = self.marks.get(&rule) else {
            return counted.clone();
        };
        let since = |now: u64, then| now.saturating_sub(then);
        Counted {
            overloaded_seconds: since(counted.overloaded_seconds, mark.overloaded_seconds),
            stalls: since(counted.stalls, mark.stalls),
            depths: counted.depths.since(&mark.depths),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counted, DiskId, RuleId, RuleMarks};
    use std::iter;

    fn counted(overloaded_seconds: u64, stalls: u64) -> Counted {
        Counted {
            overloaded_seconds,
            stalls,
            ..Counted::default()
        }
    }

    #[test]
    fn each_rule_counts_from_its_own_mark() {
        let mut marks = RuleMarks::default();
        let (old, new, disk) = (RuleId(1), RuleId(2), DiskId(7));
        marks.set(disk, iter::once(old), counted(3, 190));
        marks.set(disk, iter::once(new), counted(5, 191));
        assert_eq!(marks.since(old, &counted(6, 191)), counted(3, 1));
        assert_eq!(marks.since(new, &counted(6, 191)), counted(1, 0));
        marks.set(disk, iter::once(old), counted(6, 200));
        assert_eq!(marks.since(old, &counted(6, 200)), counted(0, 0));
        assert_eq!(marks.disk(old), Some(disk));
        marks.keep(|of, rule| of == disk && rule == new);
        assert_eq!((marks.disk(old), marks.disk(new)), (None, Some(disk)));
    }
}
