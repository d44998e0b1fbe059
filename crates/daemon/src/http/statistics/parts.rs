//! The parts of a column, one for each value of the breakdown.

use dashpot_api::{ColumnPart, Distribution};
use dashpot_observe::{Group, Groups, Order, Statistic};

/// The parts, those with the most I/Os first, and the part for all other values last. Without a breakdown, there is
/// one part.
pub(super) fn parts(groups: Groups, statistic: &Statistic) -> Vec<ColumnPart> {
    let part = |group: Group| ColumnPart {
        value: statistic.by.map(|_| group.value),
        count: group.count,
        bytes: group.bytes,
        numbers: group.numbers.as_deref().map(Distribution::of),
    };
    let groups = groups.at_most(VALUES_MAX, Order::ByCount);
    groups.into_iter().map(part).collect()
}

/// The most values of a column, including the value for the rest.
const VALUES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use dashpot_engine::histogram::Histogram;
    use dashpot_observe::OTHER;

    use super::*;

    #[test]
    fn the_rest_of_many_values_is_other_and_nothing_is_lost() {
        let mut groups = Groups::default();
        let group = |value: &str, count, bytes, numbers| Group {
            value: value.to_owned(),
            count,
            bytes,
            numbers,
        };
        for value in 1..=100_u64 {
            let numbers = Some(Box::new(Histogram::of(value, value)));
            groups.add(group(&value.to_string(), value, 2 * value, numbers));
        }
        groups.add(group(OTHER, 1_000, 0, None));
        let column = parts(
            groups,
            &"disk.latency[client]".parse().expect("a statistic"),
        );
        assert_eq!(column.len(), VALUES_MAX);
        let all: u64 = column.iter().map(|part| part.count).sum();
        assert_eq!((all, column[0].count), (1_000 + 5_050, 100));
        let last = &column[VALUES_MAX - 1];
        assert_eq!(last.value.as_deref(), Some(OTHER));
        let numbers = last.numbers.as_ref().expect("numbers");
        assert_eq!(last.count, numbers.count + 1_000);
    }
}
