//! What the screen asks for, and what it is told.

use std::time::Duration;

use super::look::Look;

/// Something to be done where the disks are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Arm {
        disk: String,
        words: String,
    },
    Update {
        rule: u32,
        words: String,
    },
    Clear {
        rule: u32,
    },
    Suspend {
        disk: String,
    },
    Resume {
        disk: String,
    },
    /// Look so often from now on.
    Every(Duration),
}

/// What is said of the disks.
pub(super) enum Told {
    Look(Box<Look>),
    /// A look failed; it is tried again.
    Down(String),
    /// What was asked for is done, or refused.
    Answer(Ask, Result<String, String>),
}
