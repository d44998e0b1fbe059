//! What the keys do, and what the columns mean.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

use super::Theme;

/// Draws the help over the middle of the screen.
pub(super) fn draw(area: Rect, buffer: &mut Buffer, theme: Theme, simulated: bool) {
    let text = text(simulated);
    let width = area.width.min(WIDTH);
    let height = area.height.min(text.len() as u16 + 2);
    let over = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let lines = text.into_iter().map(|(what, means)| {
        Line::from(vec![
            Span::styled(format!(" {what:<12}"), theme.key()),
            Span::raw(means),
        ])
    });
    let block = Block::bordered()
        .title(" help: any key goes back ")
        .border_style(theme.title());
    Clear.render(over, buffer);
    Paragraph::new(lines.collect::<Vec<_>>())
        .block(block)
        .render(over, buffer);
}

/// A simulation has pools as well, and ends with the program.
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
        "of one that comes now; it begins at |, and writes stop at ]",
    ),
    (
        "left",
        "dirty bytes of a transaction group, not yet on the disks",
    ),
];

const TEXT: [(&str, &str); 20] = [
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
    ("+ -", "look less often, more often"),
    ("space", "pause the display; looks go on"),
    (QUIT, "quit; rules stay armed, disks suspended"),
    ("", ""),
    (
        "p50 p99 max",
        "disk latency in the interval, holds included; - where",
    ),
    ("", "there were too few I/Os to tell"),
    (
        "fly oldest",
        "I/Os in flight, and since when the first of them is",
    ),
    (
        "held",
        "delayed by the rule; overrun: the store took longer",
    ),
    ("late", "held, and more than 1 ms or 5 % late"),
    ("backlog", "how far ahead the rule's soonest lane is booked"),
    ("now", "I/Os that it holds now: they have not ended"),
    ("! before id", "it has injected nothing: why is said below"),
    (
        "heat map",
        "darker: more I/Os, logarithmic; p99 is the max below 100",
    ),
];

const WIDTH: u16 = 75;
