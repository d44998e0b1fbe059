//! A few figures of a histogram, and the difference between two sets of figures.

use dashpot_engine::histogram::{Histogram, bucket_of, lower_bound, upper_bound};
use dashpot_observe::percentile;
use dashpot_rules::short_time;
use serde::Serialize;

/// The cells of a line: n, mean, p50, p90, p99, max.
pub(super) type Cells = [String; 6];

/// A few figures of a histogram. A percentile is `None` if there are too few zios to expect one above it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Figures {
    pub(super) n: u64,
    pub(super) mean_ns: Option<u64>,
    pub(super) p50_ns: Option<u64>,
    pub(super) p90_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
}

/// The achieved time minus the requested time, as a time and as a share of the requested time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Error {
    pub(super) mean_ns: Option<i64>,
    pub(super) p50_ns: Option<i64>,
    pub(super) p90_ns: Option<i64>,
    pub(super) p99_ns: Option<i64>,
    pub(super) mean_percent: Option<f64>,
    pub(super) p50_percent: Option<f64>,
    pub(super) p90_percent: Option<f64>,
    pub(super) p99_percent: Option<f64>,
}

impl Figures {
    pub(super) fn of(histogram: &Histogram) -> Figures {
        Figures {
            n: histogram.count(),
            mean_ns: histogram.mean(),
            p50_ns: percentile(histogram, 500_000),
            p90_ns: percentile(histogram, 900_000),
            p99_ns: percentile(histogram, 990_000),
            max_ns: histogram.max(),
        }
    }

    /// The same figures, but each percentile is that of the lateness plus the constant delay. This is more
    /// exact, because the lateness is shorter than the whole time, so its buckets are finer.
    pub(super) fn at_percentiles_of(self, lateness: &Figures, constant_ns: u64) -> Figures {
        let late = |late: Option<u64>| late.map(|late| constant_ns + late);
        Figures {
            p50_ns: late(lateness.p50_ns),
            p90_ns: late(lateness.p90_ns),
            p99_ns: late(lateness.p99_ns),
            ..self
        }
    }

    pub(super) fn cells(&self, time: fn(u64) -> String) -> Cells {
        let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), time);
        [
            self.n.to_string(),
            time(self.mean_ns),
            time(self.p50_ns),
            time(self.p90_ns),
            time(self.p99_ns),
            time(self.max_ns),
        ]
    }
}

impl Error {
    pub(super) fn between(requested: &Figures, achieved: &Figures) -> Error {
        let pairs = [
            (achieved.mean_ns, requested.mean_ns),
            (achieved.p50_ns, requested.p50_ns),
            (achieved.p90_ns, requested.p90_ns),
            (achieved.p99_ns, requested.p99_ns),
        ];
        let difference = |(achieved, requested): (Option<u64>, Option<u64>)| {
            i64::try_from(i128::from(achieved?) - i128::from(requested?)).ok()
        };
        let percent = |pair: (Option<u64>, Option<u64>)| {
            let of = pair.1.filter(|of| *of > 0)?;
            Some(difference(pair)? as f64 * 100.0 / of as f64)
        };
        let [mean_ns, p50_ns, p90_ns, p99_ns] = pairs.map(difference);
        let [mean_percent, p50_percent, p90_percent, p99_percent] = pairs.map(percent);
        Error {
            mean_ns,
            p50_ns,
            p90_ns,
            p99_ns,
            mean_percent,
            p50_percent,
            p90_percent,
            p99_percent,
        }
    }

    pub(super) fn cells(&self) -> Cells {
        let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), signed);
        between_the_ends([self.mean_ns, self.p50_ns, self.p90_ns, self.p99_ns].map(time))
    }

    /// The cells of the error, in percent of the requested time.
    pub(super) fn share_cells(&self) -> Cells {
        let share = |percent: Option<f64>| {
            percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:+.1} %"))
        };
        let shares = [
            self.mean_percent,
            self.p50_percent,
            self.p90_percent,
            self.p99_percent,
        ];
        between_the_ends(shares.map(share))
    }
}

/// The width of the buckets of a distribution's percentiles, which limits the precision of the percentiles
/// and of their difference. Only the mean shows errors smaller than a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Resolution {
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
}

impl Resolution {
    pub(super) fn of(requested: &Figures) -> Resolution {
        let width = |ns: u64| {
            let bucket = bucket_of(ns);
            upper_bound(bucket).saturating_sub(lower_bound(bucket)) + 1
        };
        Resolution {
            p50_ns: requested.p50_ns.map(width),
            p99_ns: requested.p99_ns.map(width),
        }
    }

    /// The line about the precision. The report of a delay that varies has this line below the errors.
    pub(super) fn line(&self, error: &Error) -> Option<String> {
        let p50 = short_time(self.p50_ns?);
        let p99 = self.p99_ns.map(short_time);
        let p99 = p99.map_or_else(String::new, |p99| format!(" and {p99} at p99"));
        let mean = signed(error.mean_ns?);
        Some(format!(
            "the delay varies: percentiles are exact to {p50} at p50{p99}; the mean is off by {mean}"
        ))
    }
}

/// The cells of a line in which `n` and `max` are empty.
pub(super) fn between_the_ends([mean, p50, p90, p99]: [String; 4]) -> Cells {
    [String::new(), mean, p50, p90, p99, String::new()]
}

/// A time to the microsecond or, below one millisecond, to three digits.
pub(super) fn exact_time(ns: u64) -> String {
    match ns {
        0..1_000_000 => short_time(ns),
        1_000_000..1_000_000_000 => format!("{:.3}ms", ns as f64 / 1e6),
        1_000_000_000..100_000_000_000 => format!("{:.6}s", ns as f64 / 1e9),
        _ => format!("{:.3}s", ns as f64 / 1e9),
    }
}

/// A part of a whole, and its share, such as `31 of 1000 (3.1 %)`.
pub(super) fn share(part: u64, all: u64) -> String {
    format!(
        "{part} of {all} ({:.1} %)",
        part as f64 * 100.0 / all as f64
    )
}

/// A time with its sign, such as `+35.1us`.
pub(super) fn signed(ns: i64) -> String {
    let sign = if ns < 0 { '-' } else { '+' };
    format!("{sign}{}", short_time(ns.unsigned_abs()))
}
