//! The kernel's disks, watched through its events.
//!
//! An I/O is counted in the interval in which it was completed, whenever it began, or in the next if
//! its CPU told of it only then. What was given to the driver before the watch began is not seen.

use std::collections::HashMap;
use std::time::Duration;

use dashpot_probe::{Device, Io, Number, Options, Progress, Start, TraceError, Tracer};

use super::diskstats::{Counters, counters};
use super::interval::DeviceInterval;
use super::question::{By, Question};
use super::reader;
use super::tally::Tally;
use super::ticks::Ticks;
use super::vanished::Vanished;
use crate::report::in_flight::{InFlight, Mention};

/// I/Os on their way to the intervals in which they were completed.
struct Sorter {
    /// The beginning of the watch.
    begun_ns: u64,
    /// Those of the present interval.
    tally: Tally,
    /// Those that were completed after it.
    ahead: Vec<Io>,
}

/// Devices of the kernel being watched.
pub(crate) struct KernelWatch {
    tracer: Tracer,
    devices: Vec<Device>,
    ticks: Ticks,
    /// The beginning of the present interval.
    start_ns: u64,
    sorter: Sorter,
    /// At the end of the interval that ended last.
    counters: HashMap<Number, Counters>,
    lost: u64,
    unmatched: u64,
    vanished: Vanished,
}

impl KernelWatch {
    pub(super) fn new(
        devices: &[Device],
        question: &Question,
        interval: dashpot_engine::Duration,
        count: Option<u64>,
    ) -> anyhow::Result<KernelWatch> {
        // Before there is something in the kernel that signals must not leave there.
        let mut ticks = Ticks::new(interval.as_nanos(), count)?;
        let tracer = reader::start(&Options {
            devices: devices.to_vec(),
            start: match question.queued {
                true => Start::Queue,
                false => Start::Issue,
            },
            submitters: matches!(question.by, Some(By::Process | By::Cgroup)),
        })?;
        ticks.restart();
        Ok(KernelWatch {
            start_ns: ticks.end_ns,
            sorter: Sorter::new(ticks.end_ns, Tally::new(devices, *question)),
            counters: counters()?,
            tracer,
            devices: devices.to_vec(),
            ticks,
            lost: 0,
            unmatched: 0,
            vanished: Vanished::default(),
        })
    }

    pub(super) fn mention(&self) -> Mention {
        self.ticks.mention()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn unmatched(&self) -> u64 {
        self.unmatched
    }

    pub(super) fn gone(&self) -> &[String] {
        self.vanished.gone()
    }

    pub(super) fn vanished(&self) -> &[String] {
        self.vanished.news(&self.devices, self.ticks.is_over())
    }

    pub(super) fn next(&mut self) -> anyhow::Result<Option<Vec<DeviceInterval>>> {
        if !self.ticks.begin() {
            return Ok(None);
        }
        self.vanished.check(&self.devices)?;
        (self.lost, self.unmatched) = (0, 0);
        self.sorter.count_ahead(self.ticks.end_ns);
        let end_ns = loop {
            let end_ns = self.ticks.end_ns;
            let stopped = self.ticks.is_stopped();
            let progress = self.read(end_ns)?;
            self.lost += progress.missing();
            self.unmatched += progress.unmatched;
            if progress.until_ns >= end_ns || stopped {
                break end_ns.min(progress.until_ns);
            }
            self.ticks.sleep();
        };
        let intervals = self.intervals(end_ns)?;
        self.start_ns = end_ns;
        self.vanished.look(&self.devices);
        Ok(Some(intervals))
    }

    fn read(&mut self, end_ns: u64) -> Result<Progress, TraceError> {
        let sorter = &mut self.sorter;
        self.tracer.read(|io| sorter.take(io, end_ns))
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
                ops: self.sorter.tally.ops(at),
                busy: Duration::from_millis(since.busy_ms.into()),
                depth_time_ns: u128::from(since.depth_time_ms) * 1_000_000,
                in_flight: self.in_flight(device, end_ns),
            }
        });
        let intervals = intervals.collect();
        self.counters = counters;
        self.sorter.tally.clear();
        Ok(intervals)
    }

    /// What had begun at a moment and not ended, even if it has by now. The oldest of those of which
    /// that is certain is named before one whose end may have been lost.
    fn in_flight(&self, device: &Device, at_ns: u64) -> InFlight {
        let present = self.tracer.in_flight();
        let present = present
            .filter(|io| device.has(io.device, io.sector))
            .map(|io| (io.doubtful, io.since_ns, wait(io.issued, io.doubtful)));
        let ended = self.sorter.ahead.iter();
        let ended = ended
            .filter(|io| device.has(io.device, io.sector))
            .map(|io| {
                (
                    false,
                    io.queued_ns.unwrap_or(io.issued_ns),
                    wait(io.issued_ns < at_ns, false),
                )
            });
        let all = present.chain(ended).filter(|(_, since, _)| *since < at_ns);
        let (mut number, mut oldest) = (0, None);
        for one in all {
            number += 1;
            oldest = oldest.into_iter().chain([one]).min();
        }
        InFlight {
            zios: number,
            oldest_ns: oldest.map(|(_, since, _)| at_ns - since),
            device: oldest.map(|_| device.name.clone()),
            wait: oldest.map(|(.., wait)| wait.to_owned()),
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

impl Sorter {
    fn new(begun_ns: u64, tally: Tally) -> Sorter {
        Sorter {
            begun_ns,
            tally,
            ahead: Vec::new(),
        }
    }

    /// Counts what was completed before the interval's end, and keeps the rest for the next. What a
    /// CPU tells only after the end of an interval is counted in the next one, but not lost.
    fn take(&mut self, io: &Io, end_ns: u64) {
        if io.completed_ns >= end_ns {
            self.ahead.push(*io);
        } else if io.completed_ns >= self.begun_ns {
            self.tally.add(io);
        }
    }

    /// Counts what was read with the interval before.
    fn count_ahead(&mut self, end_ns: u64) {
        for io in std::mem::take(&mut self.ahead) {
            self.take(&io, end_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dashpot_probe::{Layer, Rwbs};

    const DISK: Number = Number { major: 7, minor: 1 };

    fn io(completed_ns: u64) -> Io {
        Io {
            device: DISK,
            rwbs: Rwbs::new(b"R"),
            sector: 0,
            bytes: 512,
            queued_ns: None,
            issued_ns: 1,
            completed_ns,
            error: 0,
            merged: 0,
            requeued: 0,
            submitter: None,
        }
    }

    #[test]
    fn every_io_is_counted_once_whenever_it_is_told_of() {
        let device = Device {
            name: "d".to_owned(),
            number: DISK,
            disk: DISK,
            part: None,
            layer: Layer::Request,
        };
        let tally = Tally::new(&[device], Question::default());
        let mut sorter = Sorter::new(100, tally);
        // By interval, what is read while it lasts.
        let told: [(u64, &[u64]); 4] = [
            (200, &[99, 100, 199, 200, 450]),
            (300, &[199, 250, 350]),
            (400, &[]),
            (500, &[]),
        ];
        let counted = told.map(|(end_ns, told)| {
            sorter.count_ahead(end_ns);
            told.iter().for_each(|at| sorter.take(&io(*at), end_ns));
            let count = sorter.tally.ops(0).first().map_or(0, |op| op.completed);
            sorter.tally.clear();
            count
        });
        assert_eq!(counted, [2, 3, 1, 1]);
    }
}
