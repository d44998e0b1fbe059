//! Latencies by the values of a breakdown, in as many groups as a reader can take in.

use std::collections::HashMap;

use dashpot_engine::histogram::Histogram;

use super::class::class_order;
use super::dimension::Unit;
use super::interval::OTHER;

/// Latencies by name.
#[derive(Default)]
pub struct Groups {
    places: HashMap<String, usize>,
    groups: Vec<(String, Histogram)>,
}

/// The order of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By number of I/Os, the largest first; then by name.
    ByCount,
    /// By value, the smallest first. The names are those of classes of this unit.
    ByValue(Unit),
}

impl Groups {
    /// Adds latencies to the group with a name.
    pub fn add(&mut self, name: &str, latencies: &Histogram) {
        if let Some(&place) = self.places.get(name) {
            return self.groups[place].1.merge(latencies);
        }
        self.places.insert(name.to_owned(), self.groups.len());
        self.groups.push((name.to_owned(), latencies.clone()));
    }

    /// The groups with any I/O, in this order. Beyond [`GROUPS_MAX`], the groups with the least I/O
    /// become one, [`OTHER`], which comes last.
    pub fn shown(self, order: Order) -> Vec<(String, Histogram)> {
        let rank = |(name, latencies): &(String, Histogram)| {
            let least = std::cmp::Reverse(latencies.count());
            (name == OTHER, least, name.clone())
        };
        let mut groups = self.groups;
        groups.retain(|(_, latencies)| latencies.count() > 0);
        groups.sort_by_cached_key(rank);
        let has_other = groups.last().is_some_and(|(name, _)| name == OTHER);
        if groups.len() > GROUPS_MAX || has_other {
            let kept = (groups.len() - usize::from(has_other)).min(GROUPS_MAX - 1);
            let mut other = Histogram::default();
            let rest = groups.drain(kept..);
            rest.for_each(|(_, latencies)| other.merge(&latencies));
            groups.push((OTHER.to_owned(), other));
        }
        if let Order::ByValue(unit) = order {
            groups.sort_by_cached_key(|(name, _)| class_order(name, unit));
        }
        groups
    }
}

/// The most groups that are shown, including the group of the rest.
const GROUPS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::{GROUPS_MAX, Groups, Order, Unit};
    use dashpot_engine::histogram::Histogram;

    fn latencies(count: u64) -> Histogram {
        Histogram::of(1_000_000, count)
    }

    fn shown(counts: &[(&str, u64)], order: Order) -> Vec<(String, u64)> {
        let mut groups = Groups::default();
        for (name, count) in counts {
            groups.add(name, &latencies(*count));
        }
        let shown = groups.shown(order).into_iter();
        shown
            .map(|(name, latencies)| (name, latencies.count()))
            .collect()
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
        let by_size: Vec<_> = names(Order::ByValue(Unit::Bytes)).collect();
        assert_eq!(by_size, ["4K-8K", "8K-16K", "1M-2M"]);
    }

    #[test]
    fn the_rest_is_other_and_last_and_nothing_is_lost() {
        let names: Vec<String> = (0..40).map(|i| format!("n{i:02}")).collect();
        let counts = names
            .iter()
            .zip(1..)
            .map(|(name, count)| (name.as_str(), count));
        let counts: Vec<_> = [("other", 1_000)].into_iter().chain(counts).collect();
        for order in [Order::ByCount, Order::ByValue(Unit::Bytes)] {
            let shown = shown(&counts, order);
            assert_eq!(shown.len(), GROUPS_MAX);
            assert_eq!(shown.last().unwrap().0, "other");
            let all: u64 = shown.iter().map(|(_, count)| count).sum();
            assert_eq!(all, 1_000 + 40 * 41 / 2);
            assert!(shown.iter().any(|(name, _)| name == "n39"));
        }
    }

    #[test]
    fn as_many_as_fit_are_all_shown() {
        let names: Vec<String> = (0..GROUPS_MAX).map(|i| i.to_string()).collect();
        let counts: Vec<_> = names.iter().map(|name| (name.as_str(), 1)).collect();
        let shown = shown(&counts, Order::ByCount);
        assert!(shown.len() == GROUPS_MAX && shown.iter().all(|(name, _)| name != "other"));
    }
}
