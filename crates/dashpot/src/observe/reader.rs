//! From the kernel's events to intervals.
//!
//! An I/O is counted in the interval in which it was completed, whenever it began, or in the next if
//! its CPU told of it only then. What was given to the driver before the watch began is not seen.

use std::collections::HashMap;
use std::time::Duration;

use dashpot_probe::{Device, Number, Options, Progress, Start, TraceError, Tracer};

use super::diskstats::{Counters, counters};
use super::question::{By, Question};
use super::tally::Tally;
use super::ticks::Ticks;
use super::vanished::Vanished;
use crate::report::in_flight::{InFlight, Mention};
use crate::report::interval::DeviceInterval;

/// What devices of the kernel did in an interval, and what is missing in that.
#[derive(Default)]
pub(super) struct KernelInterval {
    pub(super) devices: Vec<DeviceInterval>,
    pub(super) mention: Mention,
    pub(super) lost: u64,
    pub(super) unmatched: u64,
    /// Devices that are no longer there.
    pub(super) gone: Vec<String>,
    /// Those of them that were there when the interval began.
    pub(super) vanished: Vec<String>,
}

/// Reads the kernel's events, interval by interval.
pub(super) struct Reader {
    tracer: Tracer,
    devices: Vec<Device>,
    ticks: Ticks,
    /// The beginning of the watch.
    begun_ns: u64,
    /// The beginning of the present interval.
    start_ns: u64,
    tally: Tally,
    /// At the end of the interval that ended last.
    counters: HashMap<Number, Counters>,
    vanished: Vanished,
}

impl Reader {
    pub(super) fn new(
        devices: &[Device],
        question: &Question,
        mut ticks: Ticks,
    ) -> anyhow::Result<Reader> {
        let tracer = Tracer::start(&Options {
            devices: devices.to_vec(),
            start: match question.queued {
                true => Start::Queue,
                false => Start::Issue,
            },
            submitters: matches!(question.by, Some(By::Process | By::Cgroup)),
        })?;
        ticks.restart();
        Ok(Reader {
            begun_ns: ticks.end_ns,
            start_ns: ticks.end_ns,
            tally: Tally::new(devices, *question),
            counters: counters()?,
            tracer,
            devices: devices.to_vec(),
            ticks,
            vanished: Vanished::default(),
        })
    }

    /// Tells of each interval, up to the last or an error, while somebody listens.
    pub(super) fn run(mut self, tell: impl Fn(anyhow::Result<KernelInterval>) -> bool) {
        while let Some(interval) = self.next().transpose() {
            let is_error = interval.is_err();
            if !tell(interval) || is_error {
                break;
            }
        }
    }

    fn next(&mut self) -> anyhow::Result<Option<KernelInterval>> {
        if !self.ticks.begin() {
            return Ok(None);
        }
        self.vanished.check(&self.devices)?;
        let (mut lost, mut unmatched) = (0, 0);
        let end_ns = loop {
            let end_ns = self.ticks.end_ns;
            let stopped = self.ticks.is_stopped();
            let progress = self.read(end_ns)?;
            lost += progress.missing();
            unmatched += progress.unmatched;
            if progress.until_ns >= end_ns || stopped {
                break end_ns.min(progress.until_ns);
            }
            self.ticks.sleep();
        };
        let devices = self.intervals(end_ns)?;
        self.start_ns = end_ns;
        self.vanished.look(&self.devices);
        let is_over = self.ticks.is_over();
        Ok(Some(KernelInterval {
            devices,
            mention: self.ticks.mention(),
            lost,
            unmatched,
            gone: self.vanished.gone().to_vec(),
            vanished: self.vanished.news(&self.devices, is_over).to_vec(),
        }))
    }

    /// Counts what was completed before the interval's end. What a CPU tells only after that is
    /// counted in the next one.
    fn read(&mut self, end_ns: u64) -> Result<Progress, TraceError> {
        let (tally, begun_ns) = (&mut self.tally, self.begun_ns);
        self.tracer.read(end_ns, |io| {
            if io.completed_ns >= begun_ns {
                tally.add(io);
            }
        })
    }

    fn intervals(&mut self, end_ns: u64) -> anyhow::Result<Vec<DeviceInterval>> {
        let counters = counters()?;
        let devices = self.devices.iter().enumerate();
        let intervals = devices.map(|(at, device)| {
            let of = |all: &HashMap<Number, Counters>| {
                all.get(&device.number).copied().unwrap_or_default()
            };
            let since = of(&counters).since(&of(&self.counters));
            DeviceInterval {
                device: device.name.clone(),
                elapsed: Duration::from_nanos(end_ns.saturating_sub(self.start_ns)),
                ops: self.tally.ops(at),
                busy: Duration::from_millis(since.busy_ms.into()),
                depth_time_ns: u128::from(since.depth_time_ms) * 1_000_000,
                in_flight: self.in_flight(device, end_ns),
            }
        });
        let intervals = intervals.collect();
        self.counters = counters;
        self.tally.clear();
        Ok(intervals)
    }

    /// What has begun and not ended at the interval's end. The oldest of those of which that is
    /// certain is named before one whose end may have been lost.
    fn in_flight(&self, device: &Device, at_ns: u64) -> InFlight {
        let present = self.tracer.in_flight();
        let present = present.filter(|io| device.has(io.device, io.sector));
        let (mut number, mut oldest) = (0, None);
        for io in present {
            number += 1;
            let one = (io.doubtful, io.since_ns, io.issued);
            oldest = oldest.into_iter().chain([one]).min();
        }
        InFlight {
            zios: number,
            oldest_ns: oldest.map(|(_, since_ns, _)| at_ns.saturating_sub(since_ns)),
            device: oldest.map(|_| device.name.clone()),
            wait: oldest.map(|(doubtful, _, issued)| wait(issued, doubtful).to_owned()),
            rule: None,
        }
    }
}

/// Where an I/O waits, in a word.
fn wait(issued: bool, doubtful: bool) -> &'static str {
    match (issued, doubtful) {
        (true, false) => "issued",
        (false, false) => "queued",
        (true, true) => "issued, unless its end was lost",
        (false, true) => "queued, unless its end was lost",
    }
}
