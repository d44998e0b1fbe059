//! Moments of the past, as users write them.

use std::cmp::Reverse;
use std::ops::Range;
use std::str::FromStr;

use anyhow::Context;
use dashpot_rules::ParseError;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// A moment: `03:10`, `2026-11-23T03:10:05`, or one with an offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A time of day.
    Time(Time),
    /// A date and a time of day in this host's time zone.
    DateTime(DateTime),
    /// A moment with its offset from UTC.
    Moment(Timestamp),
}

impl When {
    /// The moment in nanoseconds since 1970. A time of day means its last occurrence in this period, or
    /// else the occurrence nearest to the period.
    pub fn near(self, period: Range<u64>) -> anyhow::Result<u64> {
        if !self.is_time() {
            return self.on_the_day_of(period.end, 0);
        }
        let last = self.on_the_day_of(period.end, 0)?;
        let others = [
            self.on_the_day_of(period.end, -1)?,
            self.on_the_day_of(period.end, 1)?,
            self.on_the_day_of(period.start, 0)?,
            self.on_the_day_of(period.start, -1)?,
        ];
        let away = |ns: &u64| match ns {
            ns if *ns < period.start => period.start - ns,
            ns => ns.saturating_sub(period.end),
        };
        let all = others.into_iter().chain([last]);
        Ok(all
            .min_by_key(|ns| (away(ns), Reverse(*ns)))
            .unwrap_or(last))
    }

    fn is_time(self) -> bool {
        matches!(self, When::Time(_))
    }

    /// The moment in nanoseconds since 1970. A time of day means that time on the same day as `ns`, or
    /// `later` days after it.
    fn on_the_day_of(self, ns: u64, later: i64) -> anyhow::Result<u64> {
        let zone = TimeZone::system();
        let moment = match self {
            When::Moment(moment) => moment,
            When::DateTime(date_time) => zone.to_timestamp(date_time)?,
            When::Time(time) => {
                let day = zone
                    .to_datetime(Timestamp::from_nanosecond(ns.into())?)
                    .date();
                zone.to_timestamp(day.checked_add(later.days())?.to_datetime(time))?
            }
        };
        u64::try_from(moment.as_nanosecond()).context("the time is before 1970")
    }
}

/// A period: `03:10..03:15`. The end does not belong to the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// The beginning of the period.
    pub from: When,
    /// The end of the period.
    pub to: When,
}

impl FromStr for Between {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Between, ParseError> {
        let Some((from, to)) = text.split_once("..") else {
            return Err(ParseError::new(
                "write a beginning and an end with '..' between them: 03:10..03:15",
            ));
        };
        Ok(Between {
            from: from.parse()?,
            to: to.parse()?,
        })
    }
}

impl FromStr for When {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<When, ParseError> {
        if let Ok(moment) = text.parse() {
            return Ok(When::Moment(moment));
        }
        // Try a date before a time of day, because the parser of `Time` accepts a text with a date, too.
        if let Ok(date_time) = text.parse() {
            return Ok(When::DateTime(date_time));
        }
        text.parse().map(When::Time).map_err(|_| {
            ParseError::new(
                "write a time of day, 03:10 or 03:10:05, a date with it, 2026-11-23T03:10, or a moment \
                 with its offset, 2026-11-23T03:10Z",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END_NS: u64 = 1_763_868_600_000_000_000; // 2025-11-23T03:30:00Z

    #[test]
    fn a_time_of_day_is_the_last_in_the_period_or_the_nearest_to_it() {
        let zone = TimeZone::system();
        let end = Timestamp::from_nanosecond(END_NS.into()).expect("a moment");
        let local = zone.to_datetime(end).time();
        let hour_ns = 3_600_000_000_000;
        let of = |hours: i64, lasted_hours: u64| {
            let period = END_NS - lasted_hours * hour_ns..END_NS;
            let time = local.wrapping_add(hours.hours());
            let ns = When::Time(time).near(period).expect("a moment");
            (ns as i64 - END_NS as i64) / hour_ns as i64
        };
        assert_eq!([of(0, 2), of(-1, 2), of(-2, 2)], [0, -1, -2]);
        // Both times are outside the period: one is nearer to its end, the other to its beginning.
        assert_eq!([of(1, 2), of(-3, 2)], [1, -3]);
        // If the period lasts for days, the last occurrence counts.
        assert_eq!([of(-1, 60), of(1, 60)], [-1, -23]);
    }

    #[test]
    fn moments_are_read() {
        let moment = |text: &str| text.parse::<When>().expect(text).near(0..END_NS);
        assert_eq!(moment("2025-11-23T03:30Z").expect("a moment"), END_NS);
        assert_eq!(moment("2025-11-23T04:30+01:00").expect("a moment"), END_NS);
        let dated = "2025-11-23T03:10".parse::<When>();
        assert!(matches!(dated, Ok(When::DateTime(_))), "{dated:?}");
        assert!("yesterday".parse::<When>().is_err() && "25:00".parse::<When>().is_err());
    }
}
