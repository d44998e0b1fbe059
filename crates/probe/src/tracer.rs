//! Watches devices: turns the kernel's buffers into finished I/Os.

use crate::device::{Device, Number};
use crate::error::TraceError;
use crate::in_flight::InFlight;
use crate::io::{Io, Rwbs};
use crate::options::Options;
use crate::pairing::Pairing;
use crate::record::{Entry, What};
use crate::tasks::Tasks;
use crate::tracefs::decoder::Decoder;
use crate::tracefs::events::{self, filter, wanted};
use crate::tracefs::format::Format;
use crate::tracefs::instance::Instance;
use crate::tracefs::ring::{Item, Ring};
use crate::tracefs::setup::{SWITCH, buffer_kib, enable, enable_tasks, layout, now_ns, prepare};

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
    devices: Vec<Device>,
    // The ring is dropped before the instance, which cannot be removed while its files are open.
    ring: Ring,
    instance: Instance,
    pairing: Pairing,
    /// The tasks, if the tracer watches their cgroups.
    tasks: Option<Tasks>,
    /// `pairing.unmatched()` at the last reading.
    unmatched: u64,
    /// `pairing.dropped()` at the last reading.
    dropped: u64,
    tended_ns: u64,
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
        for (kind, disks) in wanted(options) {
            let path = format!("block/{}", kind.name());
            let decoder = |format: &Format| events::Decoder::new(kind, format).map(Decoder::Block);
            decoders.push(enable(&instance, &path, filter(&disks), decoder)?);
        }
        let plan = match options.cgroups {
            true => enable_tasks(&instance, &mut decoders)?,
            false => None,
        };
        let ring = Ring::open(&cpus, layout(&instance)?, decoders)?;
        instance.write(SWITCH, "1")?;
        Ok(Tracer {
            devices: options.devices.clone(),
            ring,
            instance,
            pairing: Pairing::new(&options.devices, options.start),
            tasks: plan.map(Tasks::begin),
            unmatched: 0,
            dropped: 0,
            tended_ns: now_ns(),
            idle: Vec::new(),
        })
    }

    /// Reads the events since the last call, up to `end_ns`, and passes each finished I/O to `give`, in the
    /// order in which the I/Os ended. The tracer keeps no finished I/Os. This function does not wait, so its
    /// caller should call it often, such as 20 times a second.
    pub fn read(&mut self, end_ns: u64, mut give: impl FnMut(&Io)) -> Result<Progress, TraceError> {
        let until_ns = now_ns().min(end_ns);
        let (devices, pairing, tasks) = (&self.devices, &mut self.pairing, &mut self.tasks);
        self.ring.drain(until_ns, |item| match item {
            Item::Entry(Entry::Block(record)) => {
                let asks = matches!(record.what, What::BioQueue(_));
                let tasks = tasks.as_mut().filter(|_| asks);
                let ended = pairing.take(record, tasks.map(|tasks| tasks.cgroup(record.pid)));
                let ours = ended.filter(|io| is_of(devices, io.device, io.sector, io.rwbs));
                ours.iter().for_each(&mut give);
            }
            Item::Entry(Entry::Task(_, event)) => {
                tasks.iter_mut().for_each(|tasks| tasks.take(event));
            }
            Item::Entry(Entry::Sync(_)) => {}
            Item::Lost(at_ns) => {
                pairing.lost(at_ns);
                tasks.iter_mut().for_each(Tasks::lost);
            }
        })?;
        self.tasks.iter_mut().for_each(Tasks::caught_up);
        if until_ns >= self.tended_ns + TEND_NS {
            self.tend(until_ns)?;
        }
        let (unmatched, dropped) = (self.pairing.unmatched(), self.pairing.dropped());
        Ok(Progress {
            until_ns,
            lost: self.ring.lost()?,
            unmatched: unmatched - std::mem::replace(&mut self.unmatched, unmatched),
            dropped: dropped - std::mem::replace(&mut self.dropped, dropped),
        })
    }

    /// Checks that the kernel still records events, and gives up I/Os that must have ended. If a disk had
    /// nothing in flight at the last check, all its earlier I/Os had ended by then, and the tracer has
    /// meanwhile read all their events that were not lost.
    fn tend(&mut self, now_ns: u64) -> Result<(), TraceError> {
        self.instance.check_on(SWITCH)?;
        self.tasks.iter_mut().for_each(Tasks::tend);
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
            let device = self.devices.iter().find(|device| device.disk == *disk);
            device.is_some_and(Device::is_idle)
        };
        disks.retain(is_idle);
        disks
    }

    /// The I/Os in flight at the last reading.
    pub fn in_flight(&self) -> impl Iterator<Item = InFlight> + '_ {
        let all = self.pairing.in_flight();
        all.filter(|io| is_of(&self.devices, io.device, io.sector, io.rwbs))
    }

    /// The watched devices that no longer exist.
    pub fn vanished(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|device| !device.is_there())
    }
}

/// Whether an I/O of a disk belongs to one of these devices. Events name whole disks. A partition has the
/// I/Os of its sectors, but no flushes, which the kernel's own statistics also count only for the whole disk.
fn is_of(devices: &[Device], disk: Number, sector: u64, rwbs: Rwbs) -> bool {
    let is_flush = rwbs.operation() == b'F';
    devices
        .iter()
        .any(|device| device.has(disk, sector) && !(is_flush && device.part.is_some()))
}

#[cfg(test)]
mod tests;
