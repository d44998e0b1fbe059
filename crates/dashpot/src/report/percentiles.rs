//! Percentiles as a table.

use std::fmt;

use dashpot_observe::Percentiles;
use dashpot_rules::{short_time, visible};

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

#[cfg(test)]
mod tests {
    use super::*;
    use dashpot_engine::histogram::Histogram;
    use expect_test::expect;

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
