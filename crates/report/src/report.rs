//! What all reports have in common. A report says what it asks of a source, takes the intervals that
//! the source gives, and makes pages of them. It does not know which source that is, nor where its
//! pages go.

use std::fmt;

use dashpot_api::FinishedZio;
use dashpot_observe::{Question, Schedule, Seen, Wanted};

use super::surface::Surface;

/// A report on its way.
pub trait Report {
    /// What the source is asked.
    fn question(&self) -> Question;

    /// Which intervals the report takes.
    fn schedule(&self) -> Schedule;

    /// What the report's own text says, and the caller need not say beside it.
    fn tells(&self) -> Tells {
        Tells::NOTHING
    }

    /// The pages before the first interval.
    fn open(&mut self, _surface: &Surface) -> Pages {
        Pages::new()
    }

    /// Takes an interval.
    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages;

    /// The finished zios that the report takes one by one, if it does.
    fn wanted(&self) -> Option<Wanted> {
        None
    }

    /// Takes a finished zio.
    fn take_zio(&mut self, _zio: FinishedZio) {}

    /// The pages after the last interval. `is_whole` is false if the source failed before its end.
    fn close(&mut self, _is_whole: bool, _surface: &Surface) -> Pages {
        Pages::new()
    }

    /// Everything as an SVG picture, if the report is one.
    fn svg(&self) -> Option<String> {
        None
    }
}

/// A part of a report's output: its `Display` is the text.
pub trait Page: fmt::Display {
    /// What `--json` prints; `None` of words that only the text has.
    fn json(&self) -> Option<&dyn erased_serde::Serialize>;

    /// What is to be said beside the text, because the text is another tool's byte for byte.
    fn remark(&self) -> Option<String> {
        None
    }

    /// Whether the text is a picture, which moves the cursor and changes colours.
    fn is_picture(&self) -> bool {
        false
    }
}

/// Pages in the order in which they are shown.
pub type Pages = Vec<Box<dyn Page>>;

/// What a report's text says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tells {
    /// How long an interval was that is not as long as was asked for.
    pub length: bool,
    /// How many events were lost.
    pub lost: bool,
}

impl Tells {
    /// The text is another tool's, byte for byte.
    pub const NOTHING: Tells = Tells {
        length: false,
        lost: false,
    };
    /// The text says how long the interval was.
    pub const LENGTH: Tells = Tells {
        length: true,
        lost: false,
    };
    /// The text says all of it.
    pub const ALL: Tells = Tells {
        length: true,
        lost: true,
    };
}

/// Words that belong to no interval.
pub(crate) struct Words(pub(crate) String);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Page for Words {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        None
    }
}
