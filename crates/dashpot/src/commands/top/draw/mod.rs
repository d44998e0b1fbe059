//! From the state to the screen: drawing decides nothing and changes nothing.

mod charts;
mod clients;
mod columns;
mod disks;
mod figures;
mod footer;
mod header;
mod heat;
mod help;
mod places;
mod rules;
mod theme;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use self::columns::{Cell, Column, Fit, clip};
use self::places::{Places, Wants};
pub(super) use self::theme::Theme;
use super::state::{Mode, Pane, Source, State};

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        return too_small(area, frame.buffer_mut());
    }
    let canvas = Canvas { state, theme };
    if let Some(cursor) = canvas.draw(area, frame.buffer_mut()) {
        frame.set_cursor_position(cursor);
    }
}

fn too_small(area: Rect, buffer: &mut Buffer) {
    let text = [
        format!("{}x{} is too small for", area.width, area.height),
        format!("dashpot top: it takes {WIDTH_MIN}x{HEIGHT_MIN}"),
        "q quits".to_owned(),
    ];
    for (y, line) in (area.y..area.bottom()).zip(text) {
        buffer.set_stringn(area.x, y, line, usize::from(area.width), Style::new());
    }
}

/// What is drawn, and how.
struct Canvas<'a> {
    state: &'a State,
    theme: Theme,
}

/// A pane with a table in it.
struct Table<'a> {
    pane: Pane,
    title: String,
    columns: &'a [Column],
    marked: &'static str,
    rows: Vec<Vec<Cell>>,
    selected: Option<usize>,
    /// Shown in place of rows if there are none, and below them else.
    note: Option<String>,
}

impl Canvas<'_> {
    /// Where something is typed, if it is.
    fn draw(&self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        let width = usize::from(area.width);
        let header = header::lines(self.state, self.theme, area.height >= TALL);
        let footer = footer::footer(self.state, self.theme, width);
        let (disks, rules, clients) = (self.disks(), self.rules(), self.clients());
        let wants = Wants {
            header: header.len() as u16,
            footer: footer.lines.len() as u16,
            disks: disks.height(),
            rules: rules.height(),
            clients: clients.height(),
        };
        let places = Places::new(area, &wants);
        lines(&header, places.header, buffer);
        self.table(&disks, places.disks, buffer);
        self.table(&rules, places.rules, buffer);
        self.table(&clients, places.clients, buffer);
        self.charts(places.charts, buffer);
        lines(&footer.lines, places.footer, buffer);
        if matches!(self.state.mode, Mode::Help) {
            help::draw(area, buffer, self.theme);
        }
        let (row, column) = footer.cursor?;
        Some(Position::new(
            places.footer.x + column,
            places.footer.y + row,
        ))
    }

    fn disks(&self) -> Table<'_> {
        let sorted = self.state.disks();
        let selected = self.state.disk().map(|disk| disk.name.as_str());
        Table {
            pane: Pane::Disks,
            title: format!("disks by {}", self.state.sort.word()),
            columns: &disks::COLUMNS,
            marked: self.state.sort.title(),
            rows: sorted
                .iter()
                .map(|disk| disks::row(disk, self.theme))
                .collect(),
            selected: sorted
                .iter()
                .position(|disk| Some(disk.name.as_str()) == selected),
            note: match self.state.disk() {
                Some(disk) => disks::note(disk),
                None => Some("there is no disk".to_owned()),
            },
        }
    }

    fn rules(&self) -> Table<'_> {
        let rules = self.state.rules();
        let selected = self.state.rule();
        let none = match self.state.source {
            Source::Daemon(_) => "no rule is armed: a arms one",
            Source::Kernel => "the kernel's disks have none",
        };
        Table {
            pane: Pane::Rules,
            title: format!("rules of {}", self.selected_name()),
            columns: &rules::COLUMNS,
            marked: "",
            rows: rules
                .iter()
                .map(|rule| rules::row(rule, self.theme))
                .collect(),
            selected: rules
                .iter()
                .position(|rule| Some(rule.id) == selected.map(|rule| rule.id)),
            note: match selected {
                Some(rule) => crate::commands::list::note(rule),
                None => Some(none.to_owned()),
            },
        }
    }

    fn clients(&self) -> Table<'_> {
        let clients = self
            .state
            .disk()
            .map(|disk| disk.clients.as_slice())
            .unwrap_or_default();
        let (who, nobody) = match self.state.source {
            Source::Daemon(_) => ("clients", "nobody is connected"),
            Source::Kernel => ("processes", "none has asked for anything"),
        };
        Table {
            pane: Pane::Clients,
            title: format!("{who} of {}", self.selected_name()),
            columns: &clients::COLUMNS,
            marked: "",
            rows: clients.iter().map(clients::row).collect(),
            selected: (!clients.is_empty()).then(|| self.state.client()),
            note: clients.is_empty().then(|| nobody.to_owned()),
        }
    }

    fn selected_name(&self) -> &str {
        self.state.disk().map_or("-", |disk| disk.name.as_str())
    }

    fn table(&self, table: &Table<'_>, area: Rect, buffer: &mut Buffer) {
        if area.height < 2 {
            return;
        }
        let focused = self.state.focus == table.pane;
        self.rule_off(&table.title, focused, area, buffer);
        let room = usize::from(area.width).saturating_sub(1);
        let fit = Fit::new(table.columns, &table.rows, room);
        let marked = (table.marked, self.theme.focused());
        let noted = u16::from(table.note.is_some());
        let rows_room = area.height.saturating_sub(2 + noted);
        let inner = Rect {
            x: area.x + 1,
            width: area.width - 1,
            ..area
        };
        let mut y = area.y + 1;
        if !table.rows.is_empty() {
            buffer.set_line(
                inner.x,
                y,
                &fit.head(self.theme.title(), marked),
                inner.width,
            );
            y += 1;
        }
        let selected = table.selected.unwrap_or_default();
        let skipped = (selected + 1).saturating_sub(usize::from(rows_room));
        let shown = table.rows.iter().enumerate().skip(skipped);
        for (at, row) in shown.take(usize::from(rows_room)) {
            buffer.set_line(inner.x, y, &fit.row(row), inner.width);
            if Some(at) == table.selected {
                buffer.set_string(area.x, y, "▸", self.theme.focused());
                if focused {
                    buffer.set_style(
                        Rect {
                            y,
                            height: 1,
                            ..area
                        },
                        self.theme.selected(),
                    );
                }
            }
            y += 1;
        }
        if let Some(note) = table.note.as_ref().filter(|_| y < area.bottom()) {
            let style = match table.rows.is_empty() {
                true => self.theme.faint(),
                false => self.theme.warning(),
            };
            buffer.set_string(inner.x, y, clip(note, room), style);
        }
    }

    fn charts(&self, area: Rect, buffer: &mut Buffer) {
        if area.height < 2 {
            return;
        }
        let disk = self.state.disk();
        let done = disk.and_then(|disk| disk.done.as_ref());
        let now = done.map_or_else(String::new, |done| {
            let p99 = figures::time(done.p99_ns);
            format!(": {} IOPS, p99 {p99}", figures::count(done.all))
        });
        let title = format!("{} over time{now}", self.selected_name());
        self.rule_off(&title, false, area, buffer);
        let below = Rect {
            y: area.y + 1,
            height: area.height - 1,
            ..area
        };
        let history = disk.and_then(|disk| self.state.board().history(&disk.name));
        let history = history.cloned().unwrap_or_default();
        charts::draw(&history, below, buffer, self.theme);
    }

    /// The line at the top of a pane. The one with the focus has a mark, too.
    fn rule_off(&self, title: &str, focused: bool, area: Rect, buffer: &mut Buffer) {
        let (mark, style) = match focused {
            true => ("▸", self.theme.focused()),
            false => ("─", self.theme.title()),
        };
        buffer.set_string(
            area.x,
            area.y,
            "─".repeat(usize::from(area.width)),
            self.theme.faint(),
        );
        let text = clip(&format!("{mark} {title} "), usize::from(area.width));
        buffer.set_string(area.x, area.y, text, style);
    }
}

impl Table<'_> {
    /// Title, head, rows and note.
    fn height(&self) -> u16 {
        let head = u16::from(!self.rows.is_empty());
        1 + head + self.rows.len() as u16 + u16::from(self.note.is_some())
    }
}

/// Lines of text; what is cut off is seen to be.
fn lines(lines: &[Line<'_>], area: Rect, buffer: &mut Buffer) {
    for (row, line) in area.rows().zip(lines) {
        line.render(row, buffer);
        if line.width() > usize::from(row.width) {
            buffer.set_string(row.right() - 1, row.y, "…", Style::new());
        }
    }
}

const WIDTH_MIN: u16 = 60;
const HEIGHT_MIN: u16 = 12;
/// High enough for every promise that does not hold.
const TALL: u16 = 36;

#[cfg(test)]
mod tests;
