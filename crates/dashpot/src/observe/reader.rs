//! From the kernel's events to intervals.
//!
//! An I/O is counted in the interval in which it was completed, whenever it began, or in the next if
//! its CPU told of it only then. What was given to the driver before the watch began is not seen.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread;
use std::time::Duration;

use dashpot_probe::{Device, Options, Progress, Start, TraceError, Tracer};

use super::question::{By, Question};
use super::tally::Tally;
use super::ticks::{MOMENT, Ticks};
use super::vanished::Vanished;
use crate::report::in_flight::{InFlight, Mention};
use crate::report::interval::DeviceInterval;

/// What devices of the kernel did in an interval, and what is missing in that.
#[derive(Default)]
pub(super) struct KernelInterval {
    pub(super) devices: Vec<DeviceInterval>,
    /// When it ended.
    pub(super) end_ns: u64,
    pub(super) mention: Mention,
    pub(super) lost: u64,
    pub(super) unmatched: u64,
    /// Devices that are no longer there.
    pub(super) gone: Vec<String>,
    /// Those of them that were there when the interval began.
    pub(super) vanished: Vec<String>,
}

/// An interval, or why there is none any more.
pub(super) type Told = anyhow::Result<KernelInterval>;

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
            tracer,
            devices: devices.to_vec(),
            ticks,
            vanished: Vanished::default(),
        })
    }

    /// Tells of each interval, up to the last or an error, while somebody listens. What a signal
    /// leaves untold, because nobody takes it, is returned: first the kernel is to be left alone.
    pub(super) fn run(mut self, tell: &SyncSender<Told>) -> Option<Told> {
        while let Some(mut told) = self.next().transpose() {
            let is_error = told.is_err();
            while let Err(refused) = tell.try_send(told) {
                match refused {
                    TrySendError::Disconnected(_) => return None,
                    TrySendError::Full(told) if self.ticks.is_stopped() => return Some(told),
                    TrySendError::Full(back) => told = back,
                }
                thread::sleep(MOMENT);
            }
            if is_error {
                break;
            }
        }
        None
    }

    fn next(&mut self) -> anyhow::Result<Option<KernelInterval>> {
        if !self.ticks.is_stopped() {
            self.vanished.check(&self.devices)?;
        }
        if !self.ticks.begin() {
            return Ok(None);
        }
        let (mut lost, mut unmatched) = (0, 0);
        let end_ns = loop {
            let end_ns = self.ticks.end_ns;
            let stopped = self.ticks.is_stopped() || self.is_nothing_left();
            let progress = self.read(end_ns)?;
            lost += progress.missing();
            unmatched += progress.unmatched;
            // Nobody knows when they were lost: no interval since is to look idle.
            if progress.lost > 0 {
                self.ticks.catch_up();
            }
            if progress.until_ns >= self.ticks.end_ns || stopped {
                break end_ns.min(progress.until_ns);
            }
            self.ticks.sleep();
        };
        let devices = self.intervals(end_ns);
        self.start_ns = end_ns;
        self.vanished.look(&self.devices);
        let is_last = self.ticks.is_stopped();
        Ok(Some(KernelInterval {
            devices,
            end_ns,
            mention: self.ticks.mention(),
            lost,
            unmatched,
            gone: self.vanished.gone().to_vec(),
            vanished: self.vanished.news(&self.devices, is_last).to_vec(),
        }))
    }

    fn is_nothing_left(&self) -> bool {
        self.tracer.vanished().count() == self.devices.len()
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

    /// Of how busy a device was, events say too little: `iostat` asks the kernel's statistics.
    fn intervals(&mut self, end_ns: u64) -> Vec<DeviceInterval> {
        let devices = self.devices.iter().enumerate();
        let intervals = devices.map(|(at, device)| DeviceInterval {
            device: device.name.clone(),
            elapsed: Duration::from_nanos(end_ns.saturating_sub(self.start_ns)),
            ops: self.tally.ops(at),
            busy: Duration::ZERO,
            depth_time_ns: 0,
            in_flight: self.in_flight(device, end_ns),
        });
        let intervals = intervals.collect();
        self.tally.clear();
        intervals
    }

    /// What has begun and not ended at the interval's end. Those whose ends may have been lost are
    /// spoken of only if there are no others: most of them are likely to have ended.
    fn in_flight(&self, device: &Device, at_ns: u64) -> InFlight {
        let own = |doubtful: bool| {
            let all = self.tracer.in_flight();
            all.filter(move |io| io.doubtful == doubtful && device.has(io.device, io.sector))
        };
        let doubtful = own(false).next().is_none();
        let oldest = own(doubtful).min_by_key(|io| io.since_ns);
        InFlight {
            zios: own(doubtful).count() as u64,
            oldest_ns: oldest.map(|io| at_ns.saturating_sub(io.since_ns)),
            device: oldest.map(|_| device.name.clone()),
            wait: oldest.map(|io| wait(io.issued, doubtful).to_owned()),
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
