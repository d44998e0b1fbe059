//! Where a report's text is shown.

use super::chart::Screen;
use super::table::Room;

/// What the place of a report's text can show.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// How wide tables may be.
    pub room: Room,
    /// How pictures are shown.
    pub pictures: Pictures,
    /// What is added to a moment to have the local time of day.
    pub zone_ns: i64,
}

/// How pictures are shown.
#[derive(Clone, Copy, Debug)]
pub enum Pictures {
    /// A picture is drawn again and again, over the one before.
    Moving(Screen),
    /// A picture is drawn once, when it is whole.
    Still(Screen),
    /// No picture is drawn: the output is JSON.
    Hidden,
}

impl Surface {
    /// How wide a table may be that the user may have asked to be `wide`.
    pub fn room(&self, wide: bool) -> Room {
        match wide {
            true => Room::UNBOUNDED,
            false => self.room,
        }
    }

    /// The local time of a moment, since a midnight.
    pub(crate) fn local_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_add_signed(self.zone_ns)
    }
}
