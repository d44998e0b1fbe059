//! The kernel's disks, from counters that the kernel always keeps. Reading these counters needs
//! neither events nor privilege.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use anyhow::Context;
use dashpot_observe::{Intervals, Schedule, Seen, Span};
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
        })
    }

    /// Omits devices that have never been used, as sysstat does, unless the user named them.
    fn forget_unused(&mut self) {
        let is_used = |device: &Device| {
            let counters = self.last.get(&device.number);
            counters.is_some_and(Counters::is_used)
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
            Some(later.since(&earlier).interval(&device.name, elapsed))
        };
        let disks = self.devices.iter().filter_map(did).collect();
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
        let did = |device: &Device| {
            let counters = self.last.get(&device.number)?;
            Some(counters.interval(&device.name, elapsed))
        };
        let disks = self.devices.iter().filter_map(did).collect();
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
