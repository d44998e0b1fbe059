//! Percentiles as a table.

use std::fmt;

use dashpot_observe::Percentiles;
use dashpot_rules::{short_time, visible};

use crate::table::Room;

/// Writes a table of percentiles, with a line for each name. Long names are shortened if the screen has
/// no room for whole names.
///
/// The columns are the name, `n`, `p50`, `p90`, `p95`, `p99`, `p99.9` and `max`. Times have at most three
/// significant digits. A percentile for which there are too few zios is a dash, and so is `max` without zios.
pub fn write_percentiles<'a>(
    f: &mut impl fmt::Write,
    room: Room,
    title: &str,
    lines: impl Iterator<Item = (&'a str, &'a Percentiles)> + Clone,
) -> fmt::Result {
    let counts = lines.clone().map(|(_, percentiles)| percentiles.n);
    let digits = counts.max().unwrap_or_default().to_string().len();
    let n_width = digits.max(N_WIDTH);
    let taken = 1 + n_width + TIMES.len() * (1 + TIME_WIDTH);
    let named =
        lines.map(|(name, percentiles)| (room.name_beside(taken, &visible(name)), percentiles));
    let widths = named.clone().map(|(name, _)| name.chars().count());
    let width = widths.chain([title.len()]).max().unwrap_or_default();
    write!(f, "{title:<width$} {:>n_width$}", "n")?;
    for column in TIMES {
        write!(f, " {column:>TIME_WIDTH$}")?;
    }
    writeln!(f)?;
    for (name, percentiles) in named {
        write!(f, "{name:<width$} {:>n_width$}", percentiles.n)?;
        for figure in percentiles.figures() {
            let text = figure.map_or_else(|| "-".to_owned(), short_time);
            write!(f, " {text:>TIME_WIDTH$}")?;
        }
        writeln!(f)?;
    }
    Ok(())
}

const TIMES: [&str; 6] = ["p50", "p90", "p95", "p99", "p99.9", "max"];
const TIME_WIDTH: usize = 7;
/// The least width of the column for the number of zios.
const N_WIDTH: usize = 9;

#[cfg(test)]
mod tests {
    use dashpot_engine::histogram::Histogram;

    use super::*;
    use crate::table::assert_fits;
    use expect_test::expect;

    #[test]
    fn a_table_has_a_dash_where_there_are_too_few() {
        let latencies = Histogram::of(10_000_000, 30);
        let (some, none) = (
            Percentiles::of(&latencies),
            Percentiles::of(&Histogram::default()),
        );
        let mut table = String::new();
        write_percentiles(
            &mut table,
            Room::UNBOUNDED,
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

    #[test]
    fn a_table_fits_the_screen_whatever_the_names_and_the_numbers() {
        let of = |n| Percentiles {
            n,
            ..Percentiles::of(&Histogram::default())
        };
        let (few, many) = (of(7), of(u64::MAX));
        let names = "a-disk-of-a-name-that-nobody-would-type-twice-0";
        for columns in [76, 80, 100, 132] {
            let mut table = String::new();
            let lines = [(names, &few), ("vda", &many)].into_iter();
            write_percentiles(&mut table, Room(Some(columns)), "device", lines).unwrap();
            assert_fits(Room(Some(columns)), &table);
        }
    }
}
