//! Aligned tables without borders, at most as wide as the reader's terminal, and functions for the texts of
//! cells.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use dashpot_rules::{short_time, visible};

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// Words, flush left.
    Text(&'static str),
    /// Figures, flush right.
    Figure(&'static str),
}

/// A column, with the function that makes its cell from a row `T`.
pub struct Field<T> {
    column: Column,
    cell: fn(&T) -> String,
    /// Whether only `--wide` shows the column.
    wide: bool,
}

impl<T> Field<T> {
    /// A column that is always shown.
    pub const fn new(column: Column, cell: fn(&T) -> String) -> Field<T> {
        Field {
            column,
            cell,
            wide: false,
        }
    }

    /// A column that only `--wide` shows.
    pub const fn wide(column: Column, cell: fn(&T) -> String) -> Field<T> {
        Field {
            column,
            cell,
            wide: true,
        }
    }
}

/// The maximum width of a line, in characters. Files and pipes have no limit, so that a script gets whole
/// lines without omissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room(pub Option<u16>);

impl Room {
    /// No bound, for a file or a pipe.
    pub const UNBOUNDED: Room = Room(None);

    /// Whether there is room for a line of `width` columns.
    pub fn has(self, width: usize) -> bool {
        self.0.is_none_or(|columns| width <= usize::from(columns))
    }

    /// The room that is left next to the `taken` columns of a line.
    pub fn beside(self, taken: usize) -> Room {
        let taken = u16::try_from(taken).unwrap_or(u16::MAX);
        Room(self.0.map(|columns| columns.saturating_sub(taken)))
    }

    /// A name, shortened to fit next to the `taken` columns of a line. A shortened name loses its middle,
    /// because names often differ at their ends.
    pub fn name_beside(self, taken: usize, name: &str) -> String {
        let columns = self.0.map_or(usize::MAX, usize::from);
        let left = columns.saturating_sub(taken).max(NAME_MIN);
        let length = name.chars().count();
        if length <= left {
            return name.to_owned();
        }
        let head: String = name.chars().take(left / 2).collect();
        let tail: String = name.chars().skip(length - (left - 1 - left / 2)).collect();
        format!("{head}\u{2026}{tail}")
    }

    /// The width of the longest of these names, each as [`Room::name_beside`] shows it.
    pub fn widest_name<'a>(self, taken: usize, names: impl Iterator<Item = &'a str>) -> usize {
        let widths = names.map(|name| self.name_beside(taken, name).chars().count());
        widths.max().unwrap_or_default()
    }
}

/// At least this many characters of a name are always shown.
const NAME_MIN: usize = 6;

/// An aligned table without borders, as wide as its cells need. Without rows, it has only its titles.
pub fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    table_within(Room::UNBOUNDED, columns, rows)
}

/// A [`table`] that fits the screen. On a narrow screen, the gaps between columns shrink first, and then
/// texts are wrapped. Figures never are.
pub fn table_within(
    room: Room,
    columns: &[Column],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.iter().map(|column| match column {
        Column::Text(title) | Column::Figure(title) => *title,
    }));
    for row in rows {
        table.add_row(row.iter().map(|cell| visible(cell)));
    }
    let natural: usize = table
        .column_max_content_widths()
        .iter()
        .map(|width| usize::from(*width))
        .sum();
    let gaps = columns.len().saturating_sub(1);
    let gap = if room.has(natural + 2 * gaps) { 2 } else { 1 };
    for (at, (column, shown)) in columns.iter().zip(table.column_iter_mut()).enumerate() {
        shown.set_padding((0, if at < gaps { gap } else { 0 }));
        if matches!(column, Column::Figure(_)) {
            shown.set_cell_alignment(CellAlignment::Right);
            shown.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    if let Some(columns) = room.0 {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(columns);
    }
    table.trim_fmt() + "\n"
}

/// Wraps lines of text between words at the screen's edge. The last line, too, ends with a line feed.
pub fn prose_within(room: Room, lines: &str) -> String {
    let Room(Some(columns)) = room else {
        return lines.lines().map(|line| line.to_owned() + "\n").collect();
    };
    let broken = |line| {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.add_row([line]);
        if let Some(column) = table.column_mut(0) {
            column.set_padding((0, 0));
        }
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(columns);
        table.trim_fmt() + "\n"
    };
    lines.lines().map(broken).collect()
}

/// A table of these fields for each item. If `wide`, the table includes the wide fields.
pub fn table_of<'a, T: 'a>(
    room: Room,
    wide: bool,
    fields: &[Field<T>],
    items: impl IntoIterator<Item = &'a T>,
) -> String {
    let shown: Vec<&Field<T>> = fields.iter().filter(|field| wide || !field.wide).collect();
    let columns: Vec<Column> = shown.iter().map(|field| field.column).collect();
    let row = |item| shown.iter().map(|field| (field.cell)(item)).collect();
    table_within(room, &columns, items.into_iter().map(row))
}

/// A time, or a dash if it is not known.
pub fn time_or_dash(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), short_time)
}

/// The width of the text of a report.
pub const WIDTH: usize = 80;

/// Wraps a text to lines of at most `width` columns. All lines but the first are indented.
pub fn wrapped(text: &str, width: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines += &(line + "\n");
            line = " ".to_owned();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines + &line
}

/// For tests: checks that a text fits the screen.
///
/// # Panics
///
/// Panics if a line is wider than the screen; the message shows the line.
#[track_caller]
pub fn assert_fits(room: Room, text: &str) {
    let wide = text.lines().find(|line| !room.has(line.chars().count()));
    assert_eq!(wide, None, "wider than {room:?}:\n{text}");
}

#[cfg(test)]
mod tests {
    use super::{Column, Room, assert_fits, prose_within, table, table_within};
    use expect_test::expect;
    use proptest::prelude::*;

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

    const COLUMNS: [Column; 3] = [
        Column::Figure("held"),
        Column::Text("disk"),
        Column::Text("rule"),
    ];

    fn row(held: &str, disk: &str, rule: &str) -> Vec<String> {
        [held, disk, rule].map(str::to_owned).to_vec()
    }

    #[test]
    fn words_are_broken_where_the_screen_ends() {
        let rows = [
            row("1234567", "wal", "-D 10ms:1"),
            row("2", "a-disk-of-a-long-name", "-D 2ms -T flush -f 10%"),
        ];
        expect![[r#"
               held disk           rule
            1234567 wal            -D 10ms:1
                  2 a-disk-of-a-lo -D 2ms -T
                    ng-name        flush -f 10%
        "#]]
        .assert_eq(&table_within(Room(Some(36)), &COLUMNS, rows.clone()));
        expect![[r#"
               held disk                  rule
            1234567 wal                   -D 10ms:1
                  2 a-disk-of-a-long-name -D 2ms -T flush -f 10%
        "#]]
        .assert_eq(&table_within(Room(Some(53)), &COLUMNS, rows.clone()));
        let unbounded = table(&COLUMNS, rows);
        assert_eq!(unbounded.lines().count(), 3, "{unbounded}");
    }

    #[test]
    fn prose_is_broken_between_words() {
        let lines = "rule 2: was late\nand more of it\n";
        assert_eq!(prose_within(Room::UNBOUNDED, lines), lines);
        let broken = "rule 2:\nwas late\nand more\nof it\n";
        assert_eq!(prose_within(Room(Some(8)), lines), broken);
    }

    #[test]
    fn a_name_that_is_too_long_loses_its_middle() {
        let name = |room| Room(room).name_beside(60, "production-database-0");
        assert_eq!(name(None), "production-database-0");
        assert_eq!(name(Some(81)), "production-database-0");
        assert_eq!(name(Some(72)), "produc\u{2026}ase-0");
        assert_eq!(name(Some(10)), "pro\u{2026}-0");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_screen_and_nothing_is_lost(
            cells in prop::collection::vec(("[0-9]{1,8}", "[a-z-]{1,90}", "[a-z ]{0,90}"), 1..4),
            room in 40_u16..120,
        ) {
            let rows = cells.iter().map(|(held, disk, rule)| row(held, disk, rule));
            let text = table_within(Room(Some(room)), &COLUMNS, rows);
            assert_fits(Room(Some(room)), &text);
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
            let given = cells.iter().map(|(a, b, c)| letters(a) + letters(b) + letters(c));
            prop_assert_eq!(letters(&text), given.sum::<usize>() + letters("held disk rule"));
        }
    }
}
