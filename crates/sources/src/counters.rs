//! The kernel's disks, from counters that the kernel always keeps. Reading these counters needs
//! neither events nor privilege.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use anyhow::Context;
use dashpot_export::complain;
use dashpot_observe::{DeviceInterval, InFlight, Intervals, Schedule, Seen, Span};
use dashpot_probe::{Device, Number};

use crate::diskstats::{Counters, counters};
use crate::signals::{Stop, now_ns};
use crate::source::Source;
use crate::vanished::Vanished;
use crate::wall::unix_ns;

/// Reads the counters of devices, once per interval.
pub(crate) struct CountersSource {
    devices: Vec<Device>,
    /// Whether the user has named the devices.
    are_named: bool,
    stop: Stop,
    intervals: Intervals,
    last: HashMap<Number, Counters>,
    vanished: Vanished,
    /// The devices of which it was said that the kernel does not count their I/Os.
    uncounted: HashSet<Number>,
}

impl CountersSource {
    pub(crate) fn new(
        devices: &[Device],
        are_named: bool,
        schedule: &Schedule,
    ) -> anyhow::Result<CountersSource> {
        let stop = Stop::new()?;
        let last = counters()?;
        Ok(CountersSource {
            devices: devices.to_vec(),
            are_named,
            stop,
            intervals: schedule.begin(now_ns()),
            last,
            vanished: Vanished::default(),
            uncounted: HashSet::new(),
        })
    }

    /// The I/O of a device by its counters. If the kernel does not count the device's I/Os, nothing of any
    /// time is known, and the first time that this is so the reason is told.
    fn interval(&mut self, device: &Device, did: Counters, elapsed: Duration) -> DeviceInterval {
        if device.is_counted() {
            return did.interval(&device.name, elapsed);
        }
        if self.uncounted.insert(device.number) {
            complain(format_args!(
                "dashpot: {}: its figures are unknown, because the kernel does not count its I/Os: write 1 to {}, \
                 or watch it with 'dashpot observe'",
                device.name,
                device.counting_switch()
            ));
        }
        DeviceInterval {
            in_flight: InFlight::UNKNOWN,
            ..Counters::default().interval(&device.name, Duration::ZERO)
        }
    }

    fn intervals_of(
        &mut self,
        did: Vec<(Device, Counters)>,
        elapsed: Duration,
    ) -> Vec<DeviceInterval> {
        let did = did.into_iter();
        did.map(|(device, did)| self.interval(&device, did, elapsed))
            .collect()
    }

    /// Omits devices that have never been used, as sysstat does, unless the user named them.
    fn forget_unused(&mut self) {
        let is_used = |device: &Device| {
            let counters = self.last.get(&device.number);
            !device.is_counted() || counters.is_some_and(Counters::is_used)
        };
        self.devices
            .retain(|device| self.are_named || is_used(device));
    }

    /// The I/O since the last reading. Devices that are gone are left out.
    fn go_on(&mut self, span: Span, now: HashMap<Number, Counters>) -> anyhow::Result<Seen> {
        let elapsed = span.length().elapsed;
        let did = |device: &Device| {
            let later = now.get(&device.number).filter(|_| device.is_there())?;
            let earlier = self.last.get(&device.number).copied().unwrap_or_default();
            Some((device.clone(), later.since(&earlier)))
        };
        let did: Vec<_> = self.devices.iter().filter_map(did).collect();
        let disks = self.intervals_of(did, elapsed);
        self.last = now;
        self.vanished.check_presence(&self.devices);
        self.vanished.check(&self.devices)?;
        Ok(Seen {
            span,
            at_ns: unix_ns(),
            disks,
            gone: self.vanished.gone(),
            vanished: self.vanished.news(&self.devices, span.is_last).to_vec(),
            ..Seen::default()
        })
    }
}

impl Source for CountersSource {
    fn since_start(&mut self) -> anyhow::Result<Option<Seen>> {
        self.forget_unused();
        let elapsed = uptime()?;
        let did = |device: &Device| Some((device.clone(), *self.last.get(&device.number)?));
        let did: Vec<_> = self.devices.iter().filter_map(did).collect();
        let disks = self.intervals_of(did, elapsed);
        Ok(Some(Seen::since_start(disks, Vec::new(), unix_ns())))
    }

    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        while let Some(due_ns) = self.intervals.due_ns() {
            let is_stopped = self.stop.is_set();
            if !is_stopped && now_ns() < due_ns {
                self.stop.sleep_until(due_ns);
                continue;
            }
            let (now, at_ns) = (counters()?, now_ns());
            if let Some(span) = self.intervals.end_or_close(at_ns, is_stopped) {
                return self.go_on(span, now).map(Some);
            }
        }
        Ok(None)
    }
}

/// How long the machine has been up.
fn uptime() -> anyhow::Result<Duration> {
    let text = fs::read_to_string(UPTIME).context(UPTIME)?;
    let seconds = text.split_ascii_whitespace().next().unwrap_or_default();
    let seconds: f64 = seconds.parse().context(UPTIME)?;
    Ok(Duration::from_secs_f64(seconds))
}

const UPTIME: &str = "/proc/uptime";
