//! Turns the kernel's events into intervals.
//!
//! An I/O counts in the interval in which it was completed, even if it began before; if its CPU reported it
//! too late, it counts in the next interval. The reader does not see I/O that the driver received before the
//! watch began.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use dashpot_observe::{
    DeviceInterval, Dimension, InFlight, Intervals, KEYS_MAX, Predicates, Question, Schedule, Seen,
    Span, Tally,
};
use dashpot_probe::{Device, Options, Progress, Start, TraceError, Tracer};

use crate::earlier::earlier;
use crate::kernel_ios::KernelIos;
use crate::named::Named;
use crate::signals::{Stop, now_ns};
use crate::vanished::{check, tell};

/// The weight of an interval: about how much memory the interval takes while it waits to be printed.
pub(crate) fn weight(seen: &Seen) -> usize {
    seen.disks.iter().map(|device| device.ops.len() + 1).sum()
}

/// An interval, or the error that ends the watch.
pub(crate) type Watched = anyhow::Result<Seen>;

/// The channel to the thread that prints intervals.
pub(crate) struct Tell {
    pub(crate) way: Sender<Watched>,
    /// The weight of the intervals in the channel. When the printing thread takes an interval, it subtracts
    /// that interval's weight.
    pub(crate) waiting: Arc<AtomicUsize>,
}

impl Tell {
    fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < ROOM
    }

    /// Sends an interval or an error. Returns whether the printing thread still listens.
    fn tell(&self, told: Watched) -> bool {
        let weight = told.as_ref().map_or(0, weight);
        self.waiting.fetch_add(weight, Ordering::Relaxed);
        self.way.send(told).is_ok()
    }
}

/// Reads the kernel's events, interval by interval.
pub(crate) struct Reader {
    tracer: Tracer,
    stop: Stop,
    intervals: Intervals,
    /// The beginning of the watch.
    begun_ns: u64,
    /// The moment up to which all events have been read.
    read_ns: u64,
    ios: KernelIos,
    tally: Tally,
    /// The conditions on the I/Os that count. I/Os in flight must meet them, too.
    predicates: Predicates,
    /// How many events the present interval misses so far.
    lost: u64,
    unmatched: u64,
}

impl Reader {
    pub(crate) fn new(
        devices: &[Device],
        named: Named,
        question: &Question,
        stop: Stop,
        schedule: &Schedule,
    ) -> anyhow::Result<Reader> {
        let tracer = Tracer::start(&Options {
            devices: devices.to_vec(),
            later: named == Named::No,
            start: if needs_queueing(question) {
                Start::Queue
            } else {
                Start::Issue
            },
            submitters: question.has_who(),
            processes: question.dimensions().any(Dimension::is_process),
            cgroups: question.dimensions().any(Dimension::is_cgroup),
        })?;
        let begun_ns = now_ns();
        Ok(Reader {
            begun_ns,
            read_ns: begun_ns,
            intervals: schedule.begin(begun_ns),
            ios: KernelIos::new(),
            tally: Tally::of(question),
            predicates: question.predicates.clone(),
            tracer,
            stop,
            lost: 0,
            unmatched: 0,
        })
    }

    /// Sends each interval while the printing thread listens. Returns the last interval, or an error.
    /// The caller sends this last result only after cleaning up in the kernel, because sending may
    /// block for long.
    pub(crate) fn run(mut self, tell: &Tell) -> Option<Watched> {
        while let Some(told) = self.next(tell).transpose() {
            if told.as_ref().map_or(true, |seen| seen.span.is_last) {
                return Some(told);
            }
            if !tell.tell(told) {
                break;
            }
        }
        None
    }

    /// Reads until the present interval has ended.
    fn next(&mut self, tell: &Tell) -> anyhow::Result<Option<Seen>> {
        if !self.stop.is_set() {
            check(self.tracer.roster())?;
        }
        while let Some(due_ns) = self.intervals.due_ns() {
            let is_stopped = self.stop.is_set();
            if is_stopped || self.is_nothing_left() {
                self.read(u64::MAX)?;
                let span = self.intervals.close(self.read_ns).unwrap_or_default();
                // Even if no device is left, this interval is not the last: the next call returns the error.
                return Ok(Some(self.ended(Span {
                    is_last: is_stopped,
                    ..span
                })));
            }
            if self.is_due(due_ns, tell)?
                && let Some(span) = self.intervals.end(self.read_ns)
            {
                return Ok(Some(self.ended(span)));
            }
            self.stop.sleep_until(due_ns);
        }
        Ok(None)
    }

    /// Reads more events of the present interval. Returns whether the interval should end. Events that are
    /// read late still count in the interval of their time. If too many intervals wait to be printed, the
    /// present interval goes on and takes later events, too: if they stayed in the kernel's buffers, the
    /// kernel would overwrite them.
    fn is_due(&mut self, due_ns: u64, tell: &Tell) -> Result<bool, TraceError> {
        let has_room = tell.has_room() || self.intervals.is_last();
        let is_late = !has_room && now_ns() >= due_ns;
        let progress = self.read(if is_late { u64::MAX } else { due_ns })?;
        if self.read_ns < due_ns || is_late {
            return Ok(false);
        }
        // The lost events may be from any time since the last reading, even after `due_ns`. So this interval,
        // which reports the loss, goes on to the present. Otherwise, the next interval could look idle for
        // lack of events.
        if progress.lost > 0 {
            self.read(u64::MAX)?;
        }
        Ok(true)
    }

    /// The interval that has ended.
    fn ended(&mut self, span: Span) -> Seen {
        let mut seen = Seen {
            disks: self.intervals(&span),
            span,
            lost: std::mem::take(&mut self.lost),
            unmatched: Some(std::mem::take(&mut self.unmatched)),
            ..Seen::default()
        };
        tell(self.tracer.roster_mut(), self.stop.is_set(), &mut seen);
        self.predicates.name_devices(&mut seen.stacked);
        seen
    }

    fn is_nothing_left(&self) -> bool {
        self.tracer.roster().is_over()
    }

    /// Counts I/O that was completed before the interval's end. I/O that a CPU reports later counts
    /// in the next interval.
    fn read(&mut self, end_ns: u64) -> Result<Progress, TraceError> {
        let (tally, ios, begun_ns) = (&mut self.tally, &mut self.ios, self.begun_ns);
        let progress = self.tracer.read(end_ns, |device, io| {
            if io.completed_ns >= begun_ns {
                tally.add(&ios.finished(device, io));
            }
        })?;
        self.read_ns = self.read_ns.max(progress.until_ns);
        self.lost += progress.missing();
        self.unmatched += progress.unmatched;
        Ok(progress)
    }

    /// The I/O of each device. Events cannot tell how busy a device was: `iostat` reads the
    /// kernel's counters for that.
    fn intervals(&mut self, span: &Span) -> Vec<DeviceInterval> {
        let in_flight = self.in_flight_of_each(span.end_ns);
        let intervals = in_flight
            .into_iter()
            .map(|(device, in_flight)| DeviceInterval {
                device: device.to_string(),
                elapsed: Duration::from_nanos(span.elapsed_ns()),
                ops: self.tally.ops(&device),
                busy: Duration::ZERO,
                depth_time_ns: 0,
                depths: None,
                in_flight,
            });
        let intervals = intervals.collect();
        self.tally.clear();
        intervals
    }

    /// The I/Os in flight of each watched device.
    fn in_flight_of_each(&mut self, at_ns: u64) -> Vec<(Arc<str>, InFlight)> {
        let has_conditions = !self.predicates.is_empty();
        let earlier = earlier(&self.tracer);
        let watched = self.tracer.roster().watched();
        let devices: Vec<Arc<str>> = watched.map(|one| Arc::clone(&one.name)).collect();
        let each = devices.into_iter().map(|device| {
            let own = self.in_flight(&device, at_ns);
            let earlier = earlier.iter().find(|earlier| earlier.device == device);
            let all = match earlier {
                Some(earlier) => earlier.add_to(own, has_conditions, at_ns),
                None => own,
            };
            (device, all)
        });
        each.collect()
    }

    /// The I/Os in flight at the interval's end that began during the watch. Doubtful I/Os, whose end may be among
    /// the lost events, count only if the device has no other I/Os in flight, because most doubtful I/Os have
    /// probably ended.
    fn in_flight(&mut self, device: &Arc<str>, at_ns: u64) -> InFlight {
        let (ios, predicates) = (&mut self.ios, &self.predicates);
        let own = self.tracer.in_flight().filter(|(own, _)| *own == device);
        let own = own.filter(|(_, io)| predicates.select(&ios.in_flight(device, io, at_ns)));
        let own: Vec<_> = own.map(|(_, io)| io).collect();
        let doubtful = own.iter().all(|io| io.doubtful);
        let told = || own.iter().filter(|io| io.doubtful == doubtful);
        let oldest = told().min_by_key(|io| io.since_ns);
        InFlight {
            zios: Some(told().count() as u64),
            oldest_ns: oldest.map(|io| at_ns.saturating_sub(io.since_ns)),
            device: oldest.map(|_| device.to_string()),
            wait: oldest.map(|io| wait(io.issued_ns.is_some(), doubtful).to_owned()),
            wait_ns: None,
            rule: None,
        }
    }
}

/// Whether a question is about the time before the driver received an I/O.
fn needs_queueing(question: &Question) -> bool {
    let asks = |dimension| matches!(dimension, Dimension::Total | Dimension::Queue);
    question.queued || question.dimensions().any(asks)
}

/// The word for the place at which an I/O waits.
fn wait(issued: bool, doubtful: bool) -> &'static str {
    match (issued, doubtful) {
        (true, false) => "issued",
        (false, false) => "queued",
        (true, true) => "issued, unless its end was lost",
        (false, true) => "queued, unless its end was lost",
    }
}

/// The largest sum of weights of the intervals that wait to be printed. It has room for many intervals with
/// few operations, or for one whose breakdown has the maximum number of values.
const ROOM: usize = KEYS_MAX;
