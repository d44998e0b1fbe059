//! A naive model of the queue: one list, which every decision searches completely.

use super::super::{Limits, Queued};
use crate::histogram::Histogram;
use crate::pool::{Class, ClassStats, Traffic};
use crate::zio::Op;
use alloc::boxed::Box;
use alloc::vec::Vec;

#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) io: Queued,
    pub(super) queued: u64,
    /// The I/O's order of arrival in its present class.
    arrival: u64,
}

#[derive(Debug)]
pub(super) struct Issued {
    pub(super) class: Class,
    pub(super) members: Vec<Waiting>,
    pub(super) length: u64,
    at: u64,
}

#[derive(Debug)]
pub(super) struct Naive {
    pub(super) waiting: Vec<Waiting>,
    pub(super) classes: [ClassStats; 5],
    pub(super) apart: Traffic,
    pub(super) joined: Traffic,
    arrivals: u64,
    last_class: usize,
    last_end: u64,
}

impl Naive {
    pub(super) fn new() -> Naive {
        Naive {
            waiting: Vec::new(),
            classes: Default::default(),
            apart: Traffic::default(),
            joined: Traffic::default(),
            arrivals: 0,
            last_class: 0,
            last_end: 0,
        }
    }

    pub(super) fn push(&mut self, now: u64, io: Queued) {
        self.arrivals += 1;
        self.waiting.push(Waiting {
            io,
            queued: now,
            arrival: self.arrivals,
        });
        self.classes[io.class as usize].pending += 1;
    }

    pub(super) fn pick(&mut self, now: u64, limits: &Limits, async_max: u32) -> Option<Issued> {
        let class = self.class_to_issue(limits, async_max)?;
        let picked = self.in_turn(class);
        let members = self.joined_with(picked, limits);
        self.waiting
            .retain(|one| members.iter().all(|member| member.io.tag != one.io.tag));
        for member in &members {
            self.classes[member.io.class as usize].pending -= 1;
        }
        self.classes[class as usize].active += 1;
        let (first, last) = (members[0].io, members[members.len() - 1].io);
        self.last_end = last.offset + u64::from(last.length);
        let length = self.last_end - first.offset;
        Some(Issued {
            class,
            members,
            length,
            at: now,
        })
    }

    pub(super) fn done(&mut self, now: u64, issued: &Issued, well: bool) {
        let stats = &mut self.classes[issued.class as usize];
        stats.active -= 1;
        let first = issued.members[0];
        if !well || first.io.op == Op::Flush {
            return;
        }
        count(&mut self.joined, first.io.op, issued.length);
        for member in &issued.members {
            count(&mut self.apart, member.io.op, member.io.length.into());
        }
        record(&mut stats.total_wait, now - first.queued);
        record(&mut stats.queue_wait, issued.at - first.queued);
        record(&mut stats.disk_wait, now - issued.at);
        match issued.members.len() {
            1 => record(&mut stats.alone, issued.length),
            _ => record(&mut stats.joined, issued.length),
        }
    }

    pub(super) fn promote(&mut self, tag: u32, to: Class) {
        let one = self.waiting.iter_mut().find(|one| one.io.tag == tag);
        let Some(one) = one.filter(|one| one.io.class != to) else {
            return;
        };
        self.arrivals += 1;
        one.arrival = self.arrivals;
        self.classes[one.io.class as usize].pending -= 1;
        self.classes[to as usize].pending += 1;
        one.io.class = to;
    }

    fn class_to_issue(&mut self, limits: &Limits, async_max: u32) -> Option<Class> {
        let active: u32 = self.classes.iter().map(|class| class.active).sum();
        if self.waiting.is_empty() || active >= limits.max_active {
            return None;
        }
        let mut max = limits.max;
        max[Class::AsyncWrite as usize] = async_max;
        let has_below = |class: usize, limit: u32| {
            let queued = self
                .waiting
                .iter()
                .any(|one| one.io.class as usize == class);
            queued && self.classes[class].active < limit
        };
        for step in 1..=5 {
            let class = (self.last_class + step) % 5;
            if has_below(class, limits.min[class]) {
                self.last_class = class;
                return Some(Class::ALL[class]);
            }
        }
        for class in Class::ALL {
            if has_below(class as usize, max[class as usize]) {
                self.last_class = class as usize;
                return Some(class);
            }
        }
        // After the last class, the first class has the next turn.
        self.last_class = 4;
        None
    }

    fn in_turn(&self, class: Class) -> Waiting {
        let of_class = || self.waiting.iter().filter(|one| one.io.class == class);
        if !matches!(class, Class::AsyncRead | Class::AsyncWrite) {
            return *of_class().min_by_key(|one| one.arrival).unwrap();
        }
        let oldest = of_class().map(|one| one.queued >> 29).min().unwrap();
        let in_bucket = || of_class().filter(|one| one.queued >> 29 == oldest);
        let by_offset = |one: &&Waiting| (one.io.offset, one.io.tag);
        let onwards = in_bucket().filter(|one| one.io.offset >= self.last_end);
        *onwards
            .min_by_key(by_offset)
            .or_else(|| in_bucket().min_by_key(by_offset))
            .unwrap()
    }

    fn joined_with(&self, picked: Waiting, limits: &Limits) -> Vec<Waiting> {
        let kind = |op: Op| match op {
            Op::Read => 0,
            Op::Write | Op::Zero => 1,
            _ => 2,
        };
        let mut members = Vec::from([picked]);
        if kind(picked.io.op) == 2 || limits.aggregation_limit == 0 {
            return members;
        }
        let mut all: Vec<Waiting> = self.waiting.clone();
        all.retain(|one| kind(one.io.op) == kind(picked.io.op));
        all.sort_by_key(|one| (one.io.offset, one.io.tag));
        let place = all
            .iter()
            .position(|one| one.io.tag == picked.io.tag)
            .unwrap();
        for below in all[..place].iter().rev() {
            if !joins(&below.io, &members[0].io, limits)
                || end(&members[members.len() - 1].io) - below.io.offset
                    > u64::from(limits.aggregation_limit)
            {
                break;
            }
            members.insert(0, *below);
        }
        for above in &all[place + 1..] {
            if !joins(&members[members.len() - 1].io, &above.io, limits)
                || end(&above.io) - members[0].io.offset > u64::from(limits.aggregation_limit)
            {
                break;
            }
            members.push(*above);
        }
        members
    }
}

fn joins(below: &Queued, above: &Queued, limits: &Limits) -> bool {
    let gap_limit = match below.op {
        Op::Read => limits.read_gap_limit,
        _ => 0,
    };
    below.op == above.op
        && end(below) <= above.offset
        && above.offset - end(below) <= u64::from(gap_limit)
}

fn end(io: &Queued) -> u64 {
    io.offset + u64::from(io.length)
}

fn count(traffic: &mut Traffic, op: Op, bytes: u64) {
    match op {
        Op::Flush => {}
        Op::Read | Op::Cache => {
            traffic.reads += 1;
            traffic.bytes_read += bytes;
        }
        _ => {
            traffic.writes += 1;
            traffic.bytes_written += bytes;
        }
    }
}

fn record(histogram: &mut Option<Box<Histogram>>, value: u64) {
    histogram.get_or_insert_default().record(value);
}
