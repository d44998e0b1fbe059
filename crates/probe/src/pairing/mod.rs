//! Pairs events into I/Os, by finding the end for each beginning.
//!
//! No event names its request, so the pairing identifies requests by the disk, their remaining sectors, and
//! the letter of the operation. Requests that agree in all three are paired in the order in which they began.
//! Two such requests may get each other's ends, but the sum of their times is still right.
//!
//! There is no time-out, because an I/O may last for hours. The probe can miss an end only if the kernel
//! loses events. I/Os in flight at the time of a loss are doubtful, because an end that matches a doubtful
//! I/O may belong to another I/O at the same sectors, and a long latency made from two I/Os is worse than no
//! latency. The pairing gives up a doubtful I/O, and counts it, when an end that matches the I/O arrives,
//! when another I/O begins at the same place, or when the kernel has nothing in flight on the disk.

mod bios;
mod requests;
mod table;
#[cfg(test)]
mod tests;

use crate::device::{Device, Layer, Number};
use crate::in_flight::InFlight;
use crate::io::{Io, Owner};
use crate::options::Start;
use crate::record::Record;

use bios::Bios;
use requests::Requests;

/// Pairs the events of the watched devices' disks.
#[derive(Debug)]
pub(crate) struct Pairing {
    layers: Vec<(Number, Layer)>,
    requests: Requests,
    bios: Bios,
}

impl Pairing {
    /// Pairs the events of these devices. I/Os have a time of queueing only if `start` is [`Start::Queue`].
    pub(crate) fn new(devices: &[Device], start: Start) -> Pairing {
        Pairing {
            layers: devices
                .iter()
                .map(|device| (device.disk, device.layer))
                .collect(),
            requests: Requests::new(start),
            bios: Bios::new(start),
        }
    }

    /// Takes the next event, in order of time, and the owner of its thread. Returns the I/O that the
    /// event finishes, if any.
    pub(crate) fn take(&mut self, record: &Record, owner: Owner) -> Option<Io> {
        match self.layer(record.device)? {
            Layer::Request => self.requests.take(record, owner),
            Layer::Bio => self.bios.take(record, owner),
        }
    }

    /// The I/Os in flight, in no particular order.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = InFlight> + '_ {
        self.requests.in_flight().chain(self.bios.in_flight())
    }

    /// Notes that the kernel lost events, so that I/Os in flight may have ended unseen.
    pub(crate) fn lost(&mut self, at_ns: u64) {
        self.requests.lost(at_ns);
        self.bios.lost(at_ns);
    }

    /// Gives up a disk's doubtful I/Os if their last events came before `before_ns`.
    pub(crate) fn give_up(&mut self, disk: Number, before_ns: u64) {
        self.requests.give_up(disk, before_ns);
        self.bios.give_up(disk, before_ns);
    }

    /// How many I/Os ended although the probe has not seen their beginning, which came before the watch or
    /// was lost.
    pub(crate) fn unmatched(&self) -> u64 {
        self.requests.unmatched + self.bios.unmatched
    }

    /// How many I/Os were given up, because their ends may have been lost or because there was no room to
    /// remember them.
    pub(crate) fn dropped(&self) -> u64 {
        self.requests.dropped() + self.bios.dropped()
    }

    /// Pairs the events of this disk, too.
    pub(crate) fn add(&mut self, device: &Device) {
        self.layers.retain(|(disk, _)| *disk != device.disk);
        self.layers.push((device.disk, device.layer));
    }

    fn layer(&self, disk: Number) -> Option<Layer> {
        let mut layers = self.layers.iter();
        layers.find_map(|(known, layer)| (*known == disk).then_some(*layer))
    }
}
