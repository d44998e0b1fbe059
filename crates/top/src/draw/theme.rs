//! Colours and styles. Wherever colour carries a meaning, a word or a mark repeats it.

use ratatui::style::{Color, Modifier, Style};

/// The styles of the screen, with or without colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    colour: bool,
}

impl Theme {
    pub(crate) fn new(colour: bool) -> Theme {
        Theme { colour }
    }

    fn fore(self, colour: Color) -> Style {
        if self.colour {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// For lines, scales, and less important text.
    pub(super) fn faint(self) -> Style {
        if self.colour {
            self.fore(Color::DarkGray)
        } else {
            Style::new().add_modifier(Modifier::DIM)
        }
    }

    /// For the heads of tables and the names of panes.
    pub(super) fn title(self) -> Style {
        self.fore(Color::Cyan)
    }

    /// For the pane on which keys act.
    pub(super) fn focused(self) -> Style {
        self.title().add_modifier(Modifier::BOLD)
    }

    /// For the selected row of the focused pane. This style overrides the styles of cells.
    pub(super) fn selected(self) -> Style {
        Style::reset().add_modifier(Modifier::REVERSED)
    }

    /// For a key in a line of keys.
    pub(super) fn key(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn good(self) -> Style {
        self.fore(Color::Green)
    }

    pub(super) fn warning(self) -> Style {
        self.fore(Color::Yellow)
    }

    pub(super) fn bad(self) -> Style {
        self.fore(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) fn iops(self) -> Style {
        self.fore(Color::Green)
    }

    pub(super) fn latency(self) -> Style {
        self.fore(Color::Yellow)
    }

    /// For a cell of the heat map, from cold (0) to hot.
    pub(super) fn heat(self, shade: usize) -> Style {
        let colour = HEAT[shade.min(HEAT.len() - 1)];
        self.fore(Color::Indexed(colour))
    }
}

/// Four of a terminal's 256 colours, from blue to yellow by way of red. These colours are readable
/// on dark and on light backgrounds.
const HEAT: [u8; 4] = [61, 133, 203, 220];
