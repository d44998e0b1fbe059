//! Watches devices: turns the kernel's buffers into finished I/Os.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::device::{Number, SYS, list};
use crate::earlier::Earlier;
use crate::error::TraceError;
use crate::in_flight::InFlight;
use crate::io::{Io, Owner};
use crate::options::Options;
use crate::pairing::Pairing;
use crate::record::{Entry, Record, What};
use crate::roster::{Belongs, Roster};
use crate::tasks::Tasks;
use crate::tracefs::decoder::Decoder;
use crate::tracefs::events::{self, filtered};
use crate::tracefs::format::Format;
use crate::tracefs::instance::Instance;
use crate::tracefs::ring::{Item, Ring};
use crate::tracefs::setup::{SWITCH, buffer_kib, enable, enable_tasks, layout, now_ns, prepare};
use crate::tracefs::tasks::Facts;

/// The progress of one reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The tracer has seen everything that happened before this time, except lost events.
    pub until_ns: u64,
    /// How many events since the last reading were lost, because the kernel had no room for them.
    pub lost: u64,
    /// How many of the I/Os that ended since the last reading are not reported, because their beginning was
    /// lost or came before the watch.
    pub unmatched: u64,
    /// How many I/Os were given up since the last reading, and are not reported either, because their ends
    /// may have been lost or because there was no room to remember them.
    pub dropped: u64,
}

impl Progress {
    /// How many events were lost in this reading, plus how many I/Os were given up.
    pub fn missing(&self) -> u64 {
        self.lost + self.dropped
    }
}

/// A watch on some devices. Dropping it removes everything that it has set up in the kernel.
#[derive(Debug)]
pub struct Tracer {
    roster: Roster,
    // The ring is dropped before the instance, which cannot be removed while its files are open.
    ring: Ring,
    instance: Instance,
    pairing: Pairing,
    tasks: Tasks,
    /// `pairing.unmatched()` at the last reading.
    unmatched: u64,
    /// `pairing.dropped()` at the last reading.
    dropped: u64,
    tended_ns: u64,
    begun_ns: u64,
    /// The I/Os of each watched device that began before the watch, by the device's name.
    earlier: HashMap<Arc<str>, Earlier>,
    /// I/Os that ran while one disk replaced another.
    undecided: Vec<Io>,
    /// Disks that had nothing in flight at the last check.
    idle: Vec<Number>,
}

/// The time between two checks for changes that no event reports.
const TEND_NS: u64 = 1_000_000_000;

impl Tracer {
    /// Begins to watch.
    pub fn start(options: &Options) -> Result<Tracer, TraceError> {
        Tracer::start_with(options, buffer_kib)
    }

    /// Begins to watch, with `buffer_kib` KiB of kernel memory for each CPU.
    fn start_with(
        options: &Options,
        buffer_kib: impl Fn(usize) -> usize,
    ) -> Result<Tracer, TraceError> {
        let instance = Instance::new()?;
        prepare(&instance)?;
        let cpus = instance.list("per_cpu")?;
        let kib = buffer_kib(cpus.len());
        instance.write("buffer_size_kb", &kib.to_string())?;
        let mut decoders = Vec::new();
        let known = list(Path::new(SYS)).unwrap_or_default();
        for (kind, filter) in filtered(options, &known) {
            let path = format!("block/{}", kind.name());
            let decoder = |format: &Format| events::Decoder::new(kind, format).map(Decoder::Block);
            decoders.push(enable(&instance, &path, filter, decoder)?);
        }
        let facts = Facts::of(options.processes, options.cgroups);
        let plan = enable_tasks(&instance, facts, &mut decoders)?;
        let ring = Ring::open(&cpus, layout(&instance)?, decoders)?;
        instance.write(SWITCH, "1")?;
        Ok(Tracer {
            roster: Roster::new(&options.devices, options.later),
            ring,
            instance,
            pairing: Pairing::new(&options.devices, options.start),
            tasks: Tasks::begin(plan),
            unmatched: 0,
            dropped: 0,
            tended_ns: now_ns(),
            begun_ns: now_ns(),
            earlier: HashMap::new(),
            undecided: Vec::new(),
            idle: Vec::new(),
        })
    }

    /// Reads the events since the last call, up to `end_ns`, and passes each finished I/O to `give` with the
    /// name of its device, in the order in which the I/Os ended; but an I/O that ran while one disk replaced
    /// another may come later. The tracer keeps no other finished I/Os. This function does not wait, so its
    /// caller should call it often, such as 20 times a second.
    pub fn read(
        &mut self,
        end_ns: u64,
        mut give: impl FnMut(&Arc<str>, &Io),
    ) -> Result<Progress, TraceError> {
        let counts = self.count_in_flight();
        let counted_ns = now_ns();
        let until_ns = counted_ns.min(end_ns);
        // Every disk that has events until then exists at this look, unless it has vanished again.
        if self.roster.look(now_ns()) {
            self.take_later();
        }
        let mut unknown = self.drain(until_ns, &mut give)?;
        let is_whole = until_ns == counted_ns;
        // The I/Os since the look that found a new disk decide which others are its own. The caller may not read
        // again, so they are read now.
        let until_ns = if self.undecided.is_empty() {
            until_ns
        } else {
            now_ns().min(end_ns)
        };
        if !self.undecided.is_empty() {
            unknown += self.drain(until_ns, &mut give)?;
        }
        self.decide(until_ns, &mut give);
        if is_whole {
            self.count_earlier(&counts, counted_ns);
        }
        self.tasks.caught_up();
        if until_ns >= self.tended_ns + TEND_NS {
            self.tend(until_ns)?;
        }
        let (unmatched, dropped) = (self.pairing.unmatched(), self.pairing.dropped());
        Ok(Progress {
            until_ns,
            lost: self.ring.lost()?,
            unmatched: unmatched - std::mem::replace(&mut self.unmatched, unmatched),
            dropped: unknown + dropped - std::mem::replace(&mut self.dropped, dropped),
        })
    }

    /// Passes on the I/Os that ended until `until_ns`. Returns how many others ended on disks that vanished
    /// before the tracer could look at them.
    fn drain(
        &mut self,
        until_ns: u64,
        give: &mut impl FnMut(&Arc<str>, &Io),
    ) -> Result<u64, TraceError> {
        let (roster, pairing, tasks) = (&self.roster, &mut self.pairing, &mut self.tasks);
        let undecided = &mut self.undecided;
        let mut unknown = 0;
        self.ring.drain(until_ns, |item| match item {
            Item::Entry(Entry::Block(record)) => {
                unknown += u64::from(is_end_on_unknown(roster, record));
                let owner = match record.what {
                    What::BioQueue(thread) => tasks.owner(record.pid, Some(thread)),
                    _ => Owner::default(),
                };
                if let Some(io) = pairing.take(record, owner) {
                    match roster.place(&io) {
                        Belongs::Of(name) => give(&name, &io),
                        Belongs::Undecided => undecided.push(io),
                        Belongs::Elsewhere => {}
                    }
                }
            }
            Item::Entry(Entry::Task(_, event)) => tasks.take(event),
            Item::Entry(Entry::Sync(_)) => {}
            Item::Lost(at_ns) => {
                pairing.lost(at_ns);
                tasks.lost();
            }
        })?;
        Ok(unknown)
    }

    /// Begins to pair the events of disks that have just appeared. All their I/Os begin during the watch.
    fn take_later(&mut self) {
        for one in self.roster.watched().filter(|one| one.is_later()) {
            if !self.earlier.contains_key(&one.name) {
                self.earlier.insert(Arc::clone(&one.name), Earlier::NONE);
                self.pairing.add(&one.device);
            }
        }
        let roster = &self.roster;
        self.earlier
            .retain(|name, _| roster.watched().any(|one| one.name == *name));
    }

    /// Passes on the I/Os that ran while one disk replaced another, once all of them are known.
    fn decide(&mut self, until_ns: u64, give: &mut impl FnMut(&Arc<str>, &Io)) {
        while let Some(disk) = self.undecided.first().map(|io| io.device) {
            if until_ns < self.roster.decided_ns(disk) {
                return;
            }
            let all = std::mem::take(&mut self.undecided);
            let (own, others) = all.into_iter().partition(|io| io.device == disk);
            self.undecided = others;
            for (name, io) in self.roster.decide(own) {
                give(&name, &io);
            }
        }
    }

    /// The kernel's counts of I/Os in flight, of the devices that may have I/Os from before the watch.
    fn count_in_flight(&self) -> Vec<(Arc<str>, Option<u64>)> {
        let watched = self.roster.watched().filter(|one| !one.is_gone);
        let open = watched.filter(|one| {
            let earlier = self.earlier.get(&one.name);
            earlier.is_none_or(|earlier| earlier.is_open())
        });
        open.map(|one| (Arc::clone(&one.name), one.device.counted_in_flight()))
            .collect()
    }

    /// Takes counts that the kernel made at `at_ns`, after all events until then are read.
    fn count_earlier(&mut self, counts: &[(Arc<str>, Option<u64>)], at_ns: u64) {
        for (name, counted) in counts {
            let own = self.in_flight().filter(|(device, io)| {
                // The kernel counts an I/O a moment after its event.
                let has_counted = |ns: u64| ns.saturating_add(COUNTED_NS) <= at_ns;
                let is_counted = io.issued_ns.is_some_and(has_counted);
                *device == name && is_counted && !io.doubtful && io.rwbs.operation() != b'F'
            });
            let certain = own.count() as u64;
            let earlier = self.earlier.entry(Arc::clone(name)).or_default();
            if let Some(counted) = counted {
                earlier.take(*counted, certain);
            }
        }
    }

    /// How many I/Os of a device began before the watch and have not ended; `None` if the kernel does not
    /// count the device's I/Os. All of them are at least as old as the watch.
    pub fn earlier(&self, name: &str) -> Option<u64> {
        self.earlier.get(name).and_then(|earlier| earlier.number())
    }

    /// When the watch began.
    pub fn begun_ns(&self) -> u64 {
        self.begun_ns
    }

    /// The devices that the watch knows.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The devices that the watch knows, to take their changes.
    pub fn roster_mut(&mut self) -> &mut Roster {
        &mut self.roster
    }

    /// Checks that the kernel still records events, and gives up I/Os that must have ended. If a disk had
    /// nothing in flight at the last check, all its earlier I/Os had ended by then, and the tracer has
    /// meanwhile read all their events that were not lost.
    fn tend(&mut self, now_ns: u64) -> Result<(), TraceError> {
        self.instance.check_on(SWITCH)?;
        self.tasks.tend();
        let before_ns = std::mem::replace(&mut self.tended_ns, now_ns);
        for disk in std::mem::take(&mut self.idle) {
            self.pairing.give_up(disk, before_ns);
        }
        self.idle = self.idle_in_doubt();
        Ok(())
    }

    /// The disks that have nothing but doubtful I/Os in flight.
    fn idle_in_doubt(&self) -> Vec<Number> {
        let doubtful = self.pairing.in_flight().filter(|io| io.doubtful);
        let mut disks: Vec<_> = doubtful.map(|io| io.device).collect();
        disks.sort_unstable();
        disks.dedup();
        let is_idle = |disk: &Number| {
            let device = self.roster.of(*disk, 0, false);
            device.is_some_and(|one| one.device.is_idle())
        };
        disks.retain(is_idle);
        disks
    }

    /// The I/Os in flight at the last reading, with the names of their devices.
    pub fn in_flight(&self) -> impl Iterator<Item = (&Arc<str>, InFlight)> + '_ {
        self.pairing.in_flight().filter_map(|io| {
            let is_flush = io.rwbs.operation() == b'F';
            let one = self.roster.of(io.device, io.sector, is_flush)?;
            one.is_watched.then_some((&one.name, io))
        })
    }
}

/// Whether an event shows the end of an I/O on a disk that the tracer should watch and does not know. A disk
/// without a size is not watched.
fn is_end_on_unknown(roster: &Roster, record: &Record) -> bool {
    let is_end = matches!(record.what, What::Complete(_)) && record.sectors > 0;
    is_end && roster.lacks(record.device)
}

/// By then, the kernel has counted an I/O whose event it has raised.
const COUNTED_NS: u64 = 20_000;

#[cfg(test)]
mod tests;
