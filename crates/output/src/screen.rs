//! The capabilities of standard output.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use dashpot_sources::zone_ns;
use dashpot_text::chart::Screen;
use dashpot_text::surface::{Pictures, Surface};
use dashpot_text::table::Room;
use rustix::termios::{Winsize, tcgetwinsize};

/// The width for a table on standard output: the width of the terminal, if there is one and the table need
/// not be `wide`.
pub fn room(wide: bool) -> Room {
    room_on(&io::stdout(), wide)
}

/// The width for a table on another stream.
pub fn room_on(stream: &(impl AsFd + IsTerminal), wide: bool) -> Room {
    let columns = size_of(stream).map_or(PIPE.columns as u16, |size| size.ws_col);
    Room((stream.is_terminal() && !wide).then_some(columns))
}

/// The size of a terminal, if the terminal reports one.
fn size_of(stream: &impl AsFd) -> Option<Winsize> {
    let size = tcgetwinsize(stream).ok();
    size.filter(|size| size.ws_col > 0 && size.ws_row > 0)
}

/// The capabilities of standard output for a report as text, or as JSON.
pub fn surface(as_text: bool) -> Surface {
    Surface {
        room: room(false),
        pictures: match (as_text, moving()) {
            (false, _) => Pictures::Hidden,
            (true, Some(screen)) => Pictures::Moving(screen),
            (true, None) => Pictures::Still(PIPE),
        },
        zone_ns: zone_ns(),
    }
}

/// The capabilities of standard output for a simulation's report, which dashpot prints when the simulation
/// has ended.
pub fn surface_of_simulation() -> Surface {
    let still = |screen| Screen {
        moving: false,
        ..screen
    };
    Surface {
        room: room(false),
        pictures: Pictures::Still(moving().map_or(PIPE, still)),
        // The virtual clock of a simulation begins at midnight, in no time zone.
        zone_ns: 0,
    }
}

/// The capabilities of a file.
pub fn surface_of_file() -> Surface {
    Surface {
        room: Room(None),
        pictures: Pictures::Still(PIPE),
        zone_ns: zone_ns(),
    }
}

/// The screen for a moving picture; `None` if standard output is not a terminal that can show one.
fn moving() -> Option<Screen> {
    let says = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_dumb = says("TERM").is_none_or(|term| term == "dumb");
    if !io::stdout().is_terminal() || is_dumb {
        return None;
    }
    let (columns, lines) = size_of(&io::stdout()).map_or((PIPE.columns, PIPE.lines), |size| {
        (size.ws_col.into(), size.ws_row.into())
    });
    Some(Screen {
        columns,
        // The cursor takes the line below the picture.
        lines: (lines - 1).min(LINES_MAX),
        colour: says("NO_COLOR").is_none(),
        moving: true,
    })
}

/// The assumed size of a file or of any other output without a size.
const PIPE: Screen = Screen {
    columns: 80,
    lines: 42,
    colour: false,
    moving: false,
};
/// The greatest height of a picture, in lines. A taller picture would not show more.
const LINES_MAX: usize = 30;
