//! `snoop` as a [`Report`]: shows zios at the end, in columns that have room for all of them.

use std::fmt;

use dashpot_api::FinishedZio;
use dashpot_observe::{Question, Schedule, Seen, Wanted};
use serde::{Serialize, Serializer};

use super::{At, Shape, ZioTable};
use crate::report::{Page, Pages, Report, Tells, Words};
use crate::surface::Surface;

/// The report: a line for each finished zio.
#[derive(Clone, Debug)]
pub struct SnoopReport {
    /// Its one interval.
    pub schedule: Schedule,
    /// The zios that it takes.
    pub wanted: Wanted,
    /// The number of lines; `None` for as many as fit into memory.
    pub count: Option<u64>,
    /// Whether a line has every wait, and the offset.
    pub wide: bool,
    /// The zios so far.
    pub zios: Vec<FinishedZio>,
    /// How many zios came after those.
    pub more: u64,
}

/// A line.
struct Finished {
    zio: FinishedZio,
    line: String,
}

impl Report for SnoopReport {
    fn question(&self) -> Question {
        Question::latencies(&[self.wanted.layer])
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// No figure here depends on the interval's length or on lost events.
    fn tells(&self) -> Tells {
        Tells::LENGTH
    }

    fn wanted(&self) -> Option<Wanted> {
        Some(self.wanted)
    }

    fn take_zio(&mut self, zio: FinishedZio) {
        match (self.zios.len() as u64, self.count) {
            (shown, Some(count)) if shown >= count => {}
            (LINES_MAX.., None) => self.more += 1,
            _ => self.zios.push(zio),
        }
    }

    /// The zios come one by one.
    fn take(&mut self, _: &Seen, _: &Surface) -> Pages {
        Pages::new()
    }

    fn close(&mut self, _: bool, surface: &Surface) -> Pages {
        let shape = Shape {
            wide: self.wide,
            room: surface.room(self.wide),
        };
        let zios = std::mem::take(&mut self.zios);
        let table = ZioTable::of_zios(&zios, shape);
        let mut pages: Pages = vec![Box::new(Words(table.header()))];
        pages.extend(zios.into_iter().map(|zio| {
            let line = table.line(zio.ended_ns, &zio);
            Box::new(Finished { zio, line }) as Box<dyn Page>
        }));
        if self.more > 0 {
            let more = format!("{} more are not shown: see --min, --events.\n", self.more);
            pages.push(Box::new(Words(more)));
        }
        pages
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl Serialize for Finished {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let at_ns = self.zio.ended_ns;
        let what = &self.zio;
        At { at_ns, what }.serialize(serializer)
    }
}

impl Page for Finished {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }
}

/// The most lines of a report without a count. They fit into memory, and no reader needs more.
const LINES_MAX: u64 = 100_000;
