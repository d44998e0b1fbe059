//! Compares the queue with its model in random histories.

use super::super::{Limits, PickedId, Queue, Queued};
use super::naive::{Issued, Naive};
use super::{at, op_of, queue};
use crate::pool::Class;
use crate::random::Random;
use crate::zio::{Errno, Op};
use alloc::vec::Vec;

const BLOCK: u64 = 8 << 10;

/// The queue, its model, and the I/O that both have at the disk.
struct Pair {
    random: Random,
    queue: Queue,
    naive: Naive,
    issued: Vec<(PickedId, Issued)>,
    now: u64,
    limits: Limits,
    async_max: u32,
    /// For each tag, whether it is in use.
    tags: Vec<bool>,
    /// How many blocks of the disk are used.
    blocks: u64,
    pushed: usize,
    ended: usize,
    largest: usize,
}

impl Pair {
    fn new(seed: u64, blocks: u64) -> Pair {
        let mut pair = Pair {
            random: Random::new(seed),
            queue: queue(),
            naive: Naive::new(),
            issued: Vec::new(),
            now: 0,
            limits: super::DEFAULTS,
            async_max: 10,
            tags: Vec::new(),
            blocks,
            pushed: 0,
            ended: 0,
            largest: 0,
        };
        pair.change_limits();
        pair
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn step(&mut self) {
        self.now += match self.below(50) {
            0 => self.below(1 << 29),
            _ => self.below(20_000_000),
        };
        let backlog = self.naive.waiting.len() as u64;
        match self.below(40) {
            0 if self.below(4) == 0 => self.change_limits(),
            1 => self.promote(),
            2 if backlog < 100 => self.push_batch(),
            4..20 if backlog < 150 => self.push(),
            20..30 => self.done(),
            _ => self.pick(),
        }
        self.compare();
    }

    fn change_limits(&mut self) {
        let mut some = |bound| core::array::from_fn(|_| self.random.below(bound) as u32);
        let (min, max) = (some(3), some(6));
        self.limits = Limits {
            max_active: 1 + self.below(20) as u32,
            min,
            max,
            aggregation_limit: [0, 32 << 10, 128 << 10, 1 << 20][self.below(4) as usize],
            read_gap_limit: [0, 8 << 10, 32 << 10][self.below(3) as usize],
        };
        self.async_max = self.below(11) as u32;
    }

    fn io(&mut self, class: Class) -> Queued {
        let tag = self.tags.iter().position(|used| !used);
        let tag = tag.unwrap_or_else(|| {
            self.tags.push(false);
            self.tags.len() - 1
        });
        self.tags[tag] = true;
        self.pushed += 1;
        let op = match (class, self.below(10)) {
            (Class::SyncWrite, 0) => Op::Flush,
            (Class::SyncWrite | Class::AsyncWrite, 1 | 2) => Op::Zero,
            (Class::AsyncRead, 3) => Op::Cache,
            _ => op_of(class),
        };
        let length = match self.below(20) {
            0 => BLOCK / 2,
            1 => 2 * BLOCK,
            2 => 20 * BLOCK,
            _ => BLOCK,
        };
        Queued {
            class,
            op,
            offset: self.below(self.blocks) * BLOCK,
            length: length as u32,
            tag: tag as u32,
            alone: false,
            beside: false,
        }
    }

    fn push(&mut self) {
        let class = Class::ALL[self.random.below(5) as usize];
        let io = self.io(class);
        self.queue.push(at(self.now), io);
        self.naive.push(self.now, io);
    }

    fn push_batch(&mut self) {
        let class = Class::ALL[self.random.below(5) as usize];
        let mut batch: Vec<Queued> = (0..self.below(40)).map(|_| self.io(class)).collect();
        batch.iter().for_each(|io| self.queue.enlist(*io));
        self.queue.push_batch(at(self.now));
        batch.sort_by_key(|io| (io.offset, io.tag));
        for io in batch {
            self.naive.push(self.now, io);
        }
    }

    fn pick(&mut self) {
        let (limits, async_max) = (self.limits, self.async_max);
        let before = self.naive.classes.clone();
        let picked = self.queue.pick(at(self.now), &limits, async_max);
        let expected = self.naive.pick(self.now, &limits, async_max);
        assert_eq!(picked.is_some(), expected.is_some());
        let Some((picked, expected)) = picked.zip(expected) else {
            return;
        };
        let members: Vec<_> = self.queue.members(picked.id).collect();
        let like = |(one, other): (&super::super::Member, &super::naive::Waiting)| {
            let io = &other.io;
            let fields = (one.tag, one.offset, one.length, one.queued);
            fields == (io.tag, io.offset, io.length, at(other.queued))
        };
        assert_eq!(members.len(), expected.members.len());
        assert!(members.iter().zip(&expected.members).all(like));
        assert_eq!(picked.count as usize, members.len());
        assert_eq!(
            (picked.class, picked.op),
            (expected.class, expected.members[0].io.op)
        );
        assert_eq!(picked.offset, members[0].offset);
        assert_eq!(u64::from(picked.length), expected.length);
        self.check_limits(&before, &expected);
        self.largest = self.largest.max(members.len());
        self.issued.push((picked.id, expected));
    }

    /// Checks that a picked I/O obeys the limits, independently of the model.
    fn check_limits(&self, before: &[crate::pool::ClassStats; 5], picked: &Issued) {
        let active: u32 = before.iter().map(|class| class.active).sum();
        assert!(active < self.limits.max_active);
        let class = picked.class as usize;
        let max = match picked.class {
            Class::AsyncWrite => self.async_max,
            _ => self.limits.max[class],
        };
        assert!(before[class].active < max.max(self.limits.min[class]));
        let single = picked.members.len() == 1;
        assert!(single || picked.length <= u64::from(self.limits.aggregation_limit));
        for pair in picked.members.windows(2) {
            let end = pair[0].io.offset + u64::from(pair[0].io.length);
            let gap = pair[1].io.offset.checked_sub(end).unwrap();
            let reads = u64::from(pair[0].io.op == Op::Read);
            assert!(gap <= reads * u64::from(self.limits.read_gap_limit));
        }
    }

    fn done(&mut self) {
        if self.issued.is_empty() {
            return;
        }
        let place = self.below(self.issued.len() as u64) as usize;
        let (id, issued) = self.issued.swap_remove(place);
        let outcome = match self.below(10) {
            0 => Err(Errno::Io),
            _ => Ok(()),
        };
        self.queue.done(at(self.now), id, outcome);
        self.naive.done(self.now, &issued, outcome.is_ok());
        for member in &issued.members {
            self.end(member.io.tag);
        }
    }

    fn end(&mut self, tag: u32) {
        assert!(core::mem::take(&mut self.tags[tag as usize]));
        self.ended += 1;
    }

    /// Any tag, including tags at the disk and unused ones.
    fn tag(&mut self) -> u32 {
        self.random.below(self.tags.len() as u64 + 1) as u32
    }

    fn promote(&mut self) {
        let tag = self.tag();
        let one = self.naive.waiting.iter().find(|one| one.io.tag == tag);
        let to = match one.map(|one| one.io.class) {
            Some(Class::AsyncRead) => Class::SyncRead,
            Some(Class::SyncRead) => Class::AsyncRead,
            _ => Class::SyncWrite,
        };
        self.queue.promote(tag, to);
        self.naive.promote(tag, to);
    }

    fn compare(&self) {
        let now = |class: &crate::pool::ClassStats| (class.pending, class.active);
        let stats = &self.queue.stats().classes;
        assert!(stats.iter().map(now).eq(self.naive.classes.iter().map(now)));
        assert_eq!(self.queue.apart(), self.naive.apart);
        assert_eq!(self.queue.joined(), self.naive.joined);
    }

    /// Ends all I/O, and compares the counters of the queue and its model.
    fn finish(mut self) {
        self.limits = super::DEFAULTS;
        self.async_max = 10;
        while self.ended < self.pushed {
            self.now += 1_000_000;
            self.pick();
            self.done();
        }
        for (one, other) in self.queue.stats().classes.iter().zip(&self.naive.classes) {
            assert_eq!(one.total_wait, other.total_wait);
            assert_eq!(one.queue_wait, other.queue_wait);
            assert_eq!(one.disk_wait, other.disk_wait);
            assert_eq!(one.alone, other.alone);
            assert_eq!(one.joined, other.joined);
        }
        assert!(!self.tags.contains(&true) && self.largest > 3);
    }
}

#[test]
fn it_agrees_with_its_model_over_random_histories() {
    for (seed, blocks) in [(1, 40), (2, 40), (3, 200), (4, 1_000)] {
        let mut pair = Pair::new(seed, blocks);
        for _ in 0..60_000 {
            pair.step();
        }
        pair.finish();
    }
}
