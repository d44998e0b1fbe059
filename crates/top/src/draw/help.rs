//! Help for the keys and the columns.

use dashpot_text::table::wrapped;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

use super::Theme;

/// Draws the help over the middle of the screen. If the help does not fit, it begins with line
/// `from`.
pub(super) fn draw(from: usize, simulated: bool, area: Rect, buffer: &mut Buffer, theme: Theme) {
    let width = area.width.min(WIDTH);
    let lines = lines(text(simulated), usize::from(width - BORDERS), theme);
    let height = area.height.min(lines.len() as u16 + BORDERS);
    let over = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let beyond = lines.len() - usize::from(height - BORDERS);
    let title = match beyond {
        0 => " help: any key goes back ",
        _ => " help: j k ↓ ↑ scroll, other keys go back ",
    };
    let block = Block::bordered().title(title).border_style(theme.title());
    Clear.render(over, buffer);
    let shown: Vec<Line<'_>> = lines.into_iter().skip(from.min(beyond)).collect();
    Paragraph::new(shown).block(block).render(over, buffer);
}

/// Breaks the text into lines of this width.
fn lines(text: Vec<(&'static str, &str)>, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (what, means) in text {
        let means = wrapped(means, width.saturating_sub(WHAT + 1));
        for (at, part) in means.split('\n').map(str::trim_start).enumerate() {
            let what = if at == 0 { what } else { "" };
            lines.push(Line::from(vec![
                Span::styled(format!(" {what:<WHAT$}"), theme.key()),
                Span::raw(part.to_owned()),
            ]));
        }
    }
    lines
}

/// The text of the help. In a simulation, it also explains pools, and says that the simulation ends with the
/// program.
fn text(simulated: bool) -> Vec<(&'static str, &'static str)> {
    let mut text = TEXT.to_vec();
    if simulated {
        for line in &mut text {
            if line.0 == QUIT {
                line.1 = "quit; the simulation ends with it";
            }
        }
        text.extend(POOLS);
    }
    text
}

const QUIT: &str = "q Ctrl-C";

const POOLS: [(&str, &str); 2] = [
    (
        "write delay",
        "of a new write: none below |; from ] on, writes stop",
    ),
    (
        "left",
        "dirty bytes of a transaction group, not yet on the disks",
    ),
];

const TEXT: [(&str, &str); 21] = [
    ("j k ↓ ↑", "select in the pane that has the focus (▸)"),
    ("Tab", "focus disks, rules, clients"),
    (
        "s > <",
        "sort the disks by the next, by the previous column",
    ),
    (
        "a",
        "arm a rule on the selected disk, in the words of 'inject'",
    ),
    ("u", "update the selected rule; its counters are kept"),
    ("c", "clear the selected rule; what it holds stays held"),
    ("z", "suspend the selected disk, or resume it"),
    ("+ -", "make the interval longer, shorter"),
    ("space", "pause the display, and keep watching"),
    (QUIT, "quit; rules stay armed, disks suspended"),
    ("", ""),
    (
        "p50 p99 max",
        "disk latency in the interval, holds included; - where",
    ),
    ("", "there were too few I/Os to tell"),
    ("fly oldest", "I/Os in flight, and the age of the oldest"),
    (
        "most",
        "the most I/Os that were in flight at once in the interval",
    ),
    (
        "held",
        "delayed by the rule; overrun: the store took longer",
    ),
    ("late", "held, and more than 1 ms or 5 % late"),
    ("backlog", "how far ahead the rule's soonest lane is booked"),
    ("now", "I/Os that it holds now: they have not ended"),
    (
        "! before id",
        "it has injected nothing: the reason is below",
    ),
    (
        "heat map",
        "darker: more I/Os (log); below 100 I/Os, p99 is the max",
    ),
];

const WIDTH: u16 = 75;
const BORDERS: u16 = 2;
/// The width of the first column.
const WHAT: usize = 12;
