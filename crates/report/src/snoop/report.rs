//! `snoop` as a [`Report`].

use std::fmt;

use dashpot_observe::{FinishedIo, Question, Schedule, Seen, Subject, Wanted};
use dashpot_text::surface::Surface;
use serde::{Serialize, Serializer};

use super::columns::{Wait, of_calls, of_kernel, of_zios};
use super::json;
use super::table::Table;
use crate::report::{Page, Pages, Report, Tells, Words};

/// The report: a line for each finished I/O.
pub struct SnoopReport {
    schedule: Schedule,
    wanted: Wanted,
    lines: Lines,
    /// Whether a line shows every wait and the offset.
    wide: bool,
    /// The table, once its columns are known.
    table: Option<Table>,
}

/// The kind of I/Os for which a report has lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Zios that finish from now on, on disks with these names.
    OfDisks(Vec<String>),
    /// I/Os that finish from now on, on devices of the kernel with these names.
    OfKernel(Vec<String>),
    /// Calls of this host's processes that finish from now on, on devices with these names.
    OfCalls(Vec<String>),
    /// Zios that are all known when the table begins, so that the table can omit waits that none of them had.
    OfThePast,
}

/// A finished I/O, and its line of the table.
struct Finished {
    io: FinishedIo,
    line: String,
}

/// A count of I/Os that are missing. JSON: `{"lost": 12}`.
#[derive(Serialize)]
struct Missed {
    lost: u64,
}

/// A count of sync calls on unknown devices. JSON: `{"unplaced": 12}`.
#[derive(Serialize)]
struct Unplaced {
    unplaced: u64,
}

impl SnoopReport {
    /// Makes a report. Unless it is `wide`, its lines are shortened to fit the terminal.
    pub fn new(schedule: Schedule, wanted: Wanted, lines: Lines, wide: bool) -> SnoopReport {
        SnoopReport {
            schedule,
            wanted,
            lines,
            wide,
            table: None,
        }
    }

    /// A table with the columns that suit the report and the I/Os seen so far.
    fn table_of(&self, ios: &[FinishedIo], surface: &Surface) -> Table {
        let waits = || match &self.lines {
            Lines::OfThePast => Wait::of_ios(ios),
            _ => Wait::of_lone_disks(),
        };
        let columns = match &self.lines {
            Lines::OfKernel(_) => of_kernel(self.wide),
            Lines::OfCalls(_) => of_calls(self.wide),
            _ => of_zios(&waits(), self.wide),
        };
        let names: Vec<&str> = match &self.lines {
            Lines::OfDisks(names) | Lines::OfKernel(names) | Lines::OfCalls(names) => {
                names.iter().map(String::as_str).collect()
            }
            Lines::OfThePast => ios.iter().map(|io| &*io.device).collect(),
        };
        Table::new(
            names.into_iter(),
            columns,
            surface.room(self.wide),
            surface.zone_ns,
        )
    }

    /// Chooses the columns, and returns the line of titles.
    fn begin(&mut self, ios: &[FinishedIo], surface: &Surface) -> Pages {
        let table = self.table.insert(self.table_of(ios, surface));
        vec![Box::new(Words(table.header()))]
    }
}

impl Report for SnoopReport {
    fn question(&self) -> Question {
        Question::of(Subject::Ios(self.wanted))
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn tells(&self) -> Tells {
        Tells::ALL
    }

    fn open(&mut self, surface: &Surface) -> Pages {
        match self.lines {
            Lines::OfThePast => Pages::new(),
            _ => self.begin(&[], surface),
        }
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let mut pages = match self.table {
            None => self.begin(&seen.ios, surface),
            Some(_) => Pages::new(),
        };
        if let Some(table) = &self.table {
            pages.extend(seen.ios.iter().map(|io| finished(table, io)));
        }
        if seen.left_out > 0 {
            let more = format!(
                "{} more are not shown: see --min, --events.\n",
                seen.left_out
            );
            pages.push(Box::new(Words(more)));
        }
        if seen.lost > 0 {
            pages.push(Box::new(Missed { lost: seen.lost }));
        }
        if let Some(unplaced @ 1..) = seen.unplaced {
            pages.push(Box::new(Unplaced { unplaced }));
        }
        pages
    }
}

fn finished(table: &Table, io: &FinishedIo) -> Box<dyn Page> {
    Box::new(Finished {
        line: table.line(io),
        io: io.clone(),
    })
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl Serialize for Finished {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json::line(&self.io).serialize(serializer)
    }
}

impl Page for Finished {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }
}

impl fmt::Display for Unplaced {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Page for Unplaced {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Page for Missed {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }

    fn remark(&self) -> Option<String> {
        let lost = self.lost;
        Some(format!("{lost} I/Os are missing here: they came too fast."))
    }
}
