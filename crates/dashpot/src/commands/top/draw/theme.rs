//! Colours and the like. Whatever a colour says is said by a word or a mark as well.

use ratatui::style::{Color, Modifier, Style};

/// What things look like.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands::top) struct Theme {
    colour: bool,
}

impl Theme {
    pub(in crate::commands::top) fn new(colour: bool) -> Theme {
        Theme { colour }
    }

    fn fore(self, colour: Color) -> Style {
        match self.colour {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    /// Lines, scales, and what is not asked for.
    pub(super) fn faint(self) -> Style {
        match self.colour {
            true => self.fore(Color::DarkGray),
            false => Style::new().add_modifier(Modifier::DIM),
        }
    }

    /// Heads of tables and names of panes.
    pub(super) fn title(self) -> Style {
        self.fore(Color::Cyan)
    }

    /// What the keys act on.
    pub(super) fn focused(self) -> Style {
        self.title().add_modifier(Modifier::BOLD)
    }

    /// The selected row of the pane that has the focus: even, whatever its cells are like.
    pub(super) fn selected(self) -> Style {
        Style::reset().add_modifier(Modifier::REVERSED)
    }

    /// A key in a line of keys.
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

    /// A cell of the heat map, from cold (0) to hot.
    pub(super) fn heat(self, shade: usize) -> Style {
        let colour = HEAT[shade.min(HEAT.len() - 1)];
        self.fore(Color::Indexed(colour))
    }
}

/// From the 256 colours: blue to yellow by way of red, readable on dark and on light.
const HEAT: [u8; 4] = [61, 133, 203, 220];
