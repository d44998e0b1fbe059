//! A naive block device. It makes the events of random requests, and knows the true facts about these
//! requests.
//!
//! The device never has two requests for the same sectors of a disk at once, because events could not
//! distinguish the two requests. Another test makes several requests for the same sectors, and asserts less
//! about them.

use std::collections::VecDeque;
use std::ops::Range;

use proptest::prelude::*;

use super::history::disk;
use crate::device::{Layer, Number};
use crate::io::{Comm, Io, Owner, Process, Rwbs, Submitter};
use crate::options::Start;
use crate::pairing::Pairing;
use crate::record::{Record, What};

const DISKS: [Number; 2] = [
    Number { major: 8, minor: 0 },
    Number {
        major: 8,
        minor: 16,
    },
];

const LETTERS: [&str; 4] = ["R", "WS", "W", "DS"];

/// A step that a device takes if it can: an action, and the request to which the action applies.
#[derive(Clone, Copy, Debug)]
struct Step {
    action: u8,
    pick: usize,
    place: u64,
    sectors: u32,
}

/// The true facts about a request, which the pairing must find.
#[derive(Clone, Debug)]
struct Truth {
    io: Io,
    sector: u64,
    left: u32,
    issues: u32,
    /// How many entries of the pairing wait for this request to be issued: its bios, and requests that the
    /// driver returned.
    parts: usize,
}

/// The device, with its requests in flight and its finished requests.
#[derive(Default)]
struct Naive {
    now_ns: u64,
    waiting: Vec<Truth>,
    issued: Vec<Truth>,
    finished: Vec<Io>,
    events: Vec<Record>,
}

impl Naive {
    fn step(&mut self, step: Step) {
        self.now_ns += 1 + step.place;
        match step.action {
            0..=3 => self.queue(step),
            4 => self.merge_bio(step, true),
            5 => self.merge_bio(step, false),
            6 => self.merge_requests(),
            7..=9 => self.issue(step),
            10 => self.requeue(step),
            11 => self.complete_part(step),
            12..=14 => self.complete(step),
            15 => self.split(step),
            16 => self.refuse(step),
            _ => self.flush(step),
        }
    }

    fn event(&mut self, truth: &Truth, sector: u64, sectors: u32, what: What) {
        let pid = truth
            .io
            .submitter
            .as_ref()
            .map_or(0, |submitter| submitter.tid);
        let (device, rwbs, at_ns) = (truth.io.device, truth.io.rwbs, self.now_ns);
        self.events.push(Record {
            at_ns,
            device,
            sector,
            sectors,
            rwbs,
            pid,
            what,
        });
    }

    fn is_free(&self, device: Number, from: u64, sectors: u32) -> bool {
        let mut taken = self.waiting.iter().chain(&self.issued);
        let until = from + u64::from(sectors);
        !taken.any(|truth| {
            let end = truth.sector + u64::from(truth.left);
            truth.io.device == device && from < end && truth.sector < until
        })
    }

    fn queue(&mut self, step: Step) {
        let device = DISKS[step.pick % 2];
        let sector = step.place * 8;
        if !self.is_free(device, sector, step.sectors) {
            return;
        }
        let rwbs = Rwbs::new(LETTERS[step.pick % 4].as_bytes());
        let thread = Comm::new(b"a b-c");
        let submitter = Submitter {
            tid: step.pick as i32,
            thread,
            owner: owner_of(step.pick as i32),
        };
        let io = Io {
            device,
            rwbs,
            sector,
            bytes: 0,
            queued_ns: Some(self.now_ns),
            issued_ns: 0,
            completed_ns: 0,
            error: 0,
            merged: 0,
            requeued: 0,
            submitter: Some(submitter),
        };
        let truth = Truth {
            io,
            sector,
            left: step.sectors,
            issues: 0,
            parts: 1,
        };
        self.event(&truth, sector, step.sectors, What::BioQueue(thread));
        self.waiting.push(truth);
    }

    fn merge_bio(&mut self, step: Step, back: bool) {
        let Some(index) = pick(&self.waiting, step) else {
            return;
        };
        let mut truth = self.waiting[index].clone();
        let sectors = step.sectors;
        let sector = match back {
            true => truth.sector + u64::from(truth.left),
            false if truth.sector < u64::from(sectors) => return,
            false => truth.sector - u64::from(sectors),
        };
        if !self.is_free(truth.io.device, sector, sectors) {
            return;
        }
        self.event(&truth, sector, sectors, What::BioQueue(Comm::default()));
        truth.sector = truth.sector.min(sector);
        truth.io.sector = truth.io.sector.min(sector);
        truth.left += sectors;
        truth.io.merged += 1;
        truth.parts += 1;
        self.waiting[index] = truth;
    }

    fn merge_requests(&mut self) {
        let waiting = &self.waiting;
        let joins = |one: &Truth, two: &Truth| {
            one.io.device == two.io.device
                && one.io.rwbs.operation() == two.io.rwbs.operation()
                && one.sector + u64::from(one.left) == two.sector
        };
        let pairs =
            (0..waiting.len()).flat_map(|one| (0..waiting.len()).map(move |two| (one, two)));
        let Some((one, two)) = pairs
            .into_iter()
            .find(|&(a, b)| joins(&waiting[a], &waiting[b]))
        else {
            return;
        };
        let next = self.waiting[two].clone();
        let first = &mut self.waiting[one];
        first.left += next.left;
        first.io.sector = first.io.sector.min(next.io.sector);
        first.io.bytes += next.io.bytes;
        first.io.merged += 1 + next.io.merged;
        first.io.requeued += next.io.requeued;
        first.parts += next.parts;
        if next.io.queued_ns < first.io.queued_ns {
            first.io.queued_ns = next.io.queued_ns;
            first.io.submitter = next.io.submitter.clone();
        }
        if next.issues > 0 && (first.issues == 0 || next.io.issued_ns < first.io.issued_ns) {
            first.io.issued_ns = next.io.issued_ns;
        }
        first.issues += next.issues;
        self.waiting.remove(two);
    }

    fn issue(&mut self, step: Step) {
        let Some(index) = pick(&self.waiting, step) else {
            return;
        };
        let mut truth = self.waiting.remove(index);
        if truth.issues == 0 {
            truth.io.issued_ns = self.now_ns;
        }
        truth.issues += 1;
        truth.parts = 1;
        self.event(
            &truth,
            truth.sector,
            truth.left,
            What::Issue(truth.left * 512),
        );
        self.issued.push(truth);
    }

    fn requeue(&mut self, step: Step) {
        let Some(index) = pick(&self.issued, step) else {
            return;
        };
        let mut truth = self.issued.remove(index);
        truth.io.requeued += 1;
        self.event(&truth, truth.sector, truth.left, What::Requeue);
        self.waiting.push(truth);
    }

    fn complete_part(&mut self, step: Step) {
        let Some(index) = pick(&self.issued, step) else {
            return;
        };
        let mut truth = self.issued[index].clone();
        if step.sectors < truth.left {
            self.event(&truth, truth.sector, step.sectors, What::Complete(0));
            truth.sector += u64::from(step.sectors);
            truth.left -= step.sectors;
            truth.io.bytes += u64::from(step.sectors) * 512;
            self.issued[index] = truth;
        }
    }

    fn complete(&mut self, step: Step) {
        let Some(index) = pick(&self.issued, step) else {
            return;
        };
        let mut truth = self.issued.remove(index);
        truth.io.error = [0, 0, 0, 5][step.pick % 4];
        self.event(
            &truth,
            truth.sector,
            truth.left,
            What::Complete(-truth.io.error),
        );
        truth.io.bytes += u64::from(truth.left) * 512;
        truth.io.completed_ns = self.now_ns;
        self.finished.push(truth.io);
    }

    /// A bio that has neither joined another bio nor become a request.
    fn pick_bio(&self, step: Step) -> Option<usize> {
        pick(&self.waiting, step)
            .filter(|&index| self.waiting[index].parts == 1 && self.waiting[index].issues == 0)
    }

    fn split(&mut self, step: Step) {
        let Some(index) = self.pick_bio(step) else {
            return;
        };
        let mut rest = self.waiting[index].clone();
        if step.sectors < rest.left {
            rest.sector += u64::from(step.sectors);
            rest.io.sector = rest.sector;
            rest.left -= step.sectors;
            let part = &mut self.waiting[index];
            part.left = step.sectors;
            let part = part.clone();
            self.event(&part, part.sector, 0, What::Split(rest.sector));
            self.waiting.push(rest);
        }
    }

    fn refuse(&mut self, step: Step) {
        if let Some(index) = self.pick_bio(step) {
            let bio = self.waiting.remove(index);
            self.event(&bio, bio.sector, bio.left, What::BioComplete(11));
        }
    }

    /// A caller waits first for a flush, which ends at once, and then for its own request.
    fn flush(&mut self, step: Step) {
        let device = DISKS[step.pick % 2];
        let rwbs = Rwbs::new(b"FF");
        let (issued_ns, completed_ns) = (self.now_ns, self.now_ns + 3);
        let io = Io {
            device,
            rwbs,
            sector: 0,
            bytes: 0,
            queued_ns: None,
            issued_ns,
            completed_ns,
            error: 0,
            merged: 0,
            requeued: 0,
            submitter: None,
        };
        let mut truth = Truth {
            io: io.clone(),
            sector: 0,
            left: 0,
            issues: 1,
            parts: 0,
        };
        truth.io.rwbs = Rwbs::new(b"FWS");
        self.event(&truth, 0, 0, What::BioQueue(Comm::default()));
        truth.io.rwbs = rwbs;
        self.event(&truth, 0, 0, What::Issue(0));
        self.now_ns = completed_ns;
        self.event(&truth, u64::MAX, 0, What::Complete(0));
        truth.io.rwbs = Rwbs::new(b"WS");
        self.event(&truth, step.place * 8, 0, What::Complete(0));
        self.finished.push(io);
    }
}

/// Each thread has its own process and cgroup.
fn owner_of(tid: i32) -> Owner {
    Owner {
        process: Some(Process {
            pid: -tid,
            name: None,
        }),
        cgroup: Some(format!("/{tid}").into()),
    }
}

fn pick(among: &[Truth], step: Step) -> Option<usize> {
    step.pick.checked_rem(among.len())
}

fn steps(actions: std::ops::Range<u8>) -> impl Strategy<Value = Vec<Step>> {
    let step = (actions, 0..64_usize, 0..64_u64, 1..24_u32);
    let step = step.prop_map(|(action, pick, place, sectors)| Step {
        action,
        pick,
        place,
        sectors,
    });
    proptest::collection::vec(step, 1..400)
}

/// Whether a step queues no discard. If the probe has not seen a bio, a discard may get the time of another
/// discard, because no event says which discards are merged.
fn is_no_discard(step: &Step) -> bool {
    !(matches!(step.action, 0..=3) && LETTERS[step.pick % 4] == "DS")
}

fn pairing(start: Start) -> Pairing {
    Pairing::new(&DISKS.map(|number| disk(number, Layer::Request)), start)
}

/// An event that went to the buffer of a CPU, which may have lost it.
struct Told<'a> {
    record: &'a Record,
    cpu: u8,
    is_lost: bool,
}

/// The time between a CPU's last event and its next event, if events between the two were lost. The real
/// reader finds out about a loss in the same way.
fn gap(last_ns: u64, after: &[Told<'_>], cpu: u8) -> Option<Range<u64>> {
    let mut own = after.iter().filter(|event| event.cpu == cpu).peekable();
    own.next_if(|event| event.is_lost)?;
    let next = own.find(|event| !event.is_lost);
    Some(last_ns..next.map_or(u64::MAX, |event| event.record.at_ns))
}

proptest! {
    #[test]
    fn every_io_comes_out_once_with_its_moments(steps in steps(0..19)) {
        let mut device = Naive::default();
        let mut pairing = pairing(Start::Queue);
        let mut finished = Vec::new();
        for step in steps {
            device.step(step);
            for record in device.events.drain(..) {
                finished.extend(pairing.take(&record, owner_of(record.pid)));
            }
            prop_assert_eq!(&finished, &device.finished);
            let waiting = pairing.in_flight().filter(|io| io.issued_ns.is_none()).count();
            let issued = pairing.in_flight().filter(|io| io.issued_ns.is_some()).count();
            prop_assert_eq!((waiting, issued), (device.waiting.iter().map(|truth| truth.parts).sum::<usize>(), device.issued.len()));
        }
        prop_assert_eq!((pairing.unmatched(), pairing.dropped()), (0, 0));
    }

    /// Pairs only the events after some point of a history. The pairing must report the true facts about each
    /// request whose queueing it saw.
    #[test]
    fn a_watch_may_begin_in_the_middle(steps in steps(0..19), skipped in 0..200_usize) {
        let mut device = Naive::default();
        steps.into_iter().filter(is_no_discard).for_each(|step| device.step(step));
        let begin = skipped.min(device.events.len());
        let began_ns = device.events.get(begin).map_or(u64::MAX, |record| record.at_ns);
        let mut finished = Vec::new();
        let mut pairing = pairing(Start::Queue);
        for record in &device.events[begin..] {
            finished.extend(pairing.take(record, owner_of(record.pid)));
        }
        let queued_since = |io: &Io| io.queued_ns.is_some_and(|ns| ns >= began_ns);
        let seen: Vec<Io> = device.finished.iter().filter(|io| queued_since(io)).cloned().collect();
        let told: Vec<Io> = finished.iter().filter(|io| io.queued_ns.is_some()).cloned().collect();
        prop_assert_eq!(told, seen);
        prop_assert!(finished.iter().all(|io| io.issued_ns >= began_ns));
    }

    #[test]
    fn twins_end_in_the_order_of_their_beginning(steps in proptest::collection::vec(any::<bool>(), 1..200)) {
        let mut pairing = pairing(Start::Issue);
        let (mut alive, mut finished) = (VecDeque::new(), Vec::new());
        for (at_ns, begins) in (1..).zip(steps) {
            let what = if begins { What::Issue(4096) } else { What::Complete(0) };
            let rwbs = Rwbs::new(b"R");
            let record = Record { at_ns, device: DISKS[0], sector: 8, sectors: 8, rwbs, pid: 0, what };
            finished.extend(pairing.take(&record, owner_of(record.pid)));
            let ended = if begins { alive.push_back(at_ns); None } else { alive.pop_front() };
            let last = finished.last().filter(|io| io.completed_ns == at_ns);
            prop_assert_eq!(last.map(|io| io.issued_ns), ended);
        }
    }

    /// Drops random events. If the pairing saw every event of an I/O, and no event was lost during the I/O,
    /// the pairing must report the I/O with the right times. It must report no I/O twice, and none with the
    /// times of another I/O.
    #[test]
    fn losses_spoil_only_what_was_lost(
        steps in steps(0..15),
        cpus in proptest::collection::vec(0..2_u8, 1..20),
        losses in proptest::collection::vec((0..600_usize, 1..30_usize, 0..2_u8), 0..5),
    ) {
        let mut device = Naive::default();
        let simple = |step: &Step| matches!(step.action, 0..=3 | 7..=9 | 12..=14) && is_no_discard(step);
        steps.into_iter().filter(simple).for_each(|step| device.step(step));
        let events: Vec<Told<'_>> = device.events.iter().enumerate().map(|(index, record)| {
            let cpu = cpus[index % cpus.len()];
            let is_lost = losses.iter().any(|&(from, many, loser)| loser == cpu && (from..from + many).contains(&index));
            Told { record, cpu, is_lost }
        }).collect();
        let (mut pairing, mut finished, mut seen) = (pairing(Start::Queue), Vec::new(), Vec::new());
        let mut gaps: Vec<Range<u64>> = (0..2).filter_map(|cpu| gap(0, &events, cpu)).collect();
        gaps.iter().for_each(|gap| pairing.lost(gap.end));
        for (index, event) in events.iter().enumerate().filter(|(_, event)| !event.is_lost) {
            seen.push(event.record.at_ns);
            finished.extend(pairing.take(event.record, owner_of(event.record.pid)));
            if let Some(gap) = gap(event.record.at_ns, &events[index + 1..], event.cpu) {
                pairing.lost(gap.end);
                gaps.push(gap);
            }
        }
        prop_assert!(finished.is_sorted_by(|one, two| one.completed_ns < two.completed_ns));
        let saw = |ns: u64| seen.binary_search(&ns).is_ok();
        for io in &device.finished {
            let begun_ns = io.queued_ns.unwrap_or(io.issued_ns);
            let spared = !gaps.iter().any(|gap| gap.start < io.completed_ns && begun_ns < gap.end);
            if spared && io.queued_ns.is_some_and(saw) && saw(io.issued_ns) && saw(io.completed_ns) {
                prop_assert!(finished.contains(io), "{:?} is missing", io);
            }
        }
        for io in &finished {
            let truth = device.finished.iter().find(|truth| truth.completed_ns == io.completed_ns);
            prop_assert_eq!(truth.map(|truth| truth.sector), Some(io.sector));
            prop_assert_eq!(truth.map(|truth| truth.issued_ns), Some(io.issued_ns));
            if io.queued_ns.is_some() {
                prop_assert_eq!(truth.map(|truth| truth.queued_ns), Some(io.queued_ns));
            }
        }
    }
}
