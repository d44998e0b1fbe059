//! How answers are printed: tables without borders, JSON, and times in three digits.

use std::io::{self, Write};

use clap::error::ErrorKind;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::spec::ParseError;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    /// Words, flush left.
    Text(&'static str),
    /// Figures, flush right.
    Figure(&'static str),
}

/// An aligned table without borders. Nothing is printed of no rows but the head.
pub(crate) fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.iter().map(|column| match column {
        Column::Text(title) | Column::Figure(title) => *title,
    }));
    for row in rows {
        table.add_row(row);
    }
    for (column, shown) in columns.iter().zip(table.column_iter_mut()) {
        shown.set_padding((0, 2));
        if matches!(column, Column::Figure(_)) {
            shown.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt() + "\n"
}

/// Prints a value as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// Prints a value as one line of JSON, for reports that go on.
pub(crate) fn print_json_line(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// Prints text as it is.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Ends the program as clap does where options make no sense together.
pub(crate) fn usage(error: &ParseError) -> ! {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{error}\n")).exit()
}

/// Whether a reader such as `head` has had enough, which is no failure.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(pipe))
}

/// A time in three digits: `10.0ms`, `3.20s`, `750ns`.
pub(crate) fn time(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let Some((size, unit)) = UNITS.into_iter().find(|(size, _)| ns >= *size) else {
        return format!("{ns}ns");
    };
    let value = ns as f64 / size as f64;
    let decimals = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{unit}")
}

/// A time that may not be known.
pub(crate) fn time_or_dash(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), time)
}

#[cfg(test)]
mod tests {
    use super::{Column, is_broken_pipe, table, time};
    use expect_test::expect;

    #[test]
    fn times_have_three_digits() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_500, "1.50us"),
            (10_020_000, "10.0ms"),
            (432_100_000, "432ms"),
            (3_200_000_000, "3.20s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn figures_are_flush_right() {
        let columns = [
            Column::Text("disk"),
            Column::Figure("n"),
            Column::Text("why"),
        ];
        let rows = [["c1t1d0", "7", ""], ["d", "1234", "x"]];
        let text = table(&columns, rows.map(|row| row.map(str::to_owned).to_vec()));
        expect![[r#"
            disk       n  why
            c1t1d0     7
            d       1234  x
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn a_broken_pipe_is_found_under_its_context() {
        let error = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(
            &anyhow::Error::from(error).context("printing")
        ));
        assert!(!is_broken_pipe(&anyhow::anyhow!("else")));
    }
}
