//! The place where a report is shown.

use crate::chart::Screen;
use crate::table::Room;

/// The capabilities of the place where a report is shown.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// The width that tables may have.
    pub room: Room,
    /// The way in which pictures are shown.
    pub pictures: Pictures,
    /// The offset of the local time zone.
    pub zone_ns: i64,
}

/// The way in which pictures are shown.
#[derive(Clone, Copy, Debug)]
pub enum Pictures {
    /// A picture is drawn again and again, each time over the previous picture.
    Moving(Screen),
    /// A picture is drawn once, when it is complete.
    Still(Screen),
    /// No picture is drawn: the output is JSON or CSV.
    Hidden,
}

impl Surface {
    /// Whether a program reads the output. A program gets every value; a person gets only as many as a screen
    /// can show.
    pub fn is_for_programs(&self) -> bool {
        matches!(self.pictures, Pictures::Hidden)
    }

    /// The room for a table. The room is unbounded if the user wants a `wide` table.
    pub fn room(&self, wide: bool) -> Room {
        if wide { Room::UNBOUNDED } else { self.room }
    }

    /// Turns a time into local time, in nanoseconds since some midnight.
    pub fn local_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_add_signed(self.zone_ns)
    }
}
