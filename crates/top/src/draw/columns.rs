//! Tables that leave out columns if there is no room for them, the least important first.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// The width in characters; the least width if the column grows.
    pub(super) width: usize,
    pub(super) flush: Flush,
    /// Columns with the highest rank are left out first. A column of rank 0 is never left out.
    pub(super) rank: u8,
    /// Whether the column grows to the width of its longest cell if there is room, and is left out if all
    /// cells are empty.
    pub(super) grows: bool,
}

/// The text and the style of a cell.
pub(super) type Cell = (String, Style);

/// The side of a cell to which its text is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    Left,
    Right,
}

impl Column {
    /// A column of words.
    pub(super) const fn text(title: &'static str, width: usize, rank: u8) -> Column {
        Column {
            title,
            width,
            flush: Flush::Left,
            rank,
            grows: false,
        }
    }

    pub(super) const fn figure(title: &'static str, width: usize, rank: u8) -> Column {
        Column {
            flush: Flush::Right,
            ..Column::text(title, width, rank)
        }
    }

    pub(super) const fn growing(self) -> Column {
        Column {
            grows: true,
            ..self
        }
    }
}

/// The columns that fit, in their order.
pub(super) struct Fit {
    columns: Vec<(usize, Column)>,
}

impl Fit {
    /// The columns that fit into `room` characters, with one blank between two columns.
    pub(super) fn new(columns: &[Column], rows: &[Vec<Cell>], room: usize) -> Fit {
        let says = |at: usize| {
            rows.iter()
                .any(|row| row.get(at).is_some_and(|(text, _)| !text.is_empty()))
        };
        let mut kept: Vec<(usize, Column)> = columns.iter().copied().enumerate().collect();
        kept.retain(|(at, column)| !column.grows || says(*at));
        while taken(&kept) > room {
            let least = kept.iter().map(|(_, column)| column.rank).max();
            let Some(rank) = least.filter(|rank| *rank > 0) else {
                break;
            };
            kept.retain(|(_, column)| column.rank != rank);
        }
        let mut left = room.saturating_sub(taken(&kept));
        for (at, column) in kept.iter_mut().filter(|(_, column)| column.grows) {
            let cells = rows.iter().filter_map(|row| row.get(*at));
            let longest = cells.map(|(text, _)| text.chars().count()).max();
            let grown = longest
                .unwrap_or_default()
                .saturating_sub(column.width)
                .min(left);
            column.width += grown;
            left -= grown;
        }
        Fit { columns: kept }
    }

    /// The titles. The title of the column `marked` has a different style.
    pub(super) fn head(&self, style: Style, marked: (&str, Style)) -> Line<'static> {
        let title = |column: &Column| {
            let style = if column.title == marked.0 {
                marked.1
            } else {
                style
            };
            (column.title.to_owned(), style)
        };
        self.line(|at| title(&self.columns[at].1))
    }

    /// A row. `cells` has one cell for each column, including columns that do not fit.
    pub(super) fn row(&self, cells: &[Cell]) -> Line<'static> {
        self.line(|at| cells.get(self.columns[at].0).cloned().unwrap_or_default())
    }

    fn line(&self, cell: impl Fn(usize) -> Cell) -> Line<'static> {
        let mut spans = Vec::with_capacity(2 * self.columns.len());
        for (at, (_, column)) in self.columns.iter().enumerate() {
            if at > 0 {
                spans.push(Span::raw(" "));
            }
            let (text, style) = cell(at);
            let text = clip(&text, column.width);
            let width = column.width;
            let padded = match column.flush {
                Flush::Left => format!("{text:<width$}"),
                Flush::Right => format!("{text:>width$}"),
            };
            spans.push(Span::styled(padded, style));
        }
        Line::from(spans)
    }
}

/// The first `width` characters of a text. An ellipsis shows that the text was cut off.
pub(super) fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

fn taken(columns: &[(usize, Column)]) -> usize {
    let widths: usize = columns.iter().map(|(_, column)| column.width).sum();
    widths + columns.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::{Cell, Column, Fit, clip};
    use ratatui::style::Style;

    const COLUMNS: [Column; 4] = [
        Column::text("name", 4, 0).growing(),
        Column::figure("r/s", 4, 0),
        Column::figure("f/s", 4, 2),
        Column::text("state", 5, 1).growing(),
    ];

    fn lines(room: usize) -> [String; 2] {
        let plain = |text: &str| (text.to_owned(), Style::new());
        let row: Vec<Cell> = ["c1t1d0", "12", "3", "suspended"].map(plain).to_vec();
        let fit = Fit::new(&COLUMNS, std::slice::from_ref(&row), room);
        [fit.head(Style::new(), ("", Style::new())), fit.row(&row)].map(|line| line.to_string())
    }

    #[test]
    fn columns_give_way_by_rank_and_grow_to_what_they_hold() {
        assert_eq!(
            lines(40),
            ["name    r/s  f/s state    ", "c1t1d0   12    3 suspended"]
        );
        assert_eq!(
            lines(24),
            ["name    r/s  f/s state  ", "c1t1d0   12    3 suspen…"]
        );
        assert_eq!(lines(20), ["name  r/s  f/s state", "c1t…   12    3 susp…"]);
        assert_eq!(lines(19), ["name    r/s state  ", "c1t1d0   12 suspen…"]);
        assert_eq!(lines(9), ["name  r/s", "c1t…   12"]);
        assert_eq!(lines(3), lines(9));
    }

    #[test]
    fn words_that_nobody_has_take_no_room() {
        let plain = |text: &str| (text.to_owned(), Style::new());
        let row: Vec<Cell> = ["c1t1d0", "", "", ""].map(plain).to_vec();
        let fit = Fit::new(&COLUMNS, &[row], 40);
        let head = fit.head(Style::new(), ("", Style::new()));
        assert_eq!(head.to_string(), "name    r/s  f/s");
    }

    #[test]
    fn what_is_cut_off_is_seen_to_be() {
        assert_eq!(clip("abc", 3), "abc");
        assert_eq!(clip("abcd", 3), "ab…");
        assert_eq!(clip("abcd", 0), "…");
    }
}
