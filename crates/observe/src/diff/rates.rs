//! Finds values, such as clients, with much more or less I/O on one side than on the other, slow or not.

use dashpot_engine::Duration;
use serde::Serialize;

use super::sums::{Diff, Sum, Sums};
use super::thresholds::{FACTOR_LEAST, IOS_LEAST, POINTS_LEAST, SHOWN_MAX, ratio};
use crate::dimension::Dimension;
use crate::facts::Fact;

/// A value with much more I/O, or much less, here than on the other side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    pub dimension: Dimension,
    pub value: String,
    /// The figure that rose or fell.
    pub metric: Metered,
    /// The figure per second on the other side; for the depth, the mean.
    pub there_per_s: f64,
    /// The figure per second here; for the depth, the mean.
    pub here_per_s: f64,
}

/// A figure that can rise or fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metered {
    /// I/Os per second.
    Ops,
    /// Bytes per second.
    Bytes,
    /// The mean number of I/Os in flight.
    Depth,
    /// I/Os that failed, per second.
    Errors,
}

/// A side, and how long it lasted.
type Lasting<'a> = (&'a Sums, Duration);

/// A value that did at least twice as much on one side as on the other.
struct Excess {
    /// The difference, in percent of all work of the side that did more.
    points: f64,
    dimension: Dimension,
    value: String,
    metric: Metered,
    more: f64,
    less: f64,
}

/// The values that did at least twice as much here as on the other side, if the difference is a good part of
/// all work here.
pub(super) fn rose(diff: &Diff, here: Duration, there: Duration) -> Vec<Rate> {
    let metrics = [Metered::Ops, Metered::Bytes, Metered::Depth];
    let sides = ((&diff.here, here), (&diff.there, there));
    let each = metrics.map(|metric| exceeding(diff, metric, &ACTORS, sides));
    sorted(each.into_iter().flatten().map(Excess::here))
}

/// The values that did at most half as much here as on the other side, if the difference is a good part of
/// all work on the other side.
pub(super) fn fell(diff: &Diff, here: Duration, there: Duration) -> Vec<Rate> {
    let sides = ((&diff.there, there), (&diff.here, here));
    let each = [Metered::Ops, Metered::Bytes].map(|metric| exceeding(diff, metric, &ACTORS, sides));
    sorted(each.into_iter().flatten().map(Excess::there))
}

/// The values that had at least twice as many errors per second here as on the other side, if the difference
/// is a good part of all errors here.
pub(super) fn failed(diff: &Diff, here: Duration, there: Duration) -> Vec<Rate> {
    let sides = ((&diff.here, here), (&diff.there, there));
    let each = exceeding(diff, Metered::Errors, &FAILING, sides);
    sorted(each.into_iter().map(Excess::here))
}

impl Excess {
    /// The rate of a value that did more here than on the other side.
    fn here(self) -> (f64, Rate) {
        let (here, there) = (self.more, self.less);
        self.rate(there, here)
    }

    /// The rate of a value that did more on the other side than here.
    fn there(self) -> (f64, Rate) {
        let (there, here) = (self.more, self.less);
        self.rate(there, here)
    }

    fn rate(self, there_per_s: f64, here_per_s: f64) -> (f64, Rate) {
        let rate = Rate {
            dimension: self.dimension,
            value: self.value,
            metric: self.metric,
            there_per_s,
            here_per_s,
        };
        (self.points, rate)
    }
}

/// The values that did at least twice as much on the first side as on the second. The difference must be at
/// least [`POINTS_LEAST`] percent of all work of the first side.
fn exceeding(
    diff: &Diff,
    metric: Metered,
    of: &[Dimension],
    (more, less): (Lasting<'_>, Lasting<'_>),
) -> Vec<Excess> {
    let all = metric.of(&more.0.all, more.1);
    // If one client has merely taken the place of another, the total work has not grown.
    if 100.0 * ratio(all - metric.of(&less.0.all, less.1), all) < POINTS_LEAST {
        return Vec::new();
    }
    let mut found = Vec::new();
    for ((by, part), sum) in more.0.of.iter().filter(|((by, _), _)| of.contains(by)) {
        let (now, then) = (
            metric.of(sum, more.1),
            metric.of(&less.0.get((*by, *part)), less.1),
        );
        let points = 100.0 * ratio(now - then, all);
        let is_much = now > 0.0 && now >= FACTOR_LEAST * then && points >= POINTS_LEAST;
        if is_much && metric.is_enough(sum) {
            found.push(Excess {
                points,
                dimension: *by,
                value: diff.name(*by, *part),
                metric,
                more: now,
                less: then,
            });
        }
    }
    found
}

/// Sorts rates by their points, the most first, and drops all after the first [`SHOWN_MAX`].
fn sorted(rates: impl Iterator<Item = (f64, Rate)>) -> Vec<Rate> {
    let mut rates: Vec<(f64, Rate)> = rates.collect();
    rates.sort_by(|(points, one), (others, other)| {
        let key = |rate: &Rate| (rate.dimension, rate.value.clone());
        let by_points = others.round().total_cmp(&points.round());
        by_points.then_with(|| key(one).cmp(&key(other)))
    });
    rates.truncate(SHOWN_MAX);
    rates.into_iter().map(|(_, rate)| rate).collect()
}

impl Metered {
    fn of(self, sum: &Sum, lasted: Duration) -> f64 {
        let seconds = lasted.as_nanos() as f64 / 1e9;
        match self {
            Metered::Ops => ratio(sum.ios as f64, seconds),
            Metered::Bytes => ratio(sum.bytes as f64, seconds),
            Metered::Depth => ratio(sum.time_ns as f64 / 1e9, seconds),
            Metered::Errors => ratio(sum.errors as f64, seconds),
        }
    }

    /// Whether there are enough I/Os. For most rates, a few I/Os are no evidence, but even a single error is
    /// unusual.
    fn is_enough(self, sum: &Sum) -> bool {
        self == Metered::Errors || sum.ios >= IOS_LEAST
    }
}

/// The dimensions whose values (such as clients) do I/O, and can do more of it on one side than on the other.
const ACTORS: [Dimension; 4] = [
    Dimension::Device,
    Dimension::Client,
    Dimension::Process,
    Dimension::Cgroup,
];

/// The dimensions by which errors are counted.
const FAILING: [Dimension; 4] = [
    Dimension::Error,
    Dimension::Device,
    Dimension::Op,
    Dimension::Fact(Fact::Rule),
];
