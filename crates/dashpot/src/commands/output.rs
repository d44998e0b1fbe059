//! How answers are printed: tables without borders, JSON, and times in three digits.

use std::io::{self, IsTerminal, Write};

use clap::error::ErrorKind;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

pub(crate) use crate::report::nice::short_time as time;
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

/// A line of progress on a terminal; nothing in a pipe.
pub(crate) fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {msg}") {
        bar.set_style(style);
    }
    bar
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

/// A time that may not be known.
pub(crate) fn time_or_dash(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), time)
}

#[cfg(test)]
mod tests {
    use super::{Column, is_broken_pipe, table};
    use expect_test::expect;

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
