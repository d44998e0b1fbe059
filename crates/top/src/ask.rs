//! The requests that the screen sends to the source of the disks, and the news that the source sends back.

use std::time::Duration;

use crate::frame::Frame;

/// A request to the source of the disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
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
    /// Make a frame at this interval from now on.
    Every(Duration),
}

/// News about the disks.
pub(crate) enum News {
    Frame(Box<Frame>),
    /// The source could not make a frame, and will try again.
    Down(String),
    /// The answer to a request: what was done, or why the source refused the request.
    Answer(Ask, Result<String, String>),
}
