//! The comparison of two sides.

use dashpot_engine::Duration;
use serde::Serialize;

use super::rates::{Rate, failed, fell, rose};
use super::sums::{Diff, Hung, Sum, Sums};
use super::thresholds::{BESIDE_LEAST, FACTOR_LEAST, IOS_LEAST, POINTS_LEAST, SHOWN_MAX, ratio};
use crate::dimension::Dimension;
use crate::parts::Part;

/// The differences. JSON: `{"finding": "slow", "here": side, "there": side or null, "differs": [{"dimension":
/// "device", "points": 88.0, "values": [{"value": "vda", "slow_percent": 98.0, "ios_percent": 10.0,
/// "slow_count": 310}, …]}, …], "alike": ["op", …], "too_few": ["client", …], "spent": [{"wait": "hold",
/// "percent": 99.0}, …], "beside": [{"dimension": "device", "value": "vdb", "slow_mean": 31.0, "usual_mean":
/// 0.4}, …], "rose": [{"dimension": "client", "value": "uid=0 pid=7", "metric": "ops", "there_per_s": 10.0,
/// "here_per_s": 500.0}, …], "fell": likewise, "failed": likewise, "hung": [{"device": "vda", "count": 3,
/// "oldest_ns": 12000000000}, …]}`. A side is `{"elapsed_ns": 300000000000, "count": 12345, "slow_count":
/// 310, "slow_ns": 6200000000}`. `finding` is `slow`, `too_few` or `not_slower`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The side whose slow I/Os the comparison explains.
    pub here: SideSum,
    /// The side that `here` was compared with; `None` if slow I/Os were compared with all I/Os of their own
    /// side.
    pub there: Option<SideSum>,
    /// Whether there is enough slow time to look for its causes.
    pub finding: Finding,
    /// The dimensions with a value whose share of the slow time exceeds its share of the I/Os by at least
    /// [`POINTS_LEAST`] points. The dimension with the greatest difference comes first. Depth comes last,
    /// because the depth of a device rises whenever its I/Os are slow, whatever the cause.
    pub differs: Vec<Compared>,
    /// The dimensions without a value that differs enough: no value's share of the slow time exceeds its share of
    /// the I/Os by [`POINTS_LEAST`] points or more. A dimension of which no I/O has a value is left out.
    pub alike: Vec<Dimension>,
    /// The dimensions for which there is too little evidence, because each value that differs enough has
    /// fewer than [`IOS_LEAST`] slow I/Os.
    pub too_few: Vec<Dimension>,
    /// The waits in which the slow I/Os spent their time, the longest first.
    pub spent: Vec<Spent>,
    /// The values that had at least twice as many I/Os in flight as usual when slow I/Os were issued. I/Os
    /// on the slow I/O's own device do not count.
    pub beside: Vec<Beside>,
    /// The values with much more I/O (slow or not) here than on the other side; the value that rose most
    /// comes first.
    pub rose: Vec<Rate>,
    /// The values with much less I/O here than on the other side.
    pub fell: Vec<Rate>,
    /// The values whose I/Os failed much more often here than on the other side.
    pub failed: Vec<Rate>,
    /// The devices of hung I/Os: I/Os that had been in flight here for 1 s or more when a file of the
    /// recording was sealed.
    pub hung: Vec<Hung>,
}

/// Whether there is enough slow time to look for its causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// There is enough slow time.
    Slow,
    /// There are fewer than [`IOS_LEAST`] slow I/Os.
    TooFew,
    /// The side in question is no slower than the other side.
    NotSlower,
}

/// The I/Os of a side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SideSum {
    /// How long the side lasted.
    pub elapsed_ns: u64,
    /// How many I/Os the side had.
    pub count: u64,
    /// How many of the side's I/Os were slow.
    pub slow_count: u64,
    /// The total slow time of the side's slow I/Os.
    pub slow_ns: u64,
}

/// A dimension in which the shares of the slow time differ from the shares of the I/Os.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    pub dimension: Dimension,
    /// The greatest difference of any of the dimension's values, in percentage points.
    pub points: f64,
    /// The dimension's values that differ most, with the greatest difference first.
    pub values: Vec<ValueShare>,
}

/// A value's shares of the slow time and of the I/Os.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueShare {
    pub value: String,
    /// The value's share, in percent, of the extra slow time of this side. Slow time is extra if equally
    /// many I/Os of the other side would not have had it.
    pub slow_percent: f64,
    /// The value's share of the I/Os here, in percent.
    pub ios_percent: f64,
    /// How many of the value's I/Os were slow.
    pub slow_count: u64,
}

/// A wait of the slow I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spent {
    pub wait: Dimension,
    /// The wait's share of all waits of slow I/Os, in percent.
    pub percent: f64,
}

/// A value whose I/Os were in flight on other devices when slow I/Os were issued.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    pub dimension: Dimension,
    pub value: String,
    /// The mean number of the value's I/Os in flight on other devices when a slow I/O was issued.
    pub slow_mean: f64,
    /// The same mean for the moments when I/Os were issued on the other side or, without another side, for
    /// the moments when I/Os that are not slow were issued here.
    pub usual_mean: f64,
}

impl Diff {
    /// The comparison of two sides with these lengths. Without another side, slow I/Os are compared with all
    /// I/Os of their own side.
    pub fn compare(&self, here: Duration, there: Option<Duration>) -> Comparison {
        let side = |sums: &Sums, lasted: Duration| SideSum {
            elapsed_ns: lasted.as_nanos(),
            count: sums.all.ios,
            slow_count: sums.all.slow,
            slow_ns: u64::try_from(sums.all.slow_ns).unwrap_or(u64::MAX),
        };
        let finding = finding(self, there.is_some());
        let ByDimension {
            differs,
            alike,
            too_few,
        } = match finding {
            Finding::Slow => by_dimension(self),
            _ => ByDimension::default(),
        };
        Comparison {
            here: side(&self.here, here),
            there: there.map(|lasted| side(&self.there, lasted)),
            finding,
            differs,
            alike,
            too_few,
            spent: spent(self),
            beside: match finding {
                Finding::Slow => beside(self),
                _ => Vec::new(),
            },
            rose: there.map_or_else(Vec::new, |there| rose(self, here, there)),
            fell: there.map_or_else(Vec::new, |there| fell(self, here, there)),
            failed: there.map_or_else(Vec::new, |there| failed(self, here, there)),
            hung: self.hung(),
        }
    }
}

impl Comparison {
    /// The number of I/Os that ended per second here and on the other side, if the other side's number is at
    /// least [`FACTOR_LEAST`] times as high.
    pub fn fewer(&self) -> Option<(f64, f64)> {
        let per_s = |side: &SideSum| ratio(side.count as f64, side.elapsed_ns as f64 / 1e9);
        let there = self
            .there
            .as_ref()
            .filter(|there| there.count >= IOS_LEAST)?;
        let (here, there) = (per_s(&self.here), per_s(there));
        (there >= FACTOR_LEAST * here).then_some((here, there))
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
    if !has_other || has_risen(&share) || has_risen(&time) {
        Finding::Slow
    } else {
        Finding::NotSlower
    }
}

/// The dimensions, grouped by whether a dimension's values have about the same shares of the slow time as of
/// the I/Os.
#[derive(Default)]
struct ByDimension {
    differs: Vec<Compared>,
    alike: Vec<Dimension>,
    too_few: Vec<Dimension>,
}

fn by_dimension(diff: &Diff) -> ByDimension {
    let mut answers = ByDimension::default();
    for dimension in &diff.dimensions {
        let (few, enough) = values_of(diff, *dimension);
        let compared = compared(*dimension, enough);
        if answers
            .differs
            .iter()
            .any(|wider| is_only_thread(&compared, wider))
        {
            continue;
        }
        if compared.points >= POINTS_LEAST {
            answers.differs.push(compared);
        } else if few.iter().any(|few| few.points() >= POINTS_LEAST) {
            answers.too_few.push(*dimension);
        } else if diff.has_values(*dimension) {
            answers.alike.push(*dimension);
        }
    }
    // The sort is stable, so dimensions with equal differences keep their order.
    answers.differs.sort_by(|one, other| {
        let by_points = other.points.round().total_cmp(&one.points.round());
        let is_depth = |compared: &Compared| compared.dimension == Dimension::Depth;
        is_depth(one).cmp(&is_depth(other)).then(by_points)
    });
    answers
}

/// Whether the values are threads, and each of them is the only thread of its process, whose values are `wider`.
fn is_only_thread(compared: &Compared, wider: &Compared) -> bool {
    let of = match compared.dimension {
        Dimension::Thread => Dimension::Process,
        Dimension::Tid => Dimension::Pid,
        _ => return false,
    };
    wider.dimension == of && wider.values == compared.values
}

/// The shares of a dimension's values, in two lists: the values with too few slow I/Os, and the other values.
fn values_of(diff: &Diff, dimension: Dimension) -> (Vec<ValueShare>, Vec<ValueShare>) {
    let mut own: Vec<(Part, Sum, f64)> = diff
        .here
        .of
        .iter()
        .filter(|((by, _), _)| *by == dimension)
        .map(|((_, part), sum)| (*part, *sum, added_ns(diff, dimension, *part, sum)))
        .collect();
    own.sort_by_key(|(part, _, _)| *part);
    let all: f64 = own.iter().map(|(_, _, added)| added).sum();
    let share = |(part, sum, added): (Part, Sum, f64)| ValueShare {
        value: diff.name(dimension, part),
        slow_percent: 100.0 * ratio(added, all),
        ios_percent: 100.0 * ratio(sum.ios as f64, diff.here.all.ios as f64),
        slow_count: sum.slow,
    };
    let shares = own.into_iter().map(share);
    shares.partition(|share| share.slow_count < IOS_LEAST)
}

/// The dimension, with those of its values that differ most. The value with the greatest difference comes
/// first.
fn compared(dimension: Dimension, mut values: Vec<ValueShare>) -> Compared {
    // The sort is stable, so values with equal differences keep their order.
    values.sort_by(|one, other| other.points().total_cmp(&one.points()));
    values.truncate(SHOWN_MAX);
    Compared {
        dimension,
        points: values.first().map_or(0.0, ValueShare::points),
        values,
    }
}

impl ValueShare {
    /// By how many percentage points the value's share of the slow time exceeds its share of the I/Os.
    pub fn points(&self) -> f64 {
        self.slow_percent - self.ios_percent
    }
}

/// The values of [`Comparison::beside`], the greatest rise first.
fn beside(diff: &Diff) -> Vec<Beside> {
    let (slow, usual) = (&diff.slow_moments, &diff.usual_moments);
    if slow.count() < IOS_LEAST || usual.count() < IOS_LEAST {
        return Vec::new();
    }
    let mut beside: Vec<Beside> = Vec::new();
    for ((dimension, part), count) in &slow.beside {
        let before = usual.beside.get(&(*dimension, *part)).copied();
        let slow_mean = ratio(*count as f64, slow.count() as f64);
        let usual_mean = ratio(before.unwrap_or(0) as f64, usual.count() as f64);
        let is_more = slow_mean >= FACTOR_LEAST * usual_mean;
        if is_more && slow_mean - usual_mean >= BESIDE_LEAST {
            beside.push(Beside {
                dimension: *dimension,
                value: diff.name(*dimension, *part),
                slow_mean,
                usual_mean,
            });
        }
    }
    let more = |one: &Beside| one.slow_mean - one.usual_mean;
    beside.sort_by(|one, other| {
        let key = |one: &Beside| (one.dimension, one.value.clone());
        let by_more = more(other).total_cmp(&more(one));
        by_more.then_with(|| key(one).cmp(&key(other)))
    });
    beside.truncate(SHOWN_MAX);
    beside
}

/// The extra slow time of a value here: its slow time, minus the slow time that the same number of I/Os would
/// have had on the other side.
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
