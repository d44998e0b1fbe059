//! The parts of a column, one for each value of the breakdown.

use std::cmp::Reverse;
use std::collections::HashMap;

use dashpot_api::{ColumnPart, Distribution};
use dashpot_engine::histogram::Histogram;
use dashpot_observe::OTHER;

/// The I/O of a column, separated by the values of the breakdown.
#[derive(Debug, Default)]
pub(super) struct Parts<'a>(HashMap<Option<String>, Sum<'a>>);

/// The I/O of one value of the breakdown.
#[derive(Debug, Default)]
struct Sum<'a> {
    count: u64,
    bytes: u64,
    numbers: Option<Numbers<'a>>,
}

/// The distribution of numbers. A histogram takes 10 KiB, so the histogram of a tally is copied only when another
/// one is added to it.
#[derive(Debug)]
pub(super) enum Numbers<'a> {
    /// The histogram of a tally.
    Tallied(&'a Histogram),
    /// A histogram of this column's own.
    Own(Box<Histogram>),
}

impl<'a> Parts<'a> {
    /// Adds I/O to the part for a value.
    pub(super) fn add(
        &mut self,
        value: Option<&str>,
        count: u64,
        bytes: u64,
        numbers: Option<Numbers<'a>>,
    ) {
        let sum = self.0.entry(value.map(str::to_owned)).or_default();
        sum.add(count, bytes, numbers);
    }

    /// The parts, those with the most I/Os first, and the part for all other values last.
    pub(super) fn into_column(self) -> Vec<ColumnPart> {
        let mut all: Vec<(Option<String>, Sum<'_>)> = self.0.into_iter().collect();
        let is_other = |value: &Option<String>| value.as_deref() == Some(OTHER);
        all.sort_by_cached_key(|(value, sum)| (is_other(value), Reverse(sum.count), value.clone()));
        if all.len() > VALUES_MAX {
            let mut other = Sum::default();
            for (_, rest) in all.drain(VALUES_MAX - 1..) {
                other.add(rest.count, rest.bytes, rest.numbers);
            }
            all.push((Some(OTHER.to_owned()), other));
        }
        all.into_iter()
            .map(|(value, sum)| sum.part(value))
            .collect()
    }
}

impl<'a> Sum<'a> {
    fn add(&mut self, count: u64, bytes: u64, numbers: Option<Numbers<'a>>) {
        self.count += count;
        self.bytes += bytes;
        self.numbers = match (self.numbers.take(), numbers) {
            (Some(mine), Some(more)) => Some(mine.merged(more.histogram())),
            (mine, more) => mine.or(more),
        };
    }

    fn part(self, value: Option<String>) -> ColumnPart {
        ColumnPart {
            value,
            count: self.count,
            bytes: self.bytes,
            numbers: self
                .numbers
                .map(|numbers| Distribution::of(numbers.histogram())),
        }
    }
}

impl Numbers<'_> {
    fn histogram(&self) -> &Histogram {
        match self {
            Numbers::Tallied(histogram) => histogram,
            Numbers::Own(histogram) => histogram,
        }
    }

    fn merged(self, more: &Histogram) -> Self {
        let mut own = match self {
            Numbers::Tallied(histogram) => Box::new(histogram.clone()),
            Numbers::Own(histogram) => histogram,
        };
        own.merge(more);
        Numbers::Own(own)
    }
}

/// The most values of a column, including the value for the rest.
const VALUES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_many_values_is_other_and_nothing_is_lost() {
        let mut parts = Parts::default();
        for value in 1..=100_u64 {
            let numbers = Numbers::Own(Box::new(Histogram::of(value, value)));
            parts.add(Some(&value.to_string()), value, 2 * value, Some(numbers));
        }
        parts.add(Some(OTHER), 1_000, 0, None);
        let column = parts.into_column();
        assert_eq!(column.len(), VALUES_MAX);
        let all: u64 = column.iter().map(|part| part.count).sum();
        assert_eq!((all, column[0].count), (1_000 + 5_050, 100));
        let last = &column[VALUES_MAX - 1];
        assert_eq!(last.value.as_deref(), Some(OTHER));
        let numbers = last.numbers.as_ref().expect("numbers");
        assert_eq!(last.count, numbers.count + 1_000);
    }
}
