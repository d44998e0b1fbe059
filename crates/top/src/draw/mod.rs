//! Draws the state on the screen. Drawing decides nothing and changes nothing.

mod axis;
mod charts;
mod clients;
mod columns;
mod disks;
mod figures;
mod footer;
mod gutter;
mod header;
mod heat;
mod help;
mod places;
mod pools;
mod rules;
mod table;
mod theme;
mod txgs;

use dashpot_observe::Layer;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use self::places::{Places, Wants};
use self::table::{Table, head_line};
pub(super) use self::theme::Theme;
use super::state::{Mode, Origin, Pane, State};

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
        format!("dashpot top: it needs {WIDTH_MIN}x{HEIGHT_MIN}"),
        "q quits".to_owned(),
    ];
    for (y, line) in (area.y..area.bottom()).zip(text) {
        buffer.set_stringn(area.x, y, line, usize::from(area.width), Style::new());
    }
}

/// The state to draw, and the colours.
struct Canvas<'a> {
    state: &'a State,
    theme: Theme,
}

impl Canvas<'_> {
    /// Draws all panels. Returns the place of the cursor, if the user types.
    fn draw(&self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        let width = usize::from(area.width);
        let header = header::lines(self.state, self.theme, area.height >= TALL);
        let footer = footer::footer(self.state, self.theme, width);
        let (disks, rules, clients) = (self.disks(), self.rules(), self.clients());
        let (pools, txgs) = (self.pools(), self.txgs());
        let height = |table: &Option<Table<'_>>| table.as_ref().map_or(0, Table::height);
        let wants = Wants {
            header: header.len() as u16,
            footer: footer.lines.len() as u16,
            disks: disks.height(),
            pools: height(&pools),
            txgs: height(&txgs),
            rules: rules.height(),
            clients: clients.height(),
        };
        let places = Places::new(area, &wants);
        lines(&header, places.header, buffer);
        disks.draw(places.disks, buffer, self.theme);
        for (table, place) in [(pools, places.pools), (txgs, places.txgs)] {
            if let Some(table) = table {
                table.draw(place, buffer, self.theme);
            }
        }
        rules.draw(places.rules, buffer, self.theme);
        clients.draw(places.clients, buffer, self.theme);
        self.charts(places.charts, buffer);
        lines(&footer.lines, places.footer, buffer);
        if let Mode::Help(from) = self.state.mode {
            let simulated = matches!(self.state.source, Origin::Simulation(_));
            help::draw(from, simulated, area, buffer, self.theme);
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
            focused: self.state.focus == Pane::Disks,
            title: format!("{} by {}", self.shown(), self.state.sort.word()),
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

    fn shown(&self) -> &'static str {
        let mut disks = self.state.board().frame.disks.iter();
        if disks.any(|disk| disk.layer == Layer::Volume) {
            "volumes and disks"
        } else {
            "disks"
        }
    }

    fn pools(&self) -> Option<Table<'_>> {
        let pools = &self.state.board().frame.pools;
        let selected = self.state.pool()?;
        Some(Table {
            focused: false,
            title: "write throttle".to_owned(),
            columns: &pools::COLUMNS,
            marked: "",
            rows: pools
                .iter()
                .map(|pool| pools::row(pool, self.theme))
                .collect(),
            selected: pools.iter().position(|pool| pool.name == selected.name),
            note: None,
        })
    }

    fn txgs(&self) -> Option<Table<'_>> {
        let pool = self.state.pool()?;
        Some(Table {
            focused: false,
            title: format!("transaction groups of {}", pool.name),
            columns: &txgs::COLUMNS,
            marked: "",
            rows: pool
                .txgs
                .iter()
                .map(|txg| txgs::row(txg, self.theme))
                .collect(),
            selected: None,
            note: None,
        })
    }

    fn rules(&self) -> Table<'_> {
        let rules = self.state.rules();
        let selected = self.state.rule();
        let volume = self
            .state
            .disk()
            .is_some_and(|disk| disk.layer == Layer::Volume);
        let none = match self.state.source {
            Origin::Kernel => "the kernel's disks have none",
            _ if volume => "a volume has none; the disks below it may",
            _ => "no rule is armed: press a to arm one",
        };
        Table {
            focused: self.state.focus == Pane::Rules,
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
                Some(rule) => dashpot_text::rule::note(rule),
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
            Origin::Daemon(_) => ("clients", "no client is connected"),
            Origin::Simulation(_) => ("clients", "no I/O has ended in this interval"),
            Origin::Kernel => ("processes", "no process has asked for I/O"),
        };
        Table {
            focused: self.state.focus == Pane::Clients,
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
        head_line(&title, false, area, buffer, self.theme);
        let below = Rect {
            y: area.y + 1,
            height: area.height - 1,
            ..area
        };
        let history = disk.and_then(|disk| self.state.board().history(&disk.name));
        let history = history.cloned().unwrap_or_default();
        charts::draw(&history, below, buffer, self.theme);
    }
}

/// Draws lines of text. An ellipsis shows that a line is cut off.
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
/// On a screen of at least this height, the header shows every promise that does not hold.
const TALL: u16 = 36;

#[cfg(test)]
mod tests;
