//! I/O by the values of a breakdown, in no more groups than a reader can take in.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use dashpot_engine::histogram::Histogram;

use super::class::class_order;
use super::counts::merge;
use super::interval::OTHER;
use super::value::Unit;

/// The I/O of each value of a breakdown.
#[derive(Debug, Default)]
pub struct Groups {
    places: HashMap<String, usize>,
    groups: Vec<Group>,
}

/// The I/O of one value.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The value's name.
    pub value: String,
    /// How many I/Os there are.
    pub count: u64,
    /// The total size of these I/Os, in bytes.
    pub bytes: u64,
    /// The distribution of the I/Os' latencies, or of another number, if it is asked for.
    pub numbers: Option<Box<Histogram>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By number of I/Os, the highest first; then by name.
    ByCount,
    /// By bytes, the most first; then by name.
    ByBytes,
    /// By value, the smallest first. Each value is the name of a class of numbers in this unit.
    ByValue(Unit),
}

impl Groups {
    /// Adds I/O to the group of its value.
    pub fn add(&mut self, group: Group) {
        if let Some(&place) = self.places.get(&group.value) {
            return self.groups[place].merge(&group);
        }
        self.places.insert(group.value.clone(), self.groups.len());
        self.groups.push(group);
    }

    /// The groups with any I/O, in this order. If there are more than 16 groups of names, or more than 65
    /// groups of classes, the smallest groups are merged into [`OTHER`], which comes last.
    pub fn shown(self, order: Order) -> Vec<Group> {
        self.at_most(order.most(), order)
    }

    /// The groups with any I/O, in this order. If there are more than `most`, the smallest groups are merged into
    /// [`OTHER`], which comes last.
    pub fn at_most(self, most: usize, order: Order) -> Vec<Group> {
        let mut groups = self.ranked(order);
        let has_other = groups.last().is_some_and(|group| group.value == OTHER);
        if groups.len() > most || has_other {
            let kept = (groups.len() - usize::from(has_other)).min(most - 1);
            let mut other = Group {
                value: OTHER.to_owned(),
                ..Group::default()
            };
            groups.drain(kept..).for_each(|group| other.merge(&group));
            groups.push(other);
        }
        order.arrange(groups)
    }

    /// All groups with any I/O, in this order.
    pub fn all(self, order: Order) -> Vec<Group> {
        order.arrange(self.ranked(order))
    }

    /// The groups with any I/O, the largest first, and [`OTHER`] last.
    fn ranked(self, order: Order) -> Vec<Group> {
        let rank = |group: &Group| {
            let amount = match order {
                Order::ByBytes => group.bytes,
                Order::ByCount | Order::ByValue(_) => group.count,
            };
            (group.value == OTHER, Reverse(amount), group.value.clone())
        };
        let mut groups = self.groups;
        groups.retain(|group| group.count > 0);
        groups.sort_by_cached_key(rank);
        groups
    }
}

impl Order {
    /// Puts ranked groups in this order.
    fn arrange(self, mut groups: Vec<Group>) -> Vec<Group> {
        if let Order::ByValue(unit) = self {
            groups.sort_by_cached_key(|group| class_order(&group.value, unit));
        }
        groups
    }

    /// The maximum number of groups that are shown, including [`OTHER`].
    fn most(self) -> usize {
        match self {
            Order::ByCount | Order::ByBytes => NAMES_MAX,
            Order::ByValue(_) => CLASSES_MAX,
        }
    }
}

impl Group {
    /// The distribution of the numbers; empty if there is none.
    pub fn numbers(&self) -> Cow<'_, Histogram> {
        let known = self.numbers.as_deref().map(Cow::Borrowed);
        known.unwrap_or_default()
    }

    fn merge(&mut self, more: &Group) {
        self.count += more.count;
        self.bytes += more.bytes;
        merge(&mut self.numbers, more.numbers.as_deref());
    }
}

/// At most this many names are shown, because a reader cannot compare more.
const NAMES_MAX: usize = 16;
/// At most this many classes are shown: one for each range of offsets, plus [`OTHER`].
const CLASSES_MAX: usize = 65;

#[cfg(test)]
mod tests {
    use super::{CLASSES_MAX, Group, Groups, NAMES_MAX, Order, Unit};
    use dashpot_engine::histogram::Histogram;

    fn group(value: &str, count: u64) -> Group {
        Group {
            value: value.to_owned(),
            count,
            bytes: 1_000 / count.max(1),
            numbers: Some(Box::new(Histogram::of(1_000_000, count))),
        }
    }

    fn shown(counts: &[(&str, u64)], order: Order) -> Vec<(String, u64)> {
        let mut groups = Groups::default();
        for (name, count) in counts {
            groups.add(group(name, *count));
        }
        let shown = groups.shown(order).into_iter();
        shown.map(|group| (group.value, group.count)).collect()
    }

    #[test]
    fn groups_of_one_name_are_one_and_most_comes_first() {
        let counts = [
            ("8K-16K", 2),
            ("4K-8K", 1),
            ("none", 0),
            ("1M-2M", 2),
            ("4K-8K", 4),
        ];
        let names = |order| shown(&counts, order).into_iter().map(|(name, _)| name);
        let by_count: Vec<_> = names(Order::ByCount).collect();
        assert_eq!(by_count, ["4K-8K", "1M-2M", "8K-16K"]);
        let by_bytes: Vec<_> = names(Order::ByBytes).collect();
        assert_eq!(by_bytes, ["4K-8K", "1M-2M", "8K-16K"]);
        let by_size: Vec<_> = names(Order::ByValue(Unit::Bytes)).collect();
        assert_eq!(by_size, ["4K-8K", "8K-16K", "1M-2M"]);
    }

    #[test]
    fn the_rest_is_other_and_last_and_nothing_is_lost() {
        let names: Vec<String> = (0..90).map(|i| format!("n{i:02}")).collect();
        let counts = names
            .iter()
            .zip(1..)
            .map(|(name, count)| (name.as_str(), count));
        let counts: Vec<_> = [("other", 1_000)].into_iter().chain(counts).collect();
        for (order, most) in [
            (Order::ByCount, NAMES_MAX),
            (Order::ByValue(Unit::Bytes), CLASSES_MAX),
        ] {
            let shown = shown(&counts, order);
            assert_eq!(shown.len(), most);
            assert_eq!(shown.last().unwrap().0, "other");
            let all: u64 = shown.iter().map(|(_, count)| count).sum();
            assert_eq!(all, 1_000 + 90 * 91 / 2);
            assert!(shown.iter().any(|(name, _)| name == "n89"));
        }
    }

    #[test]
    fn a_program_gets_all_groups() {
        let names: Vec<String> = (0..90).map(|i| format!("n{i:02}")).collect();
        let mut groups = Groups::default();
        for name in &names {
            groups.add(group(name, 1));
        }
        let all = groups.all(Order::ByCount).into_iter();
        assert_eq!(all.map(|group| group.value).collect::<Vec<_>>(), names);
    }

    #[test]
    fn as_many_as_fit_are_all_shown() {
        let names: Vec<String> = (0..NAMES_MAX).map(|i| i.to_string()).collect();
        let counts: Vec<_> = names.iter().map(|name| (name.as_str(), 1)).collect();
        let shown = shown(&counts, Order::ByCount);
        assert!(shown.len() == NAMES_MAX && shown.iter().all(|(name, _)| name != "other"));
    }
}
