//! Percentiles of numbers in a unit.

use dashpot_engine::histogram::Histogram;
use dashpot_observe::{Percentiles, Unit};
use dashpot_rules::{nice_number, short_time};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Percentiles of times, bytes or counts.
#[derive(Clone, Debug)]
pub struct Numbers {
    percentiles: Percentiles,
    unit: Unit,
}

impl Numbers {
    /// The percentiles of a histogram whose numbers have this unit.
    pub fn of(numbers: &Histogram, unit: Unit) -> Numbers {
        Numbers {
            percentiles: Percentiles::of(numbers),
            unit,
        }
    }

    /// The names of the figures, with the unit.
    pub fn columns(&self) -> [&'static str; 6] {
        match self.unit {
            Unit::Time => ["p50_ns", "p90_ns", "p95_ns", "p99_ns", "p99_9_ns", "max_ns"],
            Unit::Bytes => [
                "p50_bytes",
                "p90_bytes",
                "p95_bytes",
                "p99_bytes",
                "p99_9_bytes",
                "max_bytes",
            ],
            Unit::Count | Unit::Name => ["p50", "p90", "p95", "p99", "p99_9", "max"],
        }
    }

    /// The figures; a figure is `None` if there are too few I/Os for it.
    pub fn figures(&self) -> [Option<u64>; 6] {
        self.percentiles.figures()
    }

    /// The median, the 90th and the 99th percentile and the greatest number, as a table shows them.
    pub fn cells(&self) -> [String; 4] {
        let [p50, p90, _, p99, _, max] = self.figures().map(|figure| shown(figure, self.unit));
        [p50, p90, p99, max]
    }

    /// A sentence such as `p50 10.0ms, p90 10.1ms, p99 -, max 10.2ms`.
    pub fn sentence(&self) -> String {
        let [p50, p90, p99, max] = self.cells();
        format!("p50 {p50}, p90 {p90}, p99 {p99}, max {max}")
    }
}

/// A figure as a table shows it.
fn shown(figure: Option<u64>, unit: Unit) -> String {
    match (figure, unit) {
        (None, _) => "-".to_owned(),
        (Some(ns), Unit::Time) => short_time(ns),
        (Some(bytes), Unit::Bytes) => nice_number(bytes),
        (Some(count), Unit::Count | Unit::Name) => count.to_string(),
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("n", &self.percentiles.n)?;
        for (name, figure) in self.columns().iter().zip(self.figures()) {
            map.serialize_entry(name, &figure)?;
        }
        map.end()
    }
}
