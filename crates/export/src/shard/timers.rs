//! The time of a shard: its clock, its waits for deadlines, and the times in which the host kept the
//! shard from running.

use std::io;
use std::os::fd::AsFd;

use dashpot_engine::{Duration, Instant};
use rustix::event::epoll;

use super::load_meter::LoadMeter;
use super::sleeper::Sleeper;
use super::stops::{StopDetector, next_beat};
use crate::clock;
use crate::prober::Prompt;

pub(super) struct Timers {
    now: Instant,
    /// When a client last sent a request or took a reply.
    active: Instant,
    sleeper: Sleeper,
    detector: StopDetector,
    meter: LoadMeter,
    prompt: Prompt,
}

/// A stop: a time in which the host kept the shard from running.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) from: Instant,
    pub(super) until: Instant,
}

impl Timers {
    pub(super) fn new(spins: bool, prompt: Prompt) -> Timers {
        Timers {
            now: clock::now(),
            active: Instant::ZERO,
            sleeper: Sleeper::new(spins),
            detector: StopDetector::default(),
            meter: LoadMeter::default(),
            prompt,
        }
    }

    /// The last reading of the clock.
    #[inline]
    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Notes that a client has sent a request or taken a reply.
    #[inline]
    pub(super) fn note_activity(&mut self) {
        self.active = self.now;
    }

    /// When the shard must wake up even if nothing is due, so that it notices stops.
    pub(super) fn beat(&self) -> Instant {
        next_beat(self.now, self.active)
    }

    /// Waits as [`Sleeper::wait`] does, and begins a pass. Returns the stop if the host has kept the shard
    /// from running during the wait.
    pub(super) fn wait(
        &mut self,
        epoll: impl AsFd,
        events: &mut Vec<epoll::Event>,
        deadline: Option<Instant>,
        beat: Option<Instant>,
        prepare: impl FnOnce(Instant),
    ) -> io::Result<Option<Stop>> {
        let meant = self
            .sleeper
            .wait(epoll.as_fd(), events, self.now, deadline, beat, prepare)?;
        let woke = clock::now();
        let late = meant.map_or(Duration::ZERO, |meant| woke.since(meant));
        self.meter.begin(woke, late);
        self.detector.begin();
        self.now = woke;
        let stopped = self.detector.overslept(meant, woke);
        Ok(stopped.map(|stopped| self.stopped(stopped)))
    }

    /// Notes that the shard is about to make a call. If the call `may_wait`, its wait is no stop.
    #[inline]
    pub(super) fn note_call(&mut self, may_wait: bool) {
        if may_wait {
            self.detector.note_call();
        }
    }

    /// Reads the clock during a pass. Returns the stop if the host has kept the shard from running since the
    /// last reading.
    #[inline]
    pub(super) fn read_clock(&mut self) -> Option<Stop> {
        let now = clock::now();
        let passed = now.since(self.now);
        self.now = now;
        let stopped = self.detector.stopped(passed)?;
        Some(self.stopped(stopped))
    }

    /// Notes that the host has kept the shard from running for this long until now.
    #[cold]
    fn stopped(&mut self, length: Duration) -> Stop {
        let until = self.now;
        let from = Instant::from_nanos(until.as_nanos() - length.as_nanos());
        self.meter.stopped(from, until);
        Stop { from, until }
    }

    /// Ends a pass that began at `woke`. The caller has just read the clock.
    pub(super) fn end_pass(&mut self, woke: Instant) {
        if self.active >= woke {
            self.prompt.note_activity(self.active);
        }
        self.meter.end(self.now);
        if let Some(slept) = self.detector.read(self.now) {
            self.meter.suspended(slept, self.now);
        }
    }

    pub(super) fn meter(&self) -> &LoadMeter {
        &self.meter
    }

    pub(super) fn meter_mut(&mut self) -> &mut LoadMeter {
        &mut self.meter
    }
}
