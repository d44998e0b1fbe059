//! Requests, of devices that have them: from `block_getrq` or `block_rq_issue` to
//! `block_rq_complete`.
//!
//! **Queued** is the moment of `block_getrq`, when a bio gets a request of its own: the earliest
//! event that every bio's request has (`block_rq_insert` does not come for what is issued
//! directly), and the moment from which `/sys/block/DEV/stat` counts. Of merged requests it is
//! the earliest, as in the kernel. The kernel's own flushes have no bio, so no such moment.
//!
//! **Issued** is the first time that the driver was given the request: what it gave back and got
//! again has been waiting for that driver all along. (The kernel's statistics start earlier, at
//! the queueing, and do not start again either; tools on the same events often start again.)
//!
//! **A flush** reaches the driver as a request of the kernel's own, `FF`, that serves all who
//! wait for it; that one is the I/O. The empty request of someone who waits is not issued, and
//! ends with a completion of no sectors, as does a write with a flush before or after it, once
//! more. Those are neither I/Os nor a sign of trouble. In `/sys/block/DEV/stat` each empty
//! request is one more write.

use crate::device::Number;
use crate::io::{Io, Rwbs, Submitter};
use crate::record::{Record, What};
use crate::tracer::{InFlight, Start};

use super::table::{Place, Seen, Table};

/// The bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// The requests in flight.
#[derive(Debug)]
pub(super) struct Requests {
    start: Start,
    /// Not with the driver, found by the sector after their last: there bios and requests join.
    waiting: Table<Request>,
    /// With the driver, found by the first sector that they have left.
    issued: Table<Request>,
    /// Completions of requests whose issue was not seen.
    pub(super) unmatched: u64,
}

#[derive(Debug)]
struct Request {
    device: Number,
    rwbs: Rwbs,
    /// First sector of what is left to do.
    sector: u64,
    /// Number of sectors left.
    sectors: u64,
    /// First sector of the whole.
    first_sector: u64,
    /// Bytes that are complete.
    done_bytes: u64,
    /// Bytes left, as of the last issue.
    issued_bytes: u64,
    seen_ns: u64,
    queued_ns: Option<u64>,
    /// The first time.
    issued_ns: Option<u64>,
    error: i32,
    merged: u32,
    requeued: u32,
    submitter: Option<Submitter>,
}

impl Requests {
    pub(super) fn new(start: Start) -> Requests {
        Requests {
            start,
            waiting: Table::new(),
            issued: Table::new(),
            unmatched: 0,
        }
    }

    pub(super) fn lost(&mut self, at_ns: u64) {
        self.waiting.doubt(at_ns);
        self.issued.doubt(at_ns);
    }

    pub(super) fn dropped(&self) -> u64 {
        self.waiting.dropped + self.issued.dropped
    }

    /// Takes an event; the I/O that it finished, if it did.
    pub(super) fn take(&mut self, record: &Record) -> Option<Io> {
        match record.what {
            What::GetRequest(comm) => {
                self.queue(
                    record,
                    Submitter {
                        pid: record.pid,
                        comm,
                    },
                );
            }
            What::BackMerge => self.merge_back(record),
            What::FrontMerge => self.merge_front(record),
            What::RequestMerge => self.merge_request(record),
            What::Issue(bytes) => self.issue(record, u64::from(bytes)),
            What::Requeue => self.requeue(record),
            What::Complete(error) => return self.complete(record, error),
            What::BioQueue(_) | What::Split(_) | What::BioComplete(_) => {}
        }
        None
    }

    pub(super) fn in_flight(&self) -> impl Iterator<Item = InFlight> {
        let issued = self.issued.iter().map(|request| (request, true));
        let waiting = self.waiting.iter().map(|request| (request, false));
        issued
            .chain(waiting)
            .filter_map(|(request, issued)| request.in_flight(self.start, issued))
    }

    /// The empty request of someone who waits for a flush is left out: no I/O comes of it.
    fn queue(&mut self, record: &Record, submitter: Submitter) {
        if record.sectors > 0 {
            let mut request = Request::new(record);
            request.queued_ns = Some(record.at_ns);
            request.submitter = Some(submitter);
            self.wait(request);
        }
    }

    fn wait(&mut self, request: Request) {
        let place = (request.device, request.sector + request.sectors);
        self.waiting.add(place, request);
    }

    fn merge_back(&mut self, record: &Record) {
        let place = (record.device, record.sector);
        if let Some(mut request) = self.waiting.remove(place, |waiting| waiting.does(record)) {
            request.sectors += u64::from(record.sectors);
            request.merged += 1;
            request.seen_ns = record.at_ns;
            self.wait(request);
        }
    }

    /// Rare enough that looking through all that wait costs less than a second way to find them.
    fn merge_front(&mut self, record: &Record) {
        let end = end_of(record);
        let follows = |waiting: &Request| waiting.sector == end && waiting.does(record);
        if let Some(mut request) = self.waiting.remove_anywhere(follows) {
            request.sector = record.sector;
            request.first_sector = request.first_sector.min(record.sector);
            request.sectors += u64::from(record.sectors);
            request.merged += 1;
            request.seen_ns = record.at_ns;
            self.wait(request);
        }
    }

    fn merge_request(&mut self, record: &Record) {
        let absorbed = self.take_waiting(record);
        let place = (record.device, record.sector);
        if let Some(mut request) = self.waiting.remove(place, |waiting| waiting.does(record)) {
            request.sectors += u64::from(record.sectors);
            request.merged += 1;
            request.seen_ns = record.at_ns;
            match absorbed {
                Some(absorbed) => request.absorb(&absorbed),
                None => request.queued_ns = None,
            }
            self.wait(request);
        }
    }

    fn issue(&mut self, record: &Record, bytes: u64) {
        let sectors = u64::from(record.sectors);
        let mut request = self
            .take_waiting(record)
            .or_else(|| self.take_waiting_of_another_size(record))
            .unwrap_or_else(|| Request::new(record));
        request.rwbs = record.rwbs;
        request.sectors = sectors;
        request.issued_bytes = bytes;
        request.seen_ns = record.at_ns;
        request.issued_ns = request.issued_ns.or(Some(record.at_ns));
        self.issued.add(place_of(record), request);
    }

    fn requeue(&mut self, record: &Record) {
        let sectors = u64::from(record.sectors);
        let given_back = self
            .issued
            .remove(place_of(record), |issued| {
                issued.sectors == sectors && issued.does(record)
            })
            .or_else(|| self.take_waiting(record));
        if let Some(mut request) = given_back {
            request.requeued += 1;
            request.seen_ns = record.at_ns;
            self.wait(request);
        }
    }

    fn complete(&mut self, record: &Record, error: i32) -> Option<Io> {
        let Some(mut request) = self.take_issued(record) else {
            self.end_unissued(record);
            return None;
        };
        if request.error == 0 {
            request.error = error.saturating_abs();
        }
        let sectors = u64::from(record.sectors);
        if sectors >= request.sectors {
            return request.finish(record.at_ns, self.start);
        }
        request.sector += sectors;
        request.sectors -= sectors;
        request.done_bytes += sectors * SECTOR;
        request.issued_bytes = request.issued_bytes.saturating_sub(sectors * SECTOR);
        request.seen_ns = record.at_ns;
        self.issued.add((request.device, request.sector), request);
        None
    }

    /// The request that these sectors are the rest of, or else the beginning of.
    fn take_issued(&mut self, record: &Record) -> Option<Request> {
        let sectors = u64::from(record.sectors);
        let place = place_of(record);
        let all = |issued: &Request| issued.sectors == sectors && issued.does(record);
        let some = |issued: &Request| sectors > 0 && issued.does(record);
        self.issued
            .remove(place, all)
            .or_else(|| self.issued.remove(place, some))
    }

    /// What was never issued, or not seen to be, is not an I/O.
    fn end_unissued(&mut self, record: &Record) {
        self.take_waiting(record);
        if record.sectors > 0 || record.rwbs.operation() == b'F' {
            self.unmatched += 1;
        }
    }

    fn take_waiting(&mut self, record: &Record) -> Option<Request> {
        let same = |waiting: &Request| waiting.sector == record.sector && waiting.does(record);
        self.waiting.remove((record.device, end_of(record)), same)
    }

    /// Where a merge went unseen: of discards no event tells it, and events can be lost.
    fn take_waiting_of_another_size(&mut self, record: &Record) -> Option<Request> {
        if record.sectors == 0 {
            return None;
        }
        self.waiting
            .remove_anywhere(|waiting| waiting.sector == record.sector && waiting.does(record))
    }
}

impl Request {
    fn new(record: &Record) -> Request {
        Request {
            device: record.device,
            rwbs: record.rwbs,
            sector: place_of(record).1,
            sectors: u64::from(record.sectors),
            first_sector: place_of(record).1,
            done_bytes: 0,
            issued_bytes: 0,
            seen_ns: record.at_ns,
            queued_ns: None,
            issued_ns: None,
            error: 0,
            merged: 0,
            requeued: 0,
            submitter: None,
        }
    }

    /// Whether an event can be about this: letters beside the operation differ between a bio and
    /// its request, and between a request of a flush and its parts.
    fn does(&self, record: &Record) -> bool {
        self.device == record.device && self.rwbs.operation() == record.rwbs.operation()
    }

    /// What joins another began when the earlier of the two did; unknown if either is.
    fn absorb(&mut self, absorbed: &Request) {
        self.queued_ns = self
            .queued_ns
            .zip(absorbed.queued_ns)
            .map(|(one, two)| one.min(two));
        self.issued_ns = match (self.issued_ns, absorbed.issued_ns) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        self.done_bytes += absorbed.done_bytes;
        self.merged += absorbed.merged;
        self.requeued += absorbed.requeued;
    }

    fn finish(&self, at_ns: u64, start: Start) -> Option<Io> {
        Some(Io {
            device: self.device,
            rwbs: self.rwbs,
            sector: self.first_sector,
            bytes: self.done_bytes + self.issued_bytes,
            queued_ns: self.queued_ns.filter(|_| start == Start::Queue),
            issued_ns: self.issued_ns?,
            completed_ns: at_ns,
            error: self.error,
            merged: self.merged,
            requeued: self.requeued,
            submitter: self.submitter,
        })
    }

    fn in_flight(&self, start: Start, issued: bool) -> Option<InFlight> {
        let queued_ns = self.queued_ns.filter(|_| start == Start::Queue);
        Some(InFlight {
            device: self.device,
            rwbs: self.rwbs,
            sector: self.first_sector,
            since_ns: queued_ns.or(self.issued_ns)?,
            issued,
            submitter: self.submitter,
        })
    }
}

impl Seen for Request {
    fn seen_ns(&self) -> u64 {
        self.seen_ns
    }
}

/// The sector after the last of an event.
pub(super) fn end_of(record: &Record) -> u64 {
    record.sector.wrapping_add(u64::from(record.sectors))
}

/// A request without sectors is issued at sector 0 and completed at −1.
fn place_of(record: &Record) -> Place {
    let sector = if record.sector == u64::MAX {
        0
    } else {
        record.sector
    };
    (record.device, sector)
}
