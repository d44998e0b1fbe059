//! What standard output can show.

use std::io::{self, IsTerminal};

use rustix::termios::{Winsize, tcgetwinsize};

use crate::report::chart::Screen;
use crate::report::table::Room;

/// How wide a table may be: as the terminal, if there is one.
pub(super) fn room() -> Room {
    let columns = size().map_or(PIPE.columns as u16, |size| size.ws_col);
    Room(io::stdout().is_terminal().then_some(columns))
}

/// The terminal's size, where it says one.
fn size() -> Option<Winsize> {
    let size = tcgetwinsize(io::stdout()).ok();
    size.filter(|size| size.ws_col > 0 && size.ws_row > 0)
}

/// Standard output, for a picture that is drawn once.
pub(super) fn still() -> Screen {
    Screen {
        moving: false,
        ..moving().unwrap_or(PIPE)
    }
}

/// Standard output, for a picture that is drawn again and again, if it is a terminal that can.
pub(super) fn moving() -> Option<Screen> {
    let says = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_dumb = says("TERM").is_none_or(|term| term == "dumb");
    if !io::stdout().is_terminal() || is_dumb {
        return None;
    }
    let (columns, lines) = size().map_or((PIPE.columns, PIPE.lines), |size| {
        (size.ws_col.into(), size.ws_row.into())
    });
    Some(Screen {
        columns,
        // The cursor stays below the picture.
        lines: (lines - 1).min(LINES_MAX),
        colour: says("NO_COLOR").is_none(),
        moving: true,
    })
}

/// A file, or whatever else has no size.
const PIPE: Screen = Screen {
    columns: 80,
    lines: 42,
    colour: false,
    moving: false,
};
/// A higher picture shows no more.
const LINES_MAX: usize = 30;
