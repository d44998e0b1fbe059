//! Percentiles that say how many zios they are of.

use std::fmt;

use dashpot_engine::histogram::Histogram;
use dashpot_export::plain::visible;
use serde::Serialize;

use super::nice::short_time;

/// Percentiles of a latency. JSON: `{"n": 250, "p50_ns": 10025000, "p90_ns": …, "p95_ns": …,
/// "p99_ns": …, "p99_9_ns": null, "max_ns": …}`.
///
/// A percentile is `null` unless at least one zio is expected above it: p99 needs 100 zios. At
/// most 1.2 % off (the bucket's width); n and the maximum are exact, except that the maximum of
/// an interval can be rounded up to its bucket's edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) n: u64,
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p90_ns: Option<u64>,
    pub(crate) p95_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    pub(crate) p99_9_ns: Option<u64>,
    pub(crate) max_ns: Option<u64>,
}

impl Percentiles {
    /// Reads the percentiles of a histogram.
    pub(crate) fn of(latencies: &Histogram) -> Self {
        Percentiles {
            n: latencies.count(),
            p50_ns: percentile(latencies, 500_000),
            p90_ns: percentile(latencies, 900_000),
            p95_ns: percentile(latencies, 950_000),
            p99_ns: percentile(latencies, 990_000),
            p99_9_ns: percentile(latencies, 999_000),
            max_ns: latencies.max(),
        }
    }

    fn figures(&self) -> [Option<u64>; 6] {
        [
            self.p50_ns,
            self.p90_ns,
            self.p95_ns,
            self.p99_ns,
            self.p99_9_ns,
            self.max_ns,
        ]
    }
}

/// A table of percentiles, with a line for each of several that have names.
///
/// Times have three digits, and a percentile of too few zios is a dash:
/// `      n    p50    p90    p95    p99  p99.9    max`.
pub(crate) fn write_percentiles<'a>(
    f: &mut impl fmt::Write,
    title: &str,
    lines: impl Iterator<Item = (&'a str, &'a Percentiles)> + Clone,
) -> fmt::Result {
    let names = lines.clone().map(|(name, _)| visible(name).chars().count());
    let width = names.chain([title.len()]).max().unwrap_or_default();
    write!(f, "{title:<width$} {:>9}", "n")?;
    for column in ["p50", "p90", "p95", "p99", "p99.9", "max"] {
        write!(f, " {column:>7}")?;
    }
    writeln!(f)?;
    for (name, percentiles) in lines {
        let name = visible(name);
        write!(f, "{name:<width$} {:>9}", percentiles.n)?;
        for figure in percentiles.figures() {
            let text = figure.map_or_else(|| "-".to_owned(), short_time);
            write!(f, " {text:>7}")?;
        }
        writeln!(f)?;
    }
    Ok(())
}

/// The latency in nanoseconds at `ppm` millionths, if there are enough zios for one.
pub(crate) fn percentile(latencies: &Histogram, ppm: u32) -> Option<u64> {
    is_enough(latencies.count(), ppm).then(|| latencies.quantile(ppm))?
}

/// Whether `n` zios are enough for a percentile: at least one is expected above it.
pub(crate) fn is_enough(n: u64, ppm: u32) -> bool {
    n >= 1_000_000 / u64::from(1_000_000 - ppm.min(999_999))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_percentile_needs_a_zio_above_it() {
        let mut latencies = Histogram::default();
        (0..99).for_each(|_| latencies.record(5_000_000));
        let few = Percentiles::of(&latencies);
        latencies.record(5_000_000);
        let enough = Percentiles::of(&latencies);
        assert_eq!((few.p90_ns, few.p99_ns), (Some(5_000_000), None));
        assert_eq!((enough.p99_ns, enough.p99_9_ns), (Some(5_000_000), None));
        assert_eq!(Percentiles::of(&Histogram::default()).p50_ns, None);
    }

    #[test]
    fn a_table_has_a_dash_where_there_are_too_few() {
        let mut latencies = Histogram::default();
        (0..30).for_each(|_| latencies.record(10_000_000));
        let (some, none) = (
            Percentiles::of(&latencies),
            Percentiles::of(&Histogram::default()),
        );
        let mut table = String::new();
        write_percentiles(
            &mut table,
            "device",
            [("vda", &some), ("a-long-one", &none)].into_iter(),
        )
        .unwrap();
        expect![[r#"
            device             n     p50     p90     p95     p99   p99.9     max
            vda               30  10.0ms  10.0ms  10.0ms       -       -  10.0ms
            a-long-one         0       -       -       -       -       -       -
        "#]]
        .assert_eq(&table);
    }
}
