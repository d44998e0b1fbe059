//! `observe`: rates, percentiles and what is in flight of each device, a line per device.

use std::fmt;

use dashpot_engine::histogram::Histogram;
use serde::Serialize;

use super::interval::DeviceInterval;
use super::nice::short_time;
use super::percentiles::Percentiles;

/// The devices of an interval. JSON: `{"elapsed_ns": …, "devices": […], "lost": 0}`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Observation {
    pub(crate) elapsed_ns: u64,
    pub(crate) devices: Vec<Line>,
    /// Events that the interval misses: what they would have told is in no figure.
    pub(crate) lost: u64,
}

/// A device. Rates are per second.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) device: String,
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    pub(crate) discards: f64,
    pub(crate) flushes: f64,
    pub(crate) bytes: f64,
    /// From issue to completion, of all types.
    pub(crate) latency: Percentiles,
    pub(crate) in_flight: u64,
    pub(crate) oldest_in_flight_ns: Option<u64>,
}

impl Line {
    /// As in the kernel's statistics, writing zeroes counts as writing, and a trim is a discard.
    pub(crate) fn of(interval: &DeviceInterval) -> Line {
        let mut latency = Histogram::default();
        interval.ops.iter().for_each(|op| latency.merge(&op.disk));
        let seconds = interval.elapsed.as_secs_f64();
        let per_second = |number: u64| match seconds > 0.0 {
            true => number as f64 / seconds,
            false => 0.0,
        };
        let rate = |words: &[&str]| {
            let asked = interval
                .ops
                .iter()
                .filter(|op| words.contains(&op.op.as_str()));
            per_second(asked.map(|op| op.completed).sum())
        };
        Line {
            device: interval.device.clone(),
            reads: rate(&["read"]),
            writes: rate(&["write", "zero"]),
            discards: rate(&["trim"]),
            flushes: rate(&["flush"]),
            bytes: per_second(interval.ops.iter().map(|op| op.bytes).sum()),
            latency: Percentiles::of(&latency),
            in_flight: interval.in_flight.zios,
            oldest_in_flight_ns: interval.in_flight.oldest_ns,
        }
    }
}

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.devices.iter().map(|line| line.device.len());
        let width = names.max().unwrap_or_default().max("device".len());
        let [r, w, d, fl, kb, n] = ["r/s", "w/s", "d/s", "f/s", "kB/s", "n"];
        write!(
            f,
            "{:width$} {r:>8} {w:>8} {d:>7} {fl:>7} {kb:>10} {n:>8}",
            "device"
        )?;
        let [p50, p90, p99, max, flight, oldest] =
            ["p50", "p90", "p99", "max", "in flight", "oldest"];
        writeln!(
            f,
            " {p50:>7} {p90:>7} {p99:>7} {max:>7} {flight:>9} {oldest:>7}"
        )?;
        self.devices
            .iter()
            .try_for_each(|line| line.write(f, width))?;
        if self.lost > 0 {
            writeln!(
                f,
                "Lost: {} events; what they tell of is missing here.",
                self.lost
            )?;
        }
        writeln!(f)
    }
}

impl Line {
    fn write(&self, f: &mut fmt::Formatter<'_>, width: usize) -> fmt::Result {
        let Line {
            device,
            reads,
            writes,
            discards,
            flushes,
            latency,
            ..
        } = self;
        let kilobytes = self.bytes / 1024.0;
        let n = latency.n;
        write!(
            f,
            "{device:width$} {reads:>8.1} {writes:>8.1} {discards:>7.1} {flushes:>7.1} {kilobytes:>10.1} {n:>8}"
        )?;
        let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), short_time);
        for percentile in [
            latency.p50_ns,
            latency.p90_ns,
            latency.p99_ns,
            latency.max_ns,
        ] {
            write!(f, " {:>7}", time(percentile))?;
        }
        let oldest = time(self.oldest_in_flight_ns);
        writeln!(f, " {:>9} {oldest:>7}", self.in_flight)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dashpot_engine::histogram::Histogram;
    use expect_test::expect;

    use super::{Line, Observation};
    use crate::report::in_flight::InFlight;
    use crate::report::interval::{DeviceInterval, OpInterval};

    fn op(op: &str, completed: u64, ns: u64) -> OpInterval {
        let mut latency = Histogram::default();
        (0..completed).for_each(|_| latency.record(ns));
        OpInterval {
            op: op.to_owned(),
            rwbs: None,
            by: None,
            completed,
            bytes: completed * 4_096,
            total: latency.clone(),
            disk: latency,
            store: None,
        }
    }

    fn interval(device: &str, ops: Vec<OpInterval>, in_flight: InFlight) -> Line {
        Line::of(&DeviceInterval {
            device: device.to_owned(),
            elapsed: Duration::from_secs(2),
            ops,
            busy: Duration::ZERO,
            depth_time_ns: 0,
            in_flight,
        })
    }

    #[test]
    fn a_line_for_each_device_and_a_word_on_what_was_lost() {
        let waiting = InFlight {
            zios: 3,
            oldest_ns: Some(2_500_000_000),
            ..InFlight::default()
        };
        let ops = vec![
            op("read", 90, 1_000_000),
            op("zero", 10, 40_000_000),
            op("read", 1, 1_000_000),
        ];
        let observation = Observation {
            elapsed_ns: 2_000_000_000,
            devices: vec![
                interval("nvme0n1", ops, waiting),
                interval("vda", Vec::new(), InFlight::default()),
            ],
            lost: 7,
        };
        expect![[r#"
            device       r/s      w/s     d/s     f/s       kB/s        n     p50     p90     p99     max in flight  oldest
            nvme0n1     45.5      5.0     0.0     0.0      202.0      101  1.00ms  1.00ms  40.0ms  40.0ms         3   2.50s
            vda          0.0      0.0     0.0     0.0        0.0        0       -       -       -       -         0       -
            Lost: 7 events; what they tell of is missing here.

        "#]].assert_eq(&observation.to_string());
    }
}
