//! The classes into which a breakdown sorts numbers.

use std::ops::Range;

use dashpot_rules::{format_size, nice_number};

use super::size::{size_class, size_name};
use super::value::Unit;

/// A class of numbers. Classes are ordered from the lowest numbers to the highest, and each has a name. A
/// breakdown has at most a few hundred classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Class(u64);

impl Class {
    /// The class of a number in this unit. For offsets, [`Offsets`] finds the class.
    pub(crate) fn of(number: u64, unit: Unit) -> Class {
        Class(match unit {
            Unit::Bytes => size_class(number).into(),
            Unit::Time => time_class(number),
            Unit::Count | Unit::Name => number,
        })
    }

    pub(crate) fn name(self, unit: Unit) -> String {
        match unit {
            Unit::Bytes => size_name(self.0 as u32),
            Unit::Time => time_name(self.0),
            Unit::Count | Unit::Name => self.0.to_string(),
        }
    }
}

/// The class of a time. Class 0 is below 1 µs; the others begin at 1, 2 or 5 times a power of ten.
fn time_class(ns: u64) -> u64 {
    let Some(power) = (ns / LEAST_NS).checked_ilog10() else {
        return 0;
    };
    let leading = ns / LEAST_NS / 10_u64.pow(power);
    let step = STEPS.iter().rposition(|step| *step <= leading);
    1 + u64::from(power) * STEPS.len() as u64 + step.unwrap_or(0) as u64
}

fn time_name(class: u64) -> String {
    match class {
        0 => "<1us".to_owned(),
        _ => format!("{}-{}", edge(class), edge(class + 1)),
    }
}

/// The shortest time of a class, in words: `1us`, `500ms`.
fn edge(class: u64) -> String {
    let at = class - 1;
    let us = STEPS[(at % 3) as usize] * 10_u64.saturating_pow((at / 3) as u32);
    match us {
        1_000_000.. => format!("{}s", us / 1_000_000),
        1_000.. => format!("{}ms", us / 1_000),
        _ => format!("{us}us"),
    }
}

const LEAST_NS: u64 = 1_000;
const STEPS: [u64; 3] = [1, 2, 5];

/// Ranges of offsets. All ranges have the same length, which grows so that [`RANGES_MAX`] ranges are always
/// enough for all offsets seen so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offsets {
    shift: u32,
}

impl Default for Offsets {
    fn default() -> Offsets {
        Offsets { shift: LEAST_SHIFT }
    }
}

impl Offsets {
    /// The range of an offset.
    pub(crate) fn class(self, offset: u64) -> Class {
        Class(offset >> self.shift)
    }

    /// Lengthens the ranges until they cover this offset. Returns how many times their length has doubled.
    pub(crate) fn reach(&mut self, offset: u64) -> u32 {
        let before = self.shift;
        while offset >> self.shift >= RANGES_MAX {
            self.shift += 1;
        }
        self.shift - before
    }

    /// The range that contains the range `class` once the length of all ranges has doubled this many times.
    pub(crate) fn merged(class: Class, doublings: u32) -> Class {
        Class(class.0 >> doublings)
    }

    /// The name of a range: `0-1M`.
    pub(crate) fn name(self, class: Class) -> String {
        let Range { start, end } = class.0 << self.shift..(class.0 + 1) << self.shift;
        format!("{}-{}", format_size(start), format_size(end))
    }
}

/// The maximum number of ranges of offsets.
const RANGES_MAX: u64 = 64;
/// Ranges begin with this length: 1 MiB.
const LEAST_SHIFT: u32 = 20;

/// The rank of a value's name among the names of its breakdown. Names of classes rank in the order of their
/// classes, and before all other names.
pub(crate) fn class_order(name: &str, unit: Unit) -> (bool, u128) {
    let rank = match unit {
        Unit::Name => None,
        Unit::Time if name.starts_with('<') => Some(0),
        Unit::Time => lower(name).and_then(time_rank),
        Unit::Bytes => lower(name).and_then(size_rank),
        Unit::Count => name.parse().ok(),
    };
    (rank.is_none(), rank.unwrap_or(0))
}

fn lower(name: &str) -> Option<&str> {
    let (lower, _) = name.split_once('-').unwrap_or((name, ""));
    lower
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(lower)
}

fn time_rank(lower: &str) -> Option<u128> {
    let ns = dashpot_rules::parse_duration(lower).ok()?;
    Some(u128::from(ns.as_nanos()) + 1)
}

/// The rank of a class of sizes, by its smallest size. `parse_size` cannot read all names, because the
/// smallest sizes have no unit, and because it refuses the unit `E`, as in `8E`.
fn size_rank(lower: &str) -> Option<u128> {
    let classes =
        (0..=u64::BITS).map(|class| class.checked_sub(1).map_or(0, |power| 1_u64 << power));
    let named = |bytes: &u64| lower == nice_number(*bytes);
    let class = classes.clone().find(named).map(u128::from);
    class.or_else(|| dashpot_rules::parse_size(lower).ok().map(u128::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn times_are_in_steps_of_one_two_and_five() {
        let name = |ns| Class::of(ns, Unit::Time).name(Unit::Time);
        assert_eq!(name(999), "<1us");
        assert_eq!(name(1_000), "1us-2us");
        assert_eq!(name(1_999_999), "1ms-2ms");
        assert_eq!(name(2_000_000), "2ms-5ms");
        assert_eq!(name(9_999_999), "5ms-10ms");
        assert_eq!(name(700_000_000), "500ms-1s");
        assert_eq!(name(20_000_000_000), "20s-50s");
    }

    #[test]
    fn offsets_have_few_ranges_however_far_they_reach() {
        let mut offsets = Offsets::default();
        assert_eq!(offsets.name(offsets.class(3 << 20)), "3M-4M");
        let class = offsets.class(63 << 20);
        assert_eq!(offsets.reach(64 << 20), 1);
        assert_eq!(offsets.name(Offsets::merged(class, 1)), "62M-64M");
        assert_eq!(offsets.reach(1 << 40), 15 - 1);
    }

    proptest! {
        #[test]
        fn names_are_in_the_order_of_their_classes(one in any::<u64>(), other in any::<u64>()) {
            for unit in [Unit::Bytes, Unit::Time, Unit::Count] {
                let classes = [one, other].map(|number| Class::of(number, unit));
                let ranks = classes.map(|class| class_order(&class.name(unit), unit));
                prop_assert_eq!(classes[0].cmp(&classes[1]), ranks[0].cmp(&ranks[1]), "{:?}", unit);
                prop_assert!(!ranks[0].0 && class_order("unknown", unit).0);
            }
        }

        #[test]
        fn an_offset_is_in_its_range(offset in 0..1_u64 << 62) {
            let mut offsets = Offsets::default();
            offsets.reach(offset);
            prop_assert!(offsets.class(offset).0 < RANGES_MAX);
        }
    }
}
