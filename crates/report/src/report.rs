//! The common interface of reports. A report asks a source a question, takes the intervals that the source
//! returns, and makes pages from them. It knows neither its source nor the place where its pages are shown.

use std::fmt;

use dashpot_observe::{Question, Schedule, Seen, Stacked};
use dashpot_text::surface::Surface;

/// A running report.
pub trait Report {
    /// The report's question to the source.
    fn question(&self) -> Question;

    /// The intervals of the report.
    fn schedule(&self) -> Schedule;

    /// The warnings that the report's text contains, so that the caller need not print them.
    fn tells(&self) -> Tells {
        Tells::NOTHING
    }

    /// Whether the report adds up the I/Os of several devices.
    fn makes_sums(&self) -> bool {
        false
    }

    /// The devices of an interval that the report's sums leave out.
    fn not_in_sums(&self, seen: &Seen) -> Vec<Stacked> {
        if self.makes_sums() {
            seen.stacked.clone()
        } else {
            Vec::new()
        }
    }

    /// The pages before the first interval.
    fn open(&mut self, _surface: &Surface) -> Pages {
        Pages::new()
    }

    /// Takes an interval.
    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages;

    /// The pages after the last interval. `is_whole` is false if the source failed before the report's end.
    fn close(&mut self, _is_whole: bool, _surface: &Surface) -> Pages {
        Pages::new()
    }

    /// The whole report as an SVG picture, if it can be drawn as one.
    fn svg(&self) -> Option<String> {
        None
    }
}

/// A part of a report's output. The `Display` of a page is the text.
pub trait Page: fmt::Display {
    /// The output of `--json`; `None` for words that only the text has.
    fn json(&self) -> Option<&dyn erased_serde::Serialize>;

    /// The output of `--csv`; `None` if the report has no output as CSV.
    fn rows(&self) -> Option<Rows> {
        None
    }

    /// A remark to print next to the text, for a text that must equal the original tool's byte for byte.
    fn remark(&self) -> Option<String> {
        None
    }

    /// Whether the text is a picture, which may move the cursor and change colours.
    fn is_picture(&self) -> bool {
        false
    }
}

/// A table of plain figures, for other programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The name of each column, with its unit. All pages of a report have the same columns.
    pub head: Vec<&'static str>,
    /// The cells. An absent figure is an empty cell.
    pub rows: Vec<Vec<String>>,
}

/// Pages in display order.
pub type Pages = Vec<Box<dyn Page>>;

/// The warnings that a report's text contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tells {
    /// Whether the text mentions the length of an interval if it is not the intended length.
    pub length: bool,
    /// Whether the text mentions lost events.
    pub lost: bool,
}

impl Tells {
    /// The text contains neither warning, because it copies another tool's format byte for byte.
    pub const NOTHING: Tells = Tells {
        length: false,
        lost: false,
    };
    /// The text mentions an unintended length.
    pub const LENGTH: Tells = Tells {
        length: true,
        lost: false,
    };
    /// The text mentions an unintended length and lost events.
    pub const ALL: Tells = Tells {
        length: true,
        lost: true,
    };
}

/// A page of words that belongs to no interval.
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
