//! The intervals of a period of a recording. Each interval is read by itself, so that only one is in memory
//! at a time. Each I/O counts in the interval in which it ended, in whatever order the recorder received the
//! I/Os.

use std::time::Duration;

use anyhow::bail;
use dashpot_engine::histogram::Histogram;
use dashpot_observe::{
    DeviceInterval, FinishedIo, InFlight, Intervals, Knows, Layer, OpInterval, Question, Schedule,
    Seen, Span,
};
use dashpot_recording::{Blocks, Query};
use dashpot_rules::thousands;

use super::busy::BusyDevices;
use super::columns::columns_of;
use super::counted::{answer, count};
use super::counting::Counting;
use super::period::Recorded;
use super::spans::Period;
use crate::source::Source;

/// The intervals that are still to be read.
pub(super) struct RecordedIntervals<'a> {
    recorded: &'a Recorded,
    question: Question,
    intervals: Intervals,
    /// The blocks that were read for the last interval. The next interval often begins in the last row group
    /// of these blocks.
    blocks: Blocks,
    /// Whether per-second counts can answer the question for seconds that lack single I/Os.
    counts: bool,
    /// How busy the devices were, if the question asks for it.
    busy: Option<BusyDevices>,
}

impl<'a> RecordedIntervals<'a> {
    pub(super) fn begin(
        recorded: &'a Recorded,
        question: &Question,
        schedule: &Schedule,
    ) -> anyhow::Result<RecordedIntervals<'a>> {
        let shown = shown(recorded.period, schedule)?;
        let busy = if question.has_averages() {
            Some(busy(recorded, shown, schedule.interval.as_nanos())?)
        } else {
            None
        };
        Ok(RecordedIntervals {
            busy,
            recorded,
            question: question.clone(),
            intervals: schedule.begin(recorded.period.from_ns),
            blocks: Blocks::default(),
            counts: answer(question),
        })
    }

    fn read(&mut self, span: Span) -> anyhow::Result<Seen> {
        let period = Period {
            from_ns: span.start_ns,
            to_ns: span.end_ns,
        };
        let has_counted = self.has_counted();
        let query = Query {
            latency_ns: self.question.predicates.latencies(),
            columns: columns_of(&self.question, has_counted),
            ..period.query()
        };
        let mut counting = Counting::begin(self.recorded, &self.question, has_counted);
        self.recorded.ask(query, &mut self.blocks);
        while let Some(block) = self.blocks.next_block()? {
            counting.add(block);
        }
        let Counting {
            mut tally,
            in_flight,
            ..
        } = counting;
        if has_counted && self.counts {
            count(self.recorded, period, &self.question, &mut tally)?;
        }
        let last_ns = self.blocks.last_ns();
        let is_unknown = self.recorded.loses_sight_after(last_ns, period);
        let names = self.recorded.names.iter();
        let devices = names.map(|name| {
            let busy = self.busy.as_ref();
            let (busy_ns, depth_time_ns) =
                busy.map_or((0, 0), |busy| busy.interval(name, span.start_ns));
            DeviceInterval {
                device: name.clone(),
                elapsed: Duration::from_nanos(self.known_ns(period)),
                ops: self.averaged(tally.ops(name)),
                busy: Duration::from_nanos(busy_ns),
                depth_time_ns,
                depths: None,
                in_flight: if is_unknown {
                    InFlight::UNKNOWN
                } else {
                    let own = at_the_last_seal(&in_flight, last_ns, name);
                    self.with_earlier(own, name, period)
                },
            }
        });
        let mut seen = Seen {
            span,
            at_ns: span.end_ns,
            lost: self.recorded.lost(period),
            unplaced: self.recorded.unplaced(period),
            ..Seen::default()
        };
        seen.add(self.recorded.layer(), devices.collect());
        seen.stacked = self.recorded.stacked_in(period);
        self.question.predicates.name_devices(&mut seen.stacked);
        Ok(seen)
    }
}

impl RecordedIntervals<'_> {
    /// Adds a device's I/Os in flight that began before the recorder's watch.
    fn with_earlier(&self, own: InFlight, device: &str, period: Period) -> InFlight {
        let has_conditions =
            !self.question.predicates.is_empty() || self.recorded.conditions().is_some();
        match self.recorded.earlier(device, period) {
            Some((all, at_ns)) => all.add_to(own, has_conditions, at_ns),
            None => own,
        }
    }

    /// Whether to skip the single I/Os of seconds for which the recording has counts. If the counts answer
    /// the question, these I/Os would count twice. Otherwise, the answer leaves out such a second as a whole,
    /// because it would look idle with the few I/Os that it still has.
    fn has_counted(&self) -> bool {
        (self.counts || self.busy.is_some()) && !self.recorded.counted.is_empty()
    }

    /// How many nanoseconds of a period the answer covers.
    fn known_ns(&self, period: Period) -> u64 {
        match self.busy {
            Some(_) => {
                let parts = self.recorded.counted.outside(period);
                parts.map(|part| self.recorded.watched_ns(part)).sum()
            }
            None => self.recorded.watched_ns(period),
        }
    }

    /// Adds the time in the kernel's queue to the averages of the kernel's disks, because the kernel's own
    /// averages include it.
    fn averaged(&self, mut ops: Vec<OpInterval>) -> Vec<OpInterval> {
        if self.question.has_averages() && self.recorded.knows() == Knows::Kernel {
            for op in &mut ops {
                let queued = op.counts.latencies(Layer::Kernel, true);
                op.time_ns = queued.map_or(0, Histogram::sum);
            }
        }
        ops
    }
}

impl Source for RecordedIntervals<'_> {
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        let Some(due_ns) = self.intervals.due_ns() else {
            return Ok(None);
        };
        let to_ns = self.recorded.period.to_ns;
        let is_last = due_ns >= to_ns;
        let span = self.intervals.end_or_close(due_ns.min(to_ns), is_last);
        span.map(|span| self.read(span)).transpose()
    }
}

/// The part of a period that the intervals of a schedule cover.
fn shown(period: Period, schedule: &Schedule) -> anyhow::Result<Period> {
    let Period { from_ns, to_ns } = period;
    let interval_ns = schedule.interval.as_nanos().max(1);
    let whole = (to_ns - from_ns).div_ceil(interval_ns);
    let count = whole.min(schedule.count.unwrap_or(u64::MAX));
    if count > INTERVALS_MAX {
        bail!(
            "the period has {} intervals, more than {}: ask for longer ones, or for fewer",
            thousands(whole),
            thousands(INTERVALS_MAX)
        );
    }
    let end_ns = from_ns.saturating_add(interval_ns.saturating_mul(count));
    Ok(Period {
        from_ns,
        to_ns: to_ns.min(end_ns),
    })
}

/// How busy the devices were in each interval of the shown part of a period.
fn busy(recorded: &Recorded, shown: Period, interval_ns: u64) -> anyhow::Result<BusyDevices> {
    let intervals = (shown.to_ns - shown.from_ns).div_ceil(interval_ns.max(1));
    let kept = intervals.saturating_mul(recorded.names.len() as u64);
    if kept > BUSY_MAX {
        bail!(
            "{} intervals of {} devices are more than {} figures: name devices with -d, or ask for fewer intervals",
            thousands(intervals),
            recorded.names.len(),
            thousands(BUSY_MAX)
        );
    }
    BusyDevices::of(recorded, shown, interval_ns)
}

/// The I/Os of a device that were in flight when the last file was sealed; none if an I/O ended after that.
/// In the recording, an I/O in flight has the age that it had when the file was sealed.
fn at_the_last_seal(ios: &[FinishedIo], last_ns: u64, device: &str) -> InFlight {
    let own = || ios.iter().filter(|io| &*io.device == device);
    let sealed_ns = own().map(|io| io.at_ns).max();
    let Some(sealed_ns) = sealed_ns.filter(|sealed_ns| *sealed_ns >= last_ns) else {
        return InFlight::default();
    };
    let last = own().filter(|io| io.at_ns == sealed_ns);
    let oldest_ns = last.clone().map(FinishedIo::total_ns).max();
    InFlight {
        zios: Some(last.count() as u64),
        oldest_ns,
        device: Some(device.to_owned()),
        ..InFlight::default()
    }
}

/// The maximum number of intervals. A day has fewer seconds, so a user who asks for more has made a mistake.
const INTERVALS_MAX: u64 = 100_000;
/// The maximum number of intervals of all devices whose busy time is kept: 64 MiB.
const BUSY_MAX: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use dashpot_engine::Duration;
    use dashpot_observe::Schedule;

    use super::super::spans::{Period, SECOND_NS};
    use super::shown;

    const YEAR_S: u64 = 365 * 24 * 3600;

    /// The intervals that are kept of a year, or the refusal.
    fn kept(interval: Duration, count: Option<u64>) -> Result<u64, String> {
        let year = Period {
            from_ns: SECOND_NS,
            to_ns: (1 + YEAR_S) * SECOND_NS,
        };
        let shown =
            shown(year, &Schedule::every(interval, count)).map_err(|error| error.to_string())?;
        assert_eq!(shown.from_ns, year.from_ns);
        Ok((shown.to_ns - shown.from_ns).div_ceil(interval.as_nanos()))
    }

    #[test]
    fn what_is_kept_is_what_is_shown_however_long_the_period() {
        assert_eq!(kept(Duration::from_nanos(1), Some(3)), Ok(3));
        assert_eq!(kept(Duration::from_secs(1), Some(5)), Ok(5));
        assert_eq!(kept(Duration::from_secs(YEAR_S), None), Ok(1));
        assert_eq!(kept(Duration::from_secs(3600), None), Ok(YEAR_S / 3600));
        let refused = kept(Duration::from_secs(1), None).unwrap_err();
        assert!(refused.contains("31,536,000 intervals"), "{refused}");
        assert!(kept(Duration::from_nanos(1), Some(100_001)).is_err());
    }
}
