//! Counts a stream's I/Os one by one, in intervals, for questions that no counter of a daemon answers.

use std::time::Duration;

use anyhow::Context;
use dashpot_observe::{
    DeviceInterval, FinishedIo, InFlight, Intervals, Layer, Question, Schedule, Seen, Span, Tally,
};

use crate::earlier::Earlier;
use crate::ios::Stream;
use crate::signals::{Stop, now_ns};
use crate::source::Source;
use crate::wall::unix_ns;

/// Counts the I/Os of a stream that a question selects.
pub(crate) struct CountedSource<S> {
    stream: S,
    stop: Stop,
    question: Question,
    layers: Vec<CountedLayer>,
    /// The intervals, on the stream's clock.
    intervals: Intervals,
    /// The offset from the stream's clock to nanoseconds since 1970.
    ahead_ns: u64,
    /// I/Os that ended after the present interval.
    later: Vec<FinishedIo>,
    lost: u64,
    unplaced: Option<u64>,
}

/// The devices of a layer, and the counts of their I/Os in the current interval.
struct CountedLayer {
    layer: Layer,
    names: Vec<String>,
    tally: Tally,
}

impl<S: Stream> CountedSource<S> {
    /// Begins the first interval now, with the devices of each layer. The program catches signals before the
    /// stream exists, so that no signal leaves a part of the stream behind in the kernel.
    pub(crate) fn begin(
        question: &Question,
        layers: Vec<(Layer, Vec<String>)>,
        schedule: &Schedule,
        stream: impl FnOnce() -> anyhow::Result<S>,
    ) -> anyhow::Result<CountedSource<S>> {
        let stop = Stop::new().context("signals cannot be caught")?;
        let stream = stream()?;
        let begun_ns = stream.now_ns()?;
        let layers = layers.into_iter().map(|(layer, names)| CountedLayer {
            layer,
            names,
            tally: Tally::of(question),
        });
        Ok(CountedSource {
            stream,
            stop,
            layers: layers.collect(),
            intervals: schedule.begin(begun_ns),
            ahead_ns: unix_ns().saturating_sub(begun_ns),
            question: question.clone(),
            later: Vec::new(),
            lost: 0,
            unplaced: None,
        })
    }

    /// Takes the I/Os that the stream has up to `until_ns`, and counts those that ended before. If the stream has
    /// no more, those before `end_ns` count, too.
    fn read(&mut self, end_ns: u64, until_ns: u64) -> anyhow::Result<()> {
        let was_stopped = self.stop.is_set();
        let beyond_ns = until_ns.saturating_add(DISORDER_NS);
        let mut ios = std::mem::take(&mut self.later);
        loop {
            let progress = self.stream.read(&mut ios)?;
            self.lost += progress.missed;
            if let Some(unplaced) = progress.unplaced {
                *self.unplaced.get_or_insert(0) += unplaced;
            }
            // Without this check, an interval would never end, and `later` would grow without a bound, if I/Os
            // kept coming faster than the source reads them.
            let is_beyond = ios.iter().all(|io| io.ended_ns >= beyond_ns);
            ios.drain(..).for_each(|io| self.take(io, until_ns));
            if !progress.more {
                let rest = std::mem::take(&mut self.later).into_iter();
                rest.for_each(|io| self.take(io, end_ns));
                return Ok(());
            }
            if is_beyond || self.stop.is_set() && !was_stopped {
                return Ok(());
            }
        }
    }

    /// Counts an I/O if it ended before `end_ns`.
    fn take(&mut self, io: FinishedIo, end_ns: u64) {
        if io.ended_ns >= end_ns {
            return self.later.push(io);
        }
        let own = self.layers.iter_mut().filter(|one| one.layer == io.layer);
        own.for_each(|one| one.tally.add(&io));
    }

    fn ended(&mut self, span: Span) -> Seen {
        let in_flight: Vec<FinishedIo> = self
            .stream
            .in_flight(span.end_ns)
            // If a daemon does not answer, the next reading fails.
            .unwrap_or_default()
            .into_iter()
            .filter(|io| self.question.predicates.select(io))
            .collect();
        let mut seen = Seen {
            span,
            at_ns: span.end_ns.saturating_add(self.ahead_ns),
            lost: std::mem::take(&mut self.lost),
            unplaced: self.unplaced.as_mut().map(std::mem::take),
            ..Seen::default()
        };
        let earlier = self.stream.earlier();
        let has_conditions = !self.question.predicates.is_empty();
        for one in &mut self.layers {
            if let Some(names) = self.stream.names(one.layer) {
                one.names = names;
            }
            let mut devices = one.ended(&span, &in_flight);
            if one.layer == Layer::Disk {
                add(&earlier, &mut devices, has_conditions, span.end_ns);
            }
            seen.add(one.layer, devices);
        }
        self.stream.tell(span.is_last, &mut seen);
        self.question.predicates.name_devices(&mut seen.stacked);
        seen
    }
}

impl CountedLayer {
    fn ended(&mut self, span: &Span, in_flight: &[FinishedIo]) -> Vec<DeviceInterval> {
        let own = in_flight.iter().filter(|io| io.layer == self.layer);
        let own: Vec<FinishedIo> = own.cloned().collect();
        let devices = self.names.iter().map(|name| DeviceInterval {
            device: name.clone(),
            elapsed: Duration::from_nanos(span.elapsed_ns()),
            ops: self.tally.ops(name),
            busy: Duration::ZERO,
            depth_time_ns: 0,
            depths: None,
            in_flight: oldest(&own, name),
        });
        let devices = devices.collect();
        self.tally.clear();
        devices
    }
}

impl<S: Stream> Source for CountedSource<S> {
    /// An interval ends when it is due. An I/O that ended after that time, or that the stream reports too
    /// late, counts in the next interval.
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        while let Some(due_ns) = self.intervals.due_ns() {
            let is_stopped = self.stop.is_set();
            let now_ns_there = self.stream.now_ns()?;
            let until_ns = if is_stopped {
                now_ns_there.min(due_ns)
            } else {
                due_ns
            };
            self.read(due_ns, until_ns)?;
            let is_last = is_stopped && now_ns_there < due_ns;
            let at_ns = now_ns_there.min(due_ns);
            match self.intervals.end_or_close(at_ns, is_last) {
                Some(span) => return Ok(Some(self.ended(span))),
                None if is_last => return Ok(None),
                None => self
                    .stop
                    .sleep_until(now_ns().saturating_add(due_ns - at_ns)),
            }
        }
        Ok(None)
    }
}

/// Adds the I/Os that began before the watch to those in flight.
fn add(earlier: &[Earlier], devices: &mut [DeviceInterval], has_conditions: bool, at_ns: u64) {
    for device in devices {
        let own = earlier
            .iter()
            .find(|earlier| *earlier.device == *device.device);
        if let Some(earlier) = own {
            let in_flight = std::mem::take(&mut device.in_flight);
            device.in_flight = earlier.add_to(in_flight, has_conditions, at_ns);
        }
    }
}

/// The number of I/Os in flight on a device, and the age of the oldest: the time that this I/O would have
/// taken if it had ended now.
pub(crate) fn oldest(ios: &[FinishedIo], device: &str) -> InFlight {
    let own = || ios.iter().filter(|io| &*io.device == device);
    let oldest_ns = own().map(FinishedIo::total_ns).max();
    InFlight {
        zios: Some(own().count() as u64),
        oldest_ns,
        device: oldest_ns.map(|_| device.to_owned()),
        ..InFlight::default()
    }
}

/// How much later than others, at most, a daemon's shard reports its I/Os.
const DISORDER_NS: u64 = 200_000_000;

#[cfg(test)]
mod tests {
    use anyhow::ensure;
    use dashpot_engine::Duration;
    use dashpot_observe::Kind;

    use super::*;
    use crate::ios::Progress;

    /// A stream whose I/Os end, one each 10 ms, faster than the source reads them, so that more are always ready.
    struct Flood {
        next: u64,
        now: u64,
    }

    impl Stream for Flood {
        fn now_ns(&self) -> anyhow::Result<u64> {
            Ok(self.now * STEP_NS)
        }

        fn read(&mut self, ios: &mut Vec<FinishedIo>) -> anyhow::Result<Progress> {
            ensure!(self.next < 1_000, "the source does not stop reading");
            ios.extend((self.next..self.next + 4).map(|at| FinishedIo {
                ended_ns: at * STEP_NS,
                ..FinishedIo::bare(Layer::Disk, "d".into(), Kind::of_word("read"))
            }));
            self.next += 4;
            Ok(Progress {
                more: true,
                ..Progress::default()
            })
        }
    }

    const STEP_NS: u64 = 10_000_000;

    fn source() -> CountedSource<Flood> {
        let question = Question::latencies(&[Layer::Disk]);
        let schedule = Schedule::every(Duration::from_nanos(100 * STEP_NS), Some(2));
        let layers = vec![(Layer::Disk, vec!["d".to_owned()])];
        CountedSource::begin(&question, layers, &schedule, || {
            Ok(Flood { next: 0, now: 0 })
        })
        .expect("a source")
    }

    fn counted(seen: &Seen) -> u64 {
        let ops = seen.at(Layer::Disk)[0].ops.iter();
        ops.map(|op| op.counts.completed).sum()
    }

    #[test]
    fn an_interval_ends_although_more_ios_are_always_ready() {
        let mut source = source();
        source.stream.now = 250;
        let mut counts = Vec::new();
        while let Some(seen) = source.next().expect("an interval") {
            counts.push(counted(&seen));
            assert!(source.later.len() < 40, "{}", source.later.len());
        }
        assert_eq!(counts, [100, 100]);
    }

    #[test]
    fn a_signal_ends_an_interval_although_more_ios_are_always_ready() {
        let mut source = source();
        // The watch is stopped after 100 ms.
        source.stream.now = 10;
        source.stop.set();
        let seen = source.next().expect("an interval").expect("an interval");
        assert!(seen.span.is_last);
        assert_eq!((seen.span.elapsed_ns(), counted(&seen)), (10 * STEP_NS, 10));
    }
}
