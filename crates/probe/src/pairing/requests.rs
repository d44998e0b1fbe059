//! Pairs the events of requests, for devices that have requests: from `block_bio_queue` or `block_rq_issue`
//! to `block_rq_complete`.
//!
//! **Queued** is the time of `block_bio_queue`, when a bio is handed to the disk; for a request with several
//! bios, the time of the oldest bio. After this time come the wait for a free tag, the plug, the scheduler,
//! and the limits of iocost, iolatency and write-back throttling. `io.max` holds I/O back before that time,
//! and a `kworker` then queues the I/O. The pairing does not use `block_getrq`, which comes when the wait for
//! a tag is over, and would hide that wait. (The statistics in `/sys/block/DEV/stat` do hide it, because they
//! count from `block_getrq`.) Nor does it use `block_rq_insert`, which the kernel does not raise for directly
//! issued requests. A bio that ends without a request is not an I/O. For example, a bio that must not wait
//! (`REQ_NOWAIT`, as from io_uring) ends at once if it finds no tag, and is queued anew when it is submitted
//! again.
//!
//! **The bios of a request** are the bios within the request's sectors. The pairing therefore needs no event
//! that says which bios the kernel merged; it only keeps the waiting bios, by their first sectors. If
//! `block_split` cuts a bio, the pairing keeps the parts, because each part gets its own request, in any
//! order. Only discards can be merged without being neighbours, and no event shows such a merge. If the
//! pairing finds no bio for some sectors of a discard, it therefore assumes that other waiting discards were
//! merged into it.
//!
//! A request has no time of queueing if the probe missed any of its bios. This is so for a flush that the
//! kernel itself makes, a command from a driver or a program, I/O that dm-multipath passes on, and I/O that
//! was queued before the watch began. Kernels before 4.13 raise `block_bio_queue` again for the remaining
//! part of a split bio; of the two times, the pairing uses the earlier one.
//!
//! **Issued** is the time at which the driver first received the request. If the driver gives a request back
//! and receives it again, the first time stays, because the request has waited for that driver all along.
//! (The time in the kernel's statistics does not start again either; in other tools that read these events
//! it often does.)
//!
//! **A flush** reaches the driver as a request that the kernel itself makes, `FF`, and that serves all
//! waiting callers. That request counts as the I/O. The empty request of a waiting caller is never issued,
//! and ends with a completion without sectors. A write with a flush before or after it has one such
//! completion in addition to its own. Such completions are neither I/Os nor signs of lost events. In
//! `/sys/block/DEV/stat` each empty request counts as a write.

use crate::device::Number;
use crate::in_flight::InFlight;
use crate::io::{Io, Owner, Rwbs, Submitter};
use crate::options::Start;
use crate::record::{Record, What};

use super::table::{Sector, Seen, Table};

/// The size of a sector in bytes.
pub(super) const SECTOR: u64 = 512;

/// The requests in flight.
#[derive(Debug)]
pub(super) struct Requests {
    start: Start,
    /// Bios, and requests that the driver gave back, by their first sectors. This is everything that the
    /// driver does not have at the moment.
    waiting: Table<Request>,
    /// Requests that the driver has at the moment, by their first sector that is not complete yet.
    issued: Table<Request>,
    /// How many requests completed although the probe has not seen their issue.
    pub(super) unmatched: u64,
}

#[derive(Debug)]
struct Request {
    device: Number,
    rwbs: Rwbs,
    /// The first sector that is not complete yet.
    sector: u64,
    /// The number of sectors that are not complete yet.
    sectors: u64,
    /// The first sector of the whole request.
    first_sector: u64,
    /// How many bytes are complete.
    done_bytes: u64,
    /// How many bytes were still incomplete at the last issue.
    issued_bytes: u64,
    seen_ns: u64,
    queued_ns: Option<u64>,
    /// When the driver first received the request.
    issued_ns: Option<u64>,
    /// Whether `issued_ns` may belong to another request. This stays true if the driver gives the request
    /// back.
    is_doubtful: bool,
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

    pub(super) fn give_up(&mut self, disk: Number, before_ns: u64) {
        self.waiting.give_up(disk, before_ns);
        self.issued.give_up(disk, before_ns);
    }

    pub(super) fn dropped(&self) -> u64 {
        self.waiting.dropped + self.issued.dropped
    }

    /// Takes an event, and the owner of its thread. Returns the I/O that the event finished, if any. Ignores
    /// events beyond the last possible sector.
    pub(super) fn take(&mut self, record: &Record, owner: Owner) -> Option<Io> {
        place_of(record).1.checked_add(record.sectors.into())?;
        match record.what {
            What::BioQueue(thread) => self.queue(
                record,
                Submitter {
                    tid: record.pid,
                    thread,
                    owner,
                },
            ),
            What::Split(cut) => self.split(record, cut),
            What::BioComplete(_) => self.vanish(record),
            What::Issue(bytes) => self.issue(record, u64::from(bytes)),
            What::Requeue => self.requeue(record),
            What::Complete(error) => return self.complete(record, error),
        }
        None
    }

    pub(super) fn in_flight(&self) -> impl Iterator<Item = InFlight> {
        let issued = self.issued.iter().map(|request| (request, true));
        let waiting = self.waiting.iter().map(|request| (request, false));
        issued
            .chain(waiting)
            .filter_map(|((request, doubtful), issued)| {
                request.in_flight(self.start, issued, doubtful)
            })
    }

    /// Remembers a bio. The empty bio of a caller that waits for a flush is ignored, because it does not
    /// become an I/O.
    fn queue(&mut self, record: &Record, submitter: Submitter) {
        if record.sectors > 0 {
            self.wait(Request {
                queued_ns: Some(record.at_ns),
                submitter: Some(submitter),
                ..Request::new(record)
            });
        }
    }

    fn wait(&mut self, request: Request) {
        self.waiting.add((request.device, request.sector), request);
    }

    /// Splits a waiting bio. Both parts keep the time at which the whole bio was queued.
    fn split(&mut self, record: &Record, cut: u64) {
        let is_cut = |waiting: &Request| {
            waiting.does(record) && (waiting.sector + 1..waiting.end()).contains(&cut)
        };
        if let Some(mut part) = self.waiting.remove(place_of(record), is_cut) {
            let rest = Request {
                sector: cut,
                sectors: part.end() - cut,
                first_sector: cut,
                submitter: part.submitter.clone(),
                ..part
            };
            part.sectors -= rest.sectors;
            self.wait(part);
            self.wait(rest);
        }
    }

    /// Forgets a bio that has ended without a request. Other bios end with their requests.
    fn vanish(&mut self, record: &Record) {
        let sectors = u64::from(record.sectors);
        let same = |waiting: &Request| waiting.sectors == sectors && waiting.does(record);
        self.waiting.remove(place_of(record), same);
    }

    fn issue(&mut self, record: &Record, bytes: u64) {
        let sectors = u64::from(record.sectors);
        let mut request = self.take_waiting(record);
        request.rwbs = record.rwbs;
        request.sectors = sectors;
        request.issued_bytes = bytes;
        request.seen_ns = record.at_ns;
        request.issued_ns = request.issued_ns.or(Some(record.at_ns));
        self.issued.add(place_of(record), request);
    }

    fn requeue(&mut self, record: &Record) {
        let sectors = u64::from(record.sectors);
        let same = |issued: &Request| issued.sectors == sectors && issued.does(record);
        let given_back = self.issued.remove(place_of(record), same);
        let mut request = given_back.unwrap_or_else(|| self.take_waiting(record));
        request.is_doubtful |= self.issued.is_doubtful(&request);
        request.requeued += 1;
        request.seen_ns = record.at_ns;
        self.wait(request);
    }

    fn complete(&mut self, record: &Record, error: i32) -> Option<Io> {
        let Some(mut request) = self.take_issued(record) else {
            self.end_unissued(record);
            return None;
        };
        // The end may belong to another request, which the probe never saw, so the pairing does not use it.
        if request.is_doubtful || self.issued.is_doubtful(&request) {
            self.issued.dropped += 1;
            return None;
        }
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

    /// Takes out the issued request whose remaining sectors are exactly the event's or, if there is none, a
    /// request that begins with the event's sectors.
    fn take_issued(&mut self, record: &Record) -> Option<Request> {
        let sectors = u64::from(record.sectors);
        let place = place_of(record);
        let all = |issued: &Request| issued.sectors == sectors && issued.does(record);
        let some = |issued: &Request| sectors > 0 && issued.does(record);
        self.issued
            .remove(place, all)
            .or_else(|| self.issued.remove(place, some))
    }

    /// Ends a request that was not issued, or whose issue the probe did not see. Such a request does not
    /// count as an I/O.
    fn end_unissued(&mut self, record: &Record) {
        self.take_waiting(record);
        if record.sectors > 0 || record.rwbs.operation() == b'F' {
            self.unmatched += 1;
        }
    }

    /// The request for the event's sectors, made from the bios that wait there. If there are sectors for
    /// which no bio waits, the probe has not seen their bio.
    fn take_waiting(&mut self, record: &Record) -> Request {
        let mut left = u64::from(record.sectors);
        let first = self.take_part(record, left);
        let mut request = first.unwrap_or_else(|| Request::new(record));
        left -= request.sectors;
        while left > 0 {
            let part = self.take_part(record, left);
            let part = part.or_else(|| self.take_discard(record, left));
            left -= part.as_ref().map_or(left, |part| part.sectors);
            request.absorb(part.unwrap_or_else(|| Request::new(record)));
        }
        // A flush has no bios, and a search for its bios would scan all waiting bios.
        if request.queued_ns.is_none() && record.sectors > 0 {
            self.forget_strays(record);
        }
        request
    }

    /// Takes a waiting bio for the last `left` sectors of a request: the oldest bio that begins with the
    /// first of these sectors. If `left` is the whole request, the pairing prefers a bio with exactly its
    /// sectors. A request of one bio thus needs one look-up, and a request of n bios needs n + 1. A doubtful
    /// bio may belong to another request, so the pairing treats it as not seen.
    fn take_part(&mut self, record: &Record, left: u64) -> Option<Request> {
        let (device, sector) = place_of(record);
        let sectors = u64::from(record.sectors);
        let place = (device, sector + sectors - left);
        let all = |waiting: &Request| waiting.sectors == left && waiting.does(record);
        let whole = if left == sectors {
            self.waiting.remove(place, all)
        } else {
            None
        };
        let fits =
            |waiting: &Request| (1..=left).contains(&waiting.sectors) && waiting.does(record);
        let part = whole.or_else(|| self.waiting.remove(place, fits));
        part.filter(|part| !self.waiting.is_doubtful(part))
    }

    /// Takes any waiting discard of at most `left` sectors. Discards are rare enough for a scan of all
    /// waiting bios.
    fn take_discard(&mut self, record: &Record, left: u64) -> Option<Request> {
        if record.rwbs.operation() != b'D' {
            return None;
        }
        let fits = |waiting: &Request| waiting.sectors <= left && waiting.does(record);
        let part = self.waiting.remove_anywhere(fits);
        part.filter(|part| !self.waiting.is_doubtful(part))
    }

    /// Forgets waiting bios that have joined a request whose first bio the probe did not see.
    fn forget_strays(&mut self, record: &Record) {
        let is_inside = |waiting: &Request| {
            waiting.does(record)
                && waiting.sector > record.sector
                && waiting.end() <= end_of(record)
        };
        while self.waiting.remove_anywhere(is_inside).is_some() {}
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
            is_doubtful: false,
            error: 0,
            merged: 0,
            requeued: 0,
            submitter: None,
        }
    }

    /// Whether an event may belong to this request. Only the letter of the operation must match, because the
    /// other letters differ between a bio and its request, and between a flush's request and its parts.
    fn does(&self, record: &Record) -> bool {
        self.device == record.device && self.rwbs.operation() == record.rwbs.operation()
    }

    /// The sector after the request's last sector.
    fn end(&self) -> u64 {
        self.sector + self.sectors
    }

    /// Joins a part to this request. The joined request has the earlier of the two beginnings; an unseen
    /// beginning counts as earlier than a seen beginning.
    fn absorb(&mut self, part: Request) {
        if part.queued_ns < self.queued_ns {
            self.queued_ns = part.queued_ns;
            self.submitter = part.submitter;
        }
        self.issued_ns = match (self.issued_ns, part.issued_ns) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        self.is_doubtful |= part.is_doubtful;
        self.first_sector = self.first_sector.min(part.first_sector);
        self.done_bytes += part.done_bytes;
        self.merged += 1 + part.merged;
        self.requeued += part.requeued;
    }

    fn finish(self, at_ns: u64, start: Start) -> Option<Io> {
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

    fn in_flight(&self, start: Start, issued: bool, doubtful: bool) -> Option<InFlight> {
        let queued_ns = self.queued_ns.filter(|_| start == Start::Queue);
        Some(InFlight {
            device: self.device,
            rwbs: self.rwbs,
            sector: self.first_sector,
            bytes: if issued {
                self.done_bytes + self.issued_bytes
            } else {
                self.sectors * SECTOR
            },
            since_ns: queued_ns.or(self.issued_ns)?,
            issued_ns: self.issued_ns.filter(|_| issued),
            doubtful,
            submitter: self.submitter.clone(),
        })
    }
}

impl Seen for Request {
    fn seen_ns(&self) -> u64 {
        self.seen_ns
    }
}

/// The sector after the last sector of an event.
pub(super) fn end_of(record: &Record) -> u64 {
    record.sector.wrapping_add(u64::from(record.sectors))
}

/// The place of an event. A request without sectors is issued at sector 0 and completed at −1.
fn place_of(record: &Record) -> Sector {
    let sector = if record.sector == u64::MAX {
        0
    } else {
        record.sector
    };
    (record.device, sector)
}
