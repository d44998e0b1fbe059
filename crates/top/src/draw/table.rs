//! A pane with a table: a line with its title, a head, rows of which one is selected, and a note.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Theme;
use super::columns::{Cell, Column, Fit, clip};

/// A table with its title and its note.
pub(super) struct Table<'a> {
    pub(super) focused: bool,
    pub(super) title: String,
    pub(super) columns: &'a [Column],
    /// The title of the highlighted column.
    pub(super) marked: &'static str,
    pub(super) rows: Vec<Vec<Cell>>,
    pub(super) selected: Option<usize>,
    /// A note, below the rows, or in their place if there are no rows.
    pub(super) note: Option<String>,
}

impl Table<'_> {
    /// The height of title, head, rows and note.
    pub(super) fn height(&self) -> u16 {
        let head = u16::from(!self.rows.is_empty());
        1 + head + self.rows.len() as u16 + u16::from(self.note.is_some())
    }

    /// Draws as many rows as fit, including the selected row.
    pub(super) fn draw(&self, area: Rect, buffer: &mut Buffer, theme: Theme) {
        if area.height < 2 {
            return;
        }
        let noted = u16::from(self.note.is_some());
        let room = usize::from(area.height.saturating_sub(2 + noted));
        let title = match self.rows.len() {
            all if all > room => format!("{}: {room} of {all}", self.title),
            _ => self.title.clone(),
        };
        head_line(&title, self.focused, area, buffer, theme);
        let below = Rect {
            y: area.y + 1,
            height: area.height - 1,
            ..area
        };
        let rows = self.draw_rows(room, below, buffer, theme);
        self.draw_note(below.y + rows, below, buffer, theme);
    }

    /// Draws the head and the rows. Returns how many lines the head and the rows took.
    fn draw_rows(&self, room: usize, area: Rect, buffer: &mut Buffer, theme: Theme) -> u16 {
        if self.rows.is_empty() {
            return 0;
        }
        let fit = Fit::new(self.columns, &self.rows, usize::from(area.width - MARGIN));
        let head = fit.head(theme.title(), (self.marked, theme.focused()));
        let (x, width) = (area.x + MARGIN, area.width - MARGIN);
        buffer.set_line(x, area.y, &head, width);
        let skipped = (self.selected.unwrap_or_default() + 1).saturating_sub(room);
        let shown = self.rows.iter().enumerate().skip(skipped).take(room);
        let mut taken = 1;
        for (line, (at, row)) in area.rows().skip(1).zip(shown) {
            buffer.set_line(x, line.y, &fit.row(row), width);
            if Some(at) == self.selected {
                buffer.set_string(line.x, line.y, "▸", theme.focused());
            }
            if Some(at) == self.selected && self.focused {
                buffer.set_style(line, theme.selected());
            }
            taken += 1;
        }
        taken
    }

    fn draw_note(&self, y: u16, area: Rect, buffer: &mut Buffer, theme: Theme) {
        let Some(note) = self.note.as_ref().filter(|_| y < area.bottom()) else {
            return;
        };
        let style = if self.rows.is_empty() {
            theme.faint()
        } else {
            theme.warning()
        };
        let note = clip(note, usize::from(area.width - MARGIN));
        buffer.set_string(area.x + MARGIN, y, note, style);
    }
}

/// Draws the line at the top of a pane. The focused pane has a mark.
pub(super) fn head_line(title: &str, focused: bool, area: Rect, buffer: &mut Buffer, theme: Theme) {
    let (mark, style) = if focused {
        ("▸", theme.focused())
    } else {
        ("─", theme.title())
    };
    let width = usize::from(area.width);
    buffer.set_string(area.x, area.y, "─".repeat(width), theme.faint());
    let text = clip(&format!("{mark} {title} "), width);
    buffer.set_string(area.x, area.y, text, style);
}

/// The width to the left of the rows, for the mark of the selected row.
const MARGIN: u16 = 1;
