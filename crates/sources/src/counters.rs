//! The kernel's disks, from counters that the kernel always keeps. Reading these counters needs
//! neither events nor privilege.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use dashpot_export::complain;
use dashpot_observe::{DeviceInterval, Intervals, Schedule, Seen, Span};
use dashpot_probe::{Device, Known, Number, Roster};

use crate::diskstats::{Counters, counters};
use crate::earlier::not_counted;
use crate::named::Named;
use crate::signals::{Stop, now_ns};
use crate::source::Source;
use crate::vanished::{check, roster, tell};
use crate::wall::unix_ns;

/// Reads the counters of devices, once per interval.
pub(crate) struct CountersSource {
    roster: Roster,
    stop: Stop,
    intervals: Intervals,
    /// The counters of the devices at the beginning of the interval, by the names of the devices.
    last: HashMap<Arc<str>, Counters>,
    /// The counters of all devices of the host at the last look that found a change, or at the last reading.
    all: HashMap<Number, Counters>,
    /// The last counters of the disks that vanished in this interval, or zeroes if a disk vanished together with
    /// its counters.
    ended: HashMap<Arc<str>, Counters>,
    /// The devices that the user has not named and that were never used before the watch. Like sysstat, the source
    /// omits them while they are not used.
    unused: Vec<Arc<str>>,
    /// The devices of which it was said that the kernel does not count their I/Os.
    uncounted: HashSet<Arc<str>>,
}

impl CountersSource {
    pub(crate) fn new(
        devices: &[Device],
        named: Named,
        schedule: &Schedule,
    ) -> anyhow::Result<CountersSource> {
        let stop = Stop::new()?;
        let all = counters()?;
        let mut roster = roster(devices, named);
        roster.look(now_ns());
        let last = roster.watched().filter_map(|one| {
            let counters = all.get(&one.device.number)?;
            Some((Arc::clone(&one.name), *counters))
        });
        let last: HashMap<Arc<str>, Counters> = last.collect();
        let is_unused = |one: &&Known| {
            one.device.is_counted() && !last.get(&one.name).is_some_and(Counters::is_used)
        };
        let unused = roster.watched().filter(is_unused);
        let unused: Vec<_> = unused.map(|one| Arc::clone(&one.name)).collect();
        Ok(CountersSource {
            unused: match named {
                Named::Yes => Vec::new(),
                Named::No => unused,
            },
            last,
            all,
            roster,
            stop,
            intervals: schedule.begin(now_ns()),
            ended: HashMap::new(),
            uncounted: HashSet::new(),
        })
    }

    /// Looks for changed devices. A disk that has appeared begins with zeroes. But if a driver has only given a disk
    /// another medium, the kernel's counters go on, so the new disk begins where they were.
    fn look(&mut self) -> anyhow::Result<()> {
        let before: Vec<Known> = self.present().cloned().collect();
        if !self.roster.look(now_ns()) {
            return Ok(());
        }
        let now = counters()?;
        let after: Vec<Known> = self.present().cloned().collect();
        let is_in = |list: &[Known], one: &Known| list.iter().any(|other| other.name == one.name);
        let mut begins = std::mem::replace(&mut self.all, now);
        for old in before.iter().filter(|one| !is_in(&after, one)) {
            let number = old.device.number;
            let counted = self.all.get(&number).copied();
            let counted = counted.filter(|_| self.roster.has_home(&old.device));
            let last = counted.or(self.last.get(&old.name).copied());
            let last = last.unwrap_or_default();
            begins.insert(number, last);
            self.ended.insert(Arc::clone(&old.name), last);
        }
        for new in after
            .iter()
            .filter(|one| !is_in(&before, one) && one.is_reused)
        {
            let begin = begins.get(&new.device.number).copied();
            self.last
                .insert(Arc::clone(&new.name), begin.unwrap_or_default());
        }
        Ok(())
    }

    /// Tells once of each device that the kernel does not count its I/Os.
    fn tell_uncounted(&mut self) {
        let present: Vec<Known> = self.present().cloned().collect();
        for one in present.iter().filter(|one| !one.device.is_counted()) {
            if self.uncounted.insert(Arc::clone(&one.name)) {
                complain(format_args!(
                    "dashpot: {}: its figures are unknown, because the kernel does not count its I/Os: write 1 to \
                     {}, or watch it with 'dashpot observe'",
                    one.name,
                    one.device.counting_switch()
                ));
            }
        }
    }

    fn present(&self) -> impl Iterator<Item = &Known> {
        self.roster.watched().filter(|one| !one.is_gone)
    }

    /// The I/O since the last reading.
    fn go_on(&mut self, span: Span, now: HashMap<Number, Counters>) -> anyhow::Result<Seen> {
        self.tell_uncounted();
        let elapsed = span.length().elapsed;
        let mut last = HashMap::new();
        let mut disks = Vec::new();
        for one in self.roster.watched() {
            let later = if one.is_gone {
                self.ended.get(&one.name)
            } else {
                now.get(&one.device.number)
            };
            // The reading lacks a device that appeared after it, and one whose last I/Os were shown before.
            let Some(later) = later else { continue };
            let earlier = self.last.get(&one.name).copied().unwrap_or_default();
            if !one.is_gone {
                last.insert(Arc::clone(&one.name), *later);
            }
            let did = later.since(&earlier);
            if self.unused.contains(&one.name) && !did.is_used() {
                continue;
            }
            disks.push(interval(one, &did, elapsed));
        }
        self.last = last;
        self.all = now;
        self.ended.clear();
        check(&self.roster)?;
        let mut seen = Seen {
            span,
            at_ns: unix_ns(),
            disks,
            ..Seen::default()
        };
        tell(&mut self.roster, span.is_last, &mut seen);
        Ok(seen)
    }
}

impl Source for CountersSource {
    fn since_start(&mut self) -> anyhow::Result<Option<Seen>> {
        self.tell_uncounted();
        let elapsed = uptime()?;
        let did = |one: &Known| {
            let counters = self.last.get(&one.name)?;
            let is_shown = !self.unused.contains(&one.name);
            is_shown.then(|| interval(one, counters, elapsed))
        };
        let disks = self.roster.watched().filter_map(did).collect();
        Ok(Some(Seen::since_start(disks, Vec::new(), unix_ns())))
    }

    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        while let Some(due_ns) = self.intervals.due_ns() {
            let is_stopped = self.stop.is_set();
            self.look()?;
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

/// The I/O of a device by its counters. If the kernel does not count the device's I/Os, nothing of any time is
/// known.
fn interval(one: &Known, did: &Counters, elapsed: Duration) -> DeviceInterval {
    if one.device.is_counted() {
        did.interval(&one.name, elapsed)
    } else {
        DeviceInterval {
            in_flight: not_counted(&one.name),
            ..Counters::default().interval(&one.name, Duration::ZERO)
        }
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
