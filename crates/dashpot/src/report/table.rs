//! Aligned tables without borders, and what is in their cells.

use comfy_table::{CellAlignment, Table, presets};

use super::nice::short_time;

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

/// A time that may not be known.
pub(crate) fn time_or_dash(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), short_time)
}

#[cfg(test)]
mod tests {
    use super::{Column, table};
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
}
