//! Pairs the events of bios (`block_bio_queue` and `block_bio_complete`), for devices without requests (dm,
//! md, zram).
//!
//! The sector after a bio's last sector identifies the bio. A bio's beginning can change, because some
//! drivers advance a bio while they work on it, until no sectors are left (brd after Linux 6.12). When dm
//! splits a bio, it trims the bio to the remaining part. But no driver changes a bio's end.
//!
//! A split bio is one I/O, from its queueing to the end of its last part. The kernel does not queue the
//! remaining part again, and the end of the whole bio comes after the ends of its parts. If the kernel
//! also reports the end of an earlier part, the pairing finds no queued bio that ends there: it makes no I/O,
//! and counts the end as unmatched. (dm's own `/sys/block/DEV/stat` counts the parts: a read across two of
//! its targets counts twice.)

use crate::device::Number;
use crate::in_flight::InFlight;
use crate::io::{Io, Owner, Rwbs, Submitter};
use crate::options::Start;
use crate::record::{Record, What};

use super::requests::{SECTOR, end_of};
use super::table::{Seen, Table};

/// The bios in flight.
#[derive(Debug)]
pub(super) struct Bios {
    start: Start,
    queued: Table<Bio>,
    /// How many bios completed although the probe has not seen their queueing.
    pub(super) unmatched: u64,
}

#[derive(Debug)]
struct Bio {
    device: Number,
    rwbs: Rwbs,
    sector: u64,
    sectors: u64,
    queued_ns: u64,
    submitter: Submitter,
}

impl Bios {
    pub(super) fn new(start: Start) -> Bios {
        Bios {
            start,
            queued: Table::new(),
            unmatched: 0,
        }
    }

    pub(super) fn lost(&mut self, at_ns: u64) {
        self.queued.doubt(at_ns);
    }

    pub(super) fn give_up(&mut self, disk: Number, before_ns: u64) {
        self.queued.give_up(disk, before_ns);
    }

    pub(super) fn dropped(&self) -> u64 {
        self.queued.dropped
    }

    /// Takes an event, and the owner of its thread. Returns the I/O that the event finished, if any.
    pub(super) fn take(&mut self, record: &Record, owner: Owner) -> Option<Io> {
        match record.what {
            What::BioQueue(thread) => {
                let submitter = Submitter {
                    tid: record.pid,
                    thread,
                    owner,
                };
                self.queued
                    .add((record.device, end_of(record)), Bio::new(record, submitter));
                None
            }
            What::BioComplete(error) => self.complete(record, error),
            _ => None,
        }
    }

    pub(super) fn in_flight(&self) -> impl Iterator<Item = InFlight> {
        self.queued.iter().map(|(bio, doubtful)| InFlight {
            device: bio.device,
            rwbs: bio.rwbs,
            sector: bio.sector,
            bytes: bio.sectors * SECTOR,
            since_ns: bio.queued_ns,
            issued_ns: Some(bio.queued_ns),
            doubtful,
            submitter: Some(bio.submitter.clone()),
        })
    }

    fn complete(&mut self, record: &Record, error: i32) -> Option<Io> {
        let place = (record.device, end_of(record));
        let sectors = u64::from(record.sectors);
        let whole = |bio: &Bio| bio.sectors == sectors && bio.does(record);
        let rest = |bio: &Bio| bio.sectors > sectors && bio.does(record);
        let found = self
            .queued
            .remove(place, whole)
            .or_else(|| self.queued.remove(place, rest));
        let Some(bio) = found else {
            self.unmatched += 1;
            return None;
        };
        // The end may belong to another bio, which the probe never saw, so the pairing does not use it.
        if self.queued.is_doubtful(&bio) {
            self.queued.dropped += 1;
            return None;
        }
        Some(bio.finish(record.at_ns, error, self.start))
    }
}

impl Bio {
    fn new(record: &Record, submitter: Submitter) -> Bio {
        Bio {
            device: record.device,
            rwbs: record.rwbs,
            sector: record.sector,
            sectors: u64::from(record.sectors),
            queued_ns: record.at_ns,
            submitter,
        }
    }

    fn does(&self, record: &Record) -> bool {
        self.rwbs.operation() == record.rwbs.operation()
    }

    fn finish(self, at_ns: u64, error: i32, start: Start) -> Io {
        Io {
            device: self.device,
            rwbs: self.rwbs,
            sector: self.sector,
            bytes: self.sectors * SECTOR,
            queued_ns: Some(self.queued_ns).filter(|_| start == Start::Queue),
            issued_ns: self.queued_ns,
            completed_ns: at_ns,
            error: error.saturating_abs(),
            merged: 0,
            requeued: 0,
            submitter: Some(self.submitter),
        }
    }
}

impl Seen for Bio {
    fn seen_ns(&self) -> u64 {
        self.queued_ns
    }
}
