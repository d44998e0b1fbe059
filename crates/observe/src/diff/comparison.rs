//! The comparison of two sides.

use dashpot_engine::Duration;
use serde::Serialize;

use super::sums::{Diff, Sum, Sums};
use crate::dimension::Dimension;
use crate::parts::Part;

/// The differences. JSON: `{"finding": "slow", "here": side, "there": side or null, "differs":
/// [{"dimension": "device", "points": 88.0, "values": [{"value": "vda", "slow_percent": 98.0, "ios_percent": 10.0,
/// "slow_count": 310}, …]}, …], "alike": ["op", …], "spent": [{"wait": "hold", "percent": 99.0}, …], "rose":
/// [{"dimension": "client", "value": "uid=0 pid=7", "metric": "ops", "there_per_s": 10.0, "here_per_s": 500.0},
/// …]}`. A side is `{"elapsed_ns": 300000000000, "count": 12345, "slow_count": 310, "slow_ns": 6200000000}`.
/// `finding` is `slow`, `too_few` or `not_slower`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The side in question.
    pub here: SideSum,
    /// The side that it was compared with; `None` if slow I/Os were compared with the rest of theirs.
    pub there: Option<SideSum>,
    /// Whether there is enough slow time to ask where it is.
    pub finding: Finding,
    /// The dimensions by which the slow time differs, most telling first.
    pub differs: Vec<Compared>,
    /// The dimensions by which it does not differ.
    pub alike: Vec<Dimension>,
    /// Where the slow I/Os spent their time, the most first.
    pub spent: Vec<Spent>,
    /// The values that did much more here, slow or not: the one that rose most first.
    pub rose: Vec<Rose>,
}

/// Whether there is slow time to ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// There is.
    Slow,
    /// There are fewer than [`IOS_LEAST`] slow I/Os.
    TooFew,
    /// Here is no slower than there.
    NotSlower,
}

/// The I/Os of a side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SideSum {
    /// How long it lasted.
    pub elapsed_ns: u64,
    /// How many I/Os it had.
    pub count: u64,
    /// How many were slow.
    pub slow_count: u64,
    /// Their slow time.
    pub slow_ns: u64,
}

/// A dimension by which the slow time differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The dimension.
    pub dimension: Dimension,
    /// By how much its most telling value differs, in percentage points.
    pub points: f64,
    /// Its values with the most slow time, the most telling first.
    pub values: Vec<ValueShare>,
}

/// The share of a value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueShare {
    /// The value.
    pub value: String,
    /// Its share of the slow time that was added here, in percent.
    pub slow_percent: f64,
    /// Its share of the I/Os here, in percent.
    pub ios_percent: f64,
    /// How many of its I/Os were slow.
    pub slow_count: u64,
}

/// A wait of the slow I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spent {
    /// The wait.
    pub wait: Dimension,
    /// Its share of all waits of slow I/Os, in percent.
    pub percent: f64,
}

/// A value that did much more here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rose {
    /// The dimension.
    pub dimension: Dimension,
    /// The value.
    pub value: String,
    /// The figure that rose.
    pub metric: Metered,
    /// Its value per second on the other side; of the depth, the mean.
    pub there_per_s: f64,
    /// Likewise here.
    pub here_per_s: f64,
}

/// A figure that can rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metered {
    /// I/Os per second.
    Ops,
    /// Bytes per second.
    Bytes,
    /// The mean number in flight.
    Depth,
}

/// Fewer slow I/Os, or fewer I/Os of a value, are no evidence.
pub const IOS_LEAST: u64 = 30;
/// A smaller difference, in percentage points, does not count.
pub const POINTS_LEAST: f64 = 12.0;
/// The side in question is slower if its share of slow I/Os, or its mean slow time, is at least this many
/// times that of the other side.
pub const FACTOR_LEAST: f64 = 2.0;
/// The most values of a dimension, and the most that rose.
const SHOWN_MAX: usize = 5;

impl Diff {
    /// The comparison of two sides, of these lengths. Without another side, slow I/Os are compared with all.
    pub fn compare(&self, here: Duration, there: Option<Duration>) -> Comparison {
        let side = |sums: &Sums, lasted: Duration| SideSum {
            elapsed_ns: lasted.as_nanos(),
            count: sums.all.ios,
            slow_count: sums.all.slow,
            slow_ns: u64::try_from(sums.all.slow_ns).unwrap_or(u64::MAX),
        };
        let finding = finding(self, there.is_some());
        let (differs, alike) = match finding {
            Finding::Slow => by_dimension(self),
            _ => (Vec::new(), Vec::new()),
        };
        Comparison {
            here: side(&self.here, here),
            there: there.map(|lasted| side(&self.there, lasted)),
            finding,
            differs,
            alike,
            spent: spent(self),
            rose: there.map_or_else(Vec::new, |there| rose(self, here, there)),
        }
    }
}

fn finding(diff: &Diff, has_other: bool) -> Finding {
    let (here, there) = (&diff.here.all, &diff.there.all);
    if here.slow < IOS_LEAST {
        return Finding::TooFew;
    }
    let share = |sum: &Sum| ratio(sum.slow as f64, sum.ios as f64);
    let time = |sum: &Sum| ratio(sum.slow_ns as f64, sum.ios as f64);
    let has_risen = |of: &dyn Fn(&Sum) -> f64| of(here) >= FACTOR_LEAST * of(there);
    match !has_other || has_risen(&share) || has_risen(&time) {
        true => Finding::Slow,
        false => Finding::NotSlower,
    }
}

/// The dimensions that differ, and those that do not.
fn by_dimension(diff: &Diff) -> (Vec<Compared>, Vec<Dimension>) {
    let each = diff.dimensions.iter().map(|by| compared(diff, *by));
    let (mut differs, alike): (Vec<Compared>, Vec<Compared>) =
        each.partition(|one| one.points >= POINTS_LEAST);
    // The sort is stable: dimensions that say the same keep the order of the list of dimensions.
    differs.sort_by(|one, other| other.points.round().total_cmp(&one.points.round()));
    (
        differs,
        alike.into_iter().map(|one| one.dimension).collect(),
    )
}

fn compared(diff: &Diff, dimension: Dimension) -> Compared {
    let own: Vec<(Part, Sum, f64)> = diff
        .here
        .of
        .iter()
        .filter(|((by, _), _)| *by == dimension)
        .map(|((_, part), sum)| (*part, *sum, added_ns(diff, dimension, *part, sum)))
        .collect();
    let all: f64 = own.iter().map(|(_, _, added)| added).sum();
    let mut values: Vec<(Part, ValueShare)> = own
        .into_iter()
        .filter(|(_, sum, _)| sum.slow >= IOS_LEAST)
        .map(|(part, sum, added)| {
            let share = ValueShare {
                value: diff.name(dimension, part),
                slow_percent: 100.0 * ratio(added, all),
                ios_percent: 100.0 * ratio(sum.ios as f64, diff.here.all.ios as f64),
                slow_count: sum.slow,
            };
            (part, share)
        })
        .collect();
    values.sort_by(|(part, one), (other_part, other)| {
        let by_points = other.points().total_cmp(&one.points());
        by_points.then(part.cmp(other_part))
    });
    values.truncate(SHOWN_MAX);
    let values: Vec<ValueShare> = values.into_iter().map(|(_, share)| share).collect();
    Compared {
        dimension,
        points: values.first().map_or(0.0, ValueShare::points),
        values,
    }
}

impl ValueShare {
    /// By how many percentage points its share of the slow time exceeds that of the I/Os.
    pub fn points(&self) -> f64 {
        self.slow_percent - self.ios_percent
    }
}

/// The slow time of a value here, beyond what its I/Os would have had there.
fn added_ns(diff: &Diff, by: Dimension, part: Part, here: &Sum) -> f64 {
    let there = match diff.there.get((by, part)) {
        few if few.ios < IOS_LEAST => diff.there.all,
        own => own,
    };
    let usual = ratio(there.slow_ns as f64, there.ios as f64) * here.ios as f64;
    (here.slow_ns as f64 - usual).max(0.0)
}

fn spent(diff: &Diff) -> Vec<Spent> {
    let waited_ns = &diff.here.waited_ns;
    let all: u128 = waited_ns.iter().sum();
    let mut spent: Vec<Spent> = diff
        .waits
        .iter()
        .zip(waited_ns)
        .map(|(wait, ns)| Spent {
            wait: *wait,
            percent: 100.0 * ratio(*ns as f64, all as f64),
        })
        .filter(|spent| spent.percent >= 1.0)
        .collect();
    spent.sort_by(|one, other| other.percent.total_cmp(&one.percent));
    spent
}

/// The values that did at least twice as much here, and account for a good part of the work.
fn rose(diff: &Diff, here: Duration, there: Duration) -> Vec<Rose> {
    let mut rose: Vec<(f64, Rose)> = Vec::new();
    for metric in [Metered::Ops, Metered::Bytes, Metered::Depth] {
        let all = metric.of(&diff.here.all, here);
        let more = all - metric.of(&diff.there.all, there);
        // A client that takes the place of another one adds nothing.
        if 100.0 * ratio(more, all) < POINTS_LEAST {
            continue;
        }
        for ((by, part), sum) in &diff.here.of {
            let before = diff.there.get((*by, *part));
            let (now, then) = (metric.of(sum, here), metric.of(&before, there));
            let points = 100.0 * ratio(now - then, all);
            let is_much = now >= FACTOR_LEAST * then && points >= POINTS_LEAST;
            if ACTORS.contains(by) && is_much && sum.ios >= IOS_LEAST {
                let value = diff.name(*by, *part);
                rose.push((
                    points,
                    Rose {
                        dimension: *by,
                        value,
                        metric,
                        there_per_s: then,
                        here_per_s: now,
                    },
                ));
            }
        }
    }
    rose.sort_by(|(points, one), (others, other)| {
        let key = |rose: &Rose| (rose.dimension, rose.value.clone());
        let by_points = others.round().total_cmp(&points.round());
        by_points.then_with(|| key(one).cmp(&key(other)))
    });
    rose.truncate(SHOWN_MAX);
    rose.into_iter().map(|(_, rose)| rose).collect()
}

impl Metered {
    fn of(self, sum: &Sum, lasted: Duration) -> f64 {
        let seconds = lasted.as_nanos() as f64 / 1e9;
        match self {
            Metered::Ops => ratio(sum.ios as f64, seconds),
            Metered::Bytes => ratio(sum.bytes as f64, seconds),
            Metered::Depth => ratio(sum.time_ns as f64 / 1e9, seconds),
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    match whole > 0.0 {
        true => part / whole,
        false => 0.0,
    }
}

/// The dimensions whose values do I/O, and so can do more than before.
const ACTORS: [Dimension; 4] = [
    Dimension::Device,
    Dimension::Client,
    Dimension::Process,
    Dimension::Cgroup,
];
