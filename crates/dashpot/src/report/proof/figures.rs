//! A few figures of a histogram, and the difference of two.

use dashpot_engine::histogram::Histogram;
use serde::Serialize;

use crate::report::nice::short_time;
use crate::report::percentiles::percentile;

/// A percentile is `None` unless at least one zio is expected above it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Figures {
    pub(super) n: u64,
    pub(super) mean_ns: Option<u64>,
    pub(super) p50_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
}

/// What was achieved less what was requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Error {
    mean_ns: Option<i64>,
    p50_ns: Option<i64>,
    p99_ns: Option<i64>,
}

impl Figures {
    pub(super) fn of(histogram: &Histogram) -> Figures {
        Figures {
            n: histogram.count(),
            mean_ns: histogram.mean(),
            p50_ns: percentile(histogram, 500_000),
            p99_ns: percentile(histogram, 990_000),
            max_ns: histogram.max(),
        }
    }

    /// The same with the percentiles of a constant and its lateness, whose buckets are finer.
    pub(super) fn at_percentiles_of(self, lateness: &Figures, constant_ns: u64) -> Figures {
        Figures {
            p50_ns: lateness.p50_ns.map(|late| constant_ns + late),
            p99_ns: lateness.p99_ns.map(|late| constant_ns + late),
            ..self
        }
    }

    pub(super) fn cells(&self, time: fn(u64) -> String) -> [String; 5] {
        let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), time);
        [
            self.n.to_string(),
            time(self.mean_ns),
            time(self.p50_ns),
            time(self.p99_ns),
            time(self.max_ns),
        ]
    }
}

impl Error {
    pub(super) fn between(requested: &Figures, achieved: &Figures) -> Error {
        let difference = |achieved: Option<u64>, requested: Option<u64>| {
            let difference = i128::from(achieved?) - i128::from(requested?);
            i64::try_from(difference).ok()
        };
        Error {
            mean_ns: difference(achieved.mean_ns, requested.mean_ns),
            p50_ns: difference(achieved.p50_ns, requested.p50_ns),
            p99_ns: difference(achieved.p99_ns, requested.p99_ns),
        }
    }

    pub(super) fn cells(&self) -> [String; 5] {
        let signed = |ns: Option<i64>| {
            ns.map_or_else(
                || "-".to_owned(),
                |ns| {
                    let sign = if ns < 0 { '-' } else { '+' };
                    format!("{sign}{}", short_time(ns.unsigned_abs()))
                },
            )
        };
        [
            String::new(),
            signed(self.mean_ns),
            signed(self.p50_ns),
            signed(self.p99_ns),
            String::new(),
        ]
    }
}

/// A time to the microsecond, or in three digits if it is below one millisecond.
pub(super) fn exact_time(ns: u64) -> String {
    match ns {
        0..1_000_000 => short_time(ns),
        1_000_000..1_000_000_000 => format!("{:.3}ms", ns as f64 / 1e6),
        _ => format!("{:.6}s", ns as f64 / 1e9),
    }
}
