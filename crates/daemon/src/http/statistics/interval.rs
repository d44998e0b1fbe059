//! Intervals of whole seconds, and a statistic counted over an interval.

use std::collections::BTreeMap;
use std::ops::Range;

use dashpot_api::{Buckets, Column, Columns, UnitWord};
use dashpot_observe::{Statistic, Unit};

use crate::{Refusal, RefusalKind};

/// The interval of an answer. It consists of whole seconds, and so do its columns.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    /// The seconds; the end of the range is excluded.
    pub(crate) seconds: Range<u64>,
    /// The length of a column in seconds. Columns begin at multiples of this length.
    pub(crate) step: u64,
}

impl Interval {
    /// The interval between two moments, up to the last second that is over.
    pub(crate) fn of(
        from_ns: Option<u64>,
        to_ns: Option<u64>,
        step_ns: u64,
        now_ns: u64,
    ) -> Result<Interval, Refusal> {
        let over = now_ns / SECOND_NS;
        let to = whole("to_ns", to_ns.unwrap_or(over * SECOND_NS))?.min(over);
        let from = match from_ns {
            Some(from_ns) => whole("from_ns", from_ns)?,
            None => to.saturating_sub(SECONDS_DEFAULT),
        };
        let step = whole("step_ns", step_ns)?.max(1);
        let columns = to.saturating_sub(from).div_ceil(step);
        if columns > COLUMNS_MAX {
            let error =
                format!("{columns} columns are too many: an answer has at most {COLUMNS_MAX}");
            return Err(Refusal::new(RefusalKind::Unprocessable, error)
                .remedy("take a longer step_ns, or a shorter interval"));
        }
        Ok(Interval {
            seconds: from..to.max(from),
            step,
        })
    }

    /// An interval between two moments, as one column.
    pub(super) fn whole(ns: &Range<u64>, now_ns: u64) -> Result<Interval, Refusal> {
        let step_ns = ns.end.saturating_sub(ns.start).max(SECOND_NS);
        Interval::of(Some(ns.start), Some(ns.end), step_ns, now_ns)
    }

    pub(crate) fn second(second: u64) -> Interval {
        Interval {
            seconds: second..second + 1,
            step: 1,
        }
    }

    pub(super) fn columns(&self) -> u64 {
        let Range { start, end } = self.seconds;
        end.saturating_sub(self.column(start)).div_ceil(self.step)
    }

    /// The seconds of the interval in pieces of at most this many columns.
    pub(super) fn pieces(&self, columns: u64) -> impl Iterator<Item = Range<u64>> {
        let Range { start, end } = self.seconds;
        let length = columns.max(1) * self.step;
        let begins = (self.column(start)..end).step_by(length as usize);
        begins.map(move |begin| begin.max(start)..(begin + length).min(end))
    }

    /// The first second of the column that contains this second.
    pub(super) fn column(&self, second: u64) -> u64 {
        second / self.step * self.step
    }
}

fn whole(name: &str, ns: u64) -> Result<u64, Refusal> {
    if ns.is_multiple_of(SECOND_NS) {
        return Ok(ns / SECOND_NS);
    }
    let error = format!("{name} is {ns}: intervals are of whole seconds");
    Err(Refusal::bad_request(error).remedy("give a multiple of 1,000,000,000"))
}

/// The columns of a statistic, as far back as the source remembers.
pub(crate) struct Counted {
    /// The columns, by their first second. Columns in which no I/O ended are left out.
    pub(crate) columns: BTreeMap<u64, Column>,
    /// Nothing from this second on was forgotten.
    pub(crate) since: u64,
}

impl Counted {
    /// Fills in the beginning of each column, and the number of I/Os that were dropped in it.
    pub(super) fn finish(&mut self, interval: &Interval, dropped: &[(u64, u64)]) {
        for (second, dropped) in dropped {
            let column = self.columns.entry(interval.column(*second)).or_default();
            column.dropped += dropped;
        }
        for (second, column) in &mut self.columns {
            column.start_ns = second * SECOND_NS;
        }
    }

    /// Makes the API's answer from the columns.
    pub(crate) fn answer(
        mut self,
        statistic: &Statistic,
        interval: &Interval,
        now_ns: u64,
    ) -> Columns {
        Columns {
            statistic: statistic.to_string(),
            title: statistic.title(),
            unit: statistic.measure().map(|number| unit_word(number.unit())),
            from_ns: interval.seconds.start * SECOND_NS,
            to_ns: interval.seconds.end * SECOND_NS,
            step_ns: interval.step * SECOND_NS,
            since_ns: self.since * SECOND_NS,
            now_ns,
            buckets: Buckets::of_columns(self.columns.values_mut()),
            columns: self.columns.into_values().collect(),
        }
    }
}

/// The unit as the API writes it.
pub(crate) fn unit_word(unit: Unit) -> UnitWord {
    match unit {
        Unit::Name => UnitWord::Name,
        Unit::Bytes => UnitWord::Bytes,
        Unit::Time => UnitWord::Ns,
        Unit::Count => UnitWord::Count,
    }
}

pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// The number of seconds in an answer if the caller names no beginning.
const SECONDS_DEFAULT: u64 = 60;
/// The most columns of an answer, which is an hour if each column is a second.
const COLUMNS_MAX: u64 = 3_600;
