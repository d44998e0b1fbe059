//! Finished I/Os one by one, from a daemon or from the kernel.

mod kernel;
mod synced;
mod syncs;
mod zios;

use std::time::Duration;

use anyhow::Context;
use dashpot_observe::{FinishedIo, Layer, Predicates, Schedule, Seen, Span, Wanted};

use super::earlier::Earlier;
use super::signals::{MOMENT, Stop, now_ns};
use super::source::Source;
use super::wall::{Axis, unix_ns};

pub(super) use kernel::KernelStream;
pub(super) use synced::SyncedStream;
pub(super) use syncs::SyncStream;
pub(super) use zios::{Devices, Texts, ZioStream, in_flight_of};

/// Finished I/Os, in the order in which their source reports them.
pub(super) trait Stream {
    /// The present time of the clock by which the stream dates I/Os.
    fn now_ns(&self) -> anyhow::Result<u64>;

    /// Appends the I/Os that have finished since the last call. This call does not wait for I/Os, so the
    /// caller repeats it 20 times a second, or after [`Stream::pause_max`] while no I/O finishes.
    fn read(&mut self, ios: &mut Vec<FinishedIo>) -> anyhow::Result<Progress>;

    /// The longest pause between two readings while no I/O finishes. Buffers that may overflow allow no longer
    /// pause than usual.
    fn pause_max(&self) -> Duration {
        MOMENT
    }

    /// The I/Os in flight, as if they ended at `now_ns` of the stream's clock; `None` if they are not known.
    fn in_flight(&mut self, _now_ns: u64) -> Option<Vec<FinishedIo>> {
        Some(Vec::new())
    }

    /// How many sync calls on unknown devices were in flight at the last [`Stream::in_flight`]; `None` if the stream
    /// has no sync calls.
    fn unplaced_in_flight(&self) -> Option<u64> {
        None
    }

    /// The I/Os that began before the watch and have not ended, of each device that may have some.
    fn earlier(&self) -> Vec<Earlier> {
        Vec::new()
    }

    /// The names of the devices at a layer, if devices may appear or vanish.
    fn names(&self, _layer: Layer) -> Option<Vec<String>> {
        None
    }

    /// Adds the news of devices that have appeared or vanished since the last call.
    fn tell(&mut self, _is_last: bool, _seen: &mut Seen) {}
}

/// The progress of a reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// How many I/Os (for the kernel's disks: events) the reader missed since the last reading.
    pub(super) missed: u64,
    /// Whether more I/Os are ready.
    pub(super) more: bool,
    /// How many sync calls were on unknown devices; `None` if the stream has no sync calls.
    pub(super) unplaced: Option<u64>,
}

/// A source that returns I/Os as they finish.
pub(super) struct IoSource<S> {
    stream: S,
    stop: Stop,
    predicates: Predicates,
    /// Converts times of the stream's clock into nanoseconds since 1970.
    axis: Axis,
    /// When the watch is due to end, on this program's clock.
    ends_ns: u64,
    /// How many more I/Os the source may return.
    left: usize,
    /// The end of the watch on the stream's clock; `None` while the watch goes on. I/Os that ended later do
    /// not count.
    last_ns: Option<u64>,
    /// The next pause. It doubles while no I/O finishes, so that an idle watch wakes few threads.
    pause: Duration,
    next: Next,
}

/// The next step of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Read,
    Wait,
    End,
}

impl<S: Stream> IoSource<S> {
    /// Begins a stream. The program catches signals before the stream exists, so that no signal leaves a part
    /// of the stream behind in the kernel.
    pub(super) fn begin(
        wanted: &Wanted,
        predicates: &Predicates,
        schedule: &Schedule,
        stream: impl FnOnce() -> anyhow::Result<S>,
    ) -> anyhow::Result<IoSource<S>> {
        let stop = Stop::new().context("signals cannot be caught")?;
        let stream = stream()?;
        Ok(IoSource {
            axis: Axis::of(|| stream.now_ns())?,
            stream,
            stop,
            predicates: predicates.clone(),
            ends_ns: now_ns().saturating_add(schedule.interval.as_nanos()),
            left: usize::try_from(wanted.count.unwrap_or(u64::MAX)).unwrap_or(usize::MAX),
            last_ns: None,
            pause: MOMENT,
            next: Next::Read,
        })
    }

    /// The I/Os that have finished since the last reading.
    fn read(&mut self) -> anyhow::Result<Seen> {
        let is_last = self.stop.is_set() || now_ns() >= self.ends_ns;
        let mut ios = Vec::new();
        let mut progress = self.stream.read(&mut ios)?;
        self.pause = if ios.is_empty() {
            (self.pause * 2).min(self.stream.pause_max())
        } else {
            MOMENT
        };
        match self.last_ns {
            Some(last_ns) => {
                let read = ios.len();
                ios.retain(|io| io.ended_ns <= last_ns);
                // An I/O that ended after the watch shows that the stream has caught up. Without this check,
                // a watch would never end if I/Os kept coming faster than the source reads them.
                progress.more &= ios.len() == read;
            }
            // The user may stop this watch after a client got its reply, but before the shard has noted the
            // end of the I/O. The reading above makes the shards hand over all I/Os that have ended, so the
            // end of the watch is set only now.
            None if is_last => self.last_ns = Some(self.stream.now_ns()?),
            None => {}
        }
        ios.retain(|io| self.predicates.select(io));
        ios.truncate(self.left);
        self.left -= ios.len();
        for io in &mut ios {
            io.at_ns = io.ended_ns.saturating_add(self.axis.ahead_ns);
        }
        self.next = match (progress.more, is_last) {
            _ if self.left == 0 => Next::End,
            (true, _) => Next::Read,
            (false, true) => Next::End,
            (false, false) => Next::Wait,
        };
        let is_last = self.next == Next::End;
        let mut seen = Seen {
            span: Span {
                is_last,
                ..Span::default()
            },
            at_ns: unix_ns(),
            ios,
            lost: progress.missed,
            unplaced: progress.unplaced,
            ..Seen::default()
        };
        self.stream.tell(is_last, &mut seen);
        let now_ns = self.stream.now_ns()?;
        let earlier = self.stream.earlier().into_iter();
        seen.earlier = earlier.map(|one| one.at(now_ns)).collect();
        Ok(seen)
    }
}

impl<S: Stream> Source for IoSource<S> {
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        match self.next {
            Next::End => return Ok(None),
            Next::Wait => self.stop.pause_until(self.ends_ns, self.pause),
            Next::Read => {}
        }
        self.read().map(Some)
    }

    fn is_behind(&self) -> bool {
        self.next == Next::Read
    }

    fn end(&mut self) {
        self.stop.set();
    }

    fn in_flight(&mut self) -> Option<Vec<FinishedIo>> {
        let now_ns = self.stream.now_ns().ok()?;
        let mut ios = self.stream.in_flight(now_ns)?;
        // The caller sets the end of these I/Os to the present time of this host's clock, so their other times
        // must be times of this clock, too.
        for io in &mut ios {
            io.begun_ns = self.axis.here_ns(io.begun_ns);
            io.ended_ns = self.axis.here_ns(io.ended_ns);
        }
        Some(ios)
    }

    fn earlier(&self) -> Option<u64> {
        let earlier = self.stream.earlier();
        earlier.iter().map(|earlier| earlier.number).sum()
    }

    fn unplaced_in_flight(&self) -> Option<u64> {
        self.stream.unplaced_in_flight()
    }

    fn put_on(&mut self, ahead_ns: u64) -> u64 {
        self.axis.put_on(ahead_ns)
    }
}

#[cfg(test)]
mod tests {
    use dashpot_engine::Duration;
    use dashpot_observe::{IoWaits, Kind};

    use super::*;

    /// A stream whose I/Os end faster than the source reads them, so that more are always ready.
    struct Endless(u64);

    impl Stream for Endless {
        fn now_ns(&self) -> anyhow::Result<u64> {
            Ok(self.0 + 10)
        }

        fn read(&mut self, ios: &mut Vec<FinishedIo>) -> anyhow::Result<Progress> {
            ios.extend((0..4).map(|at| ended(self.0 + at)));
            self.0 += 4;
            Ok(Progress {
                more: true,
                ..Progress::default()
            })
        }
    }

    fn ended(ns: u64) -> FinishedIo {
        FinishedIo {
            ended_ns: ns,
            waits: IoWaits::Kernel {
                queue_ns: None,
                device_ns: ns,
            },
            ..FinishedIo::bare(Layer::Disk, "d".into(), Kind::of_word("read"))
        }
    }

    #[test]
    fn a_watch_ends_although_more_ios_are_always_ready() {
        let wanted = Wanted::all(Layer::Disk);
        let schedule = Schedule::once(Duration::ZERO);
        let mut source = IoSource::begin(&wanted, &Predicates::default(), &schedule, || {
            Ok(Endless(0))
        })
        .expect("a source");
        let mut ends = Vec::new();
        while let Some(seen) = source.next().expect("an interval") {
            ends.extend(seen.ios.iter().map(|io| io.ended_ns));
        }
        // The watch ended at 14, after the first reading. I/Os that ended later do not count.
        assert_eq!(ends, (0..=14).collect::<Vec<u64>>());
    }

    /// A stream of which each reading has as many I/Os as the list says.
    struct Listed(Vec<u64>);

    impl Stream for Listed {
        fn now_ns(&self) -> anyhow::Result<u64> {
            Ok(0)
        }

        fn read(&mut self, ios: &mut Vec<FinishedIo>) -> anyhow::Result<Progress> {
            ios.extend((0..self.0.remove(0)).map(ended));
            Ok(Progress::default())
        }

        fn pause_max(&self) -> std::time::Duration {
            MOMENT * 3
        }
    }

    #[test]
    fn the_pauses_grow_while_no_io_finishes() {
        let wanted = Wanted::all(Layer::Disk);
        let schedule = Schedule::once(Duration::MAX);
        let mut source = IoSource::begin(&wanted, &Predicates::default(), &schedule, || {
            Ok(Listed(vec![1, 0, 0, 0, 2, 0]))
        })
        .expect("a source");
        let mut pauses = Vec::new();
        for _ in 0..6 {
            source.read().expect("a reading");
            pauses.push(source.pause.as_millis() / MOMENT.as_millis());
        }
        assert_eq!(pauses, [1, 2, 3, 3, 1, 2]);
    }

    #[test]
    fn a_watch_that_its_caller_ends_does_not_wait_for_a_signal() {
        let wanted = Wanted::all(Layer::Disk);
        let schedule = Schedule::once(Duration::MAX);
        let mut source = IoSource::begin(&wanted, &Predicates::default(), &schedule, || {
            Ok(Endless(0))
        })
        .expect("a source");
        source.next().expect("an interval");
        source.end();
        let seen = std::iter::from_fn(|| source.next().expect("an interval"));
        let ends: Vec<u64> = seen
            .take(1_000)
            .flat_map(|seen| seen.ios)
            .map(|io| io.ended_ns)
            .collect();
        assert_eq!(ends, (4..=18).collect::<Vec<u64>>());
    }
}
