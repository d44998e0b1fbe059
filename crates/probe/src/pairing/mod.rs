//! From events to I/Os: each beginning finds its end.
//!
//! No event names the request it is about, so requests are known by the disk, the sectors that
//! they have left and the letter of what they do. Two that agree in all of that are paired in the
//! order in which they began: one may then be given the other's end, but no time is lost or
//! invented.
//!
//! Nothing ages: an I/O may last for hours. Only where the kernel lost events may an end have
//! gone unseen, so what was in flight then is in doubt: an end that comes for it may be that of a
//! stranger at the same sectors, and a long latency out of two strangers is worse than none. It is
//! given up, and counted, when an end comes, when something else begins there, or when the kernel
//! has nothing in flight on that disk.

mod bios;
mod requests;
mod table;
#[cfg(test)]
mod tests;

use crate::device::{Device, Layer, Number};
use crate::in_flight::InFlight;
use crate::io::Io;
use crate::options::Start;
use crate::record::Record;

use bios::Bios;
use requests::Requests;

/// Pairs the events of the watched devices' disks.
#[derive(Debug)]
pub(crate) struct Pairing {
    devices: Vec<Device>,
    requests: Requests,
    bios: Bios,
}

impl Pairing {
    /// Of these devices; a moment of queueing is told only if I/Os start there.
    pub(crate) fn new(devices: &[Device], start: Start) -> Pairing {
        Pairing {
            devices: devices.to_vec(),
            requests: Requests::new(start),
            bios: Bios::new(start),
        }
    }

    /// Takes the next event in the order of time; the I/O of the disk that it finishes, if any.
    pub(crate) fn take(&mut self, record: &Record) -> Option<Io> {
        match self.layer(record.device)? {
            Layer::Request => self.requests.take(record),
            Layer::Bio => self.bios.take(record),
        }
    }

    /// What has begun and not ended, in no order.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = InFlight> + '_ {
        self.requests.in_flight().chain(self.bios.in_flight())
    }

    /// The kernel lost events: what is in flight may have ended unseen.
    pub(crate) fn lost(&mut self, at_ns: u64) {
        self.requests.lost(at_ns);
        self.bios.lost(at_ns);
    }

    /// Gives up what may have ended unseen on a disk, and was last heard of before a moment.
    pub(crate) fn give_up(&mut self, disk: Number, before_ns: u64) {
        self.requests.give_up(disk, before_ns);
        self.bios.give_up(disk, before_ns);
    }

    /// Completions whose beginning was not seen: it came before we watched, or was lost.
    pub(crate) fn unmatched(&self) -> u64 {
        self.requests.unmatched + self.bios.unmatched
    }

    /// I/Os given up: their ends were lost, or there was no room to remember them.
    pub(crate) fn dropped(&self) -> u64 {
        self.requests.dropped() + self.bios.dropped()
    }

    fn layer(&self, disk: Number) -> Option<Layer> {
        let device = self.devices.iter().find(|device| device.disk == disk);
        device.map(|device| device.layer)
    }
}
