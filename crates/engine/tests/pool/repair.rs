//! Tests mirrors after power cuts and failures of single sides. A block must not change between reads until a
//! client writes it, flushed data must be there, and in the end the sides must hold the same bytes.

use std::collections::BTreeSet;

use dashpot_engine::pool::{Layout, MirrorStats};
use dashpot_engine::{Errno, Instant, Op, PoolId, Random, ZioId};

use crate::bytes::policies;
use crate::machine::Machine;

const BLOCK: usize = 1 << 10;
/// The number of blocks of the volume. In a pool of one mirror, they fill two regions of 1 MiB on each side.
const BLOCKS: usize = 2_048;
/// The blocks that the test uses, at and near the ends of the regions.
const USED: [usize; 6] = [0, 1, 3, 1_023, 1_024, 2_047];

/// The maximum number of bytes that the repair copies at a time.
const PIECE: u64 = 128 << 10;

/// A mirror and a model of it. The model knows which contents each used block may hold; a content is named by
/// its last byte.
struct Run {
    machine: Machine,
    random: Random,
    may_hold: Vec<BTreeSet<u8>>,
    /// The contents that each used block may hold after a power cut.
    may_survive: Vec<BTreeSet<u8>>,
    stamp: u8,
    members: &'static [usize],
    layout: Layout,
    /// Whether a power cut also ends the daemon, which then starts again from its durable record.
    restarts: bool,
}

impl Run {
    fn new(members: &'static [usize], layout: Layout, policy: usize, seed: u64) -> Run {
        let size = (BLOCK * BLOCKS) as u64;
        let policy = policies()[policy];
        let zero = BTreeSet::from([0]);
        Run {
            machine: Machine::new(members, layout, policy, BLOCK as u32, size, seed),
            random: Random::new(seed),
            may_hold: vec![zero.clone(); USED.len()],
            may_survive: vec![zero; USED.len()],
            stamp: 0,
            members,
            layout,
            restarts: false,
        }
    }

    fn ask(&mut self, op: Op, fua: bool, block: usize, data: Vec<u8>) -> Result<u8, Errno> {
        let offset = (block * BLOCK) as u64;
        self.machine.submit(ZioId(1), op, fua, offset, data);
        while self.machine.ended.is_empty() {
            assert!(self.machine.advance(), "{op:?} never ends");
        }
        let (_, outcome, data) = self.machine.ended.remove(0);
        outcome.map(|()| data.first().copied().unwrap_or(0))
    }

    /// Begins a write of a block, which may hold the new content from now on.
    fn new_content(&mut self, which: usize) -> Vec<u8> {
        self.stamp = self.stamp % 250 + 1;
        self.may_hold[which].insert(self.stamp);
        self.may_survive[which].insert(self.stamp);
        vec![self.stamp; BLOCK]
    }

    fn write(&mut self, fua: bool) {
        let which = self.random.below(USED.len() as u64) as usize;
        let data = self.new_content(which);
        let done = self.ask(Op::Write, fua, USED[which], data);
        if done.is_ok() {
            self.may_hold[which] = BTreeSet::from([self.stamp]);
            if fua {
                self.may_survive[which] = BTreeSet::from([self.stamp]);
            }
        }
    }

    /// Reads a block. If the block might hold several contents, it must from now on hold the one that was
    /// read.
    fn read(&mut self, which: usize) {
        if let Ok(found) = self.ask(Op::Read, false, USED[which], vec![0xdd; BLOCK]) {
            let may_hold = &mut self.may_hold[which];
            assert!(
                may_hold.contains(&found),
                "block {which}: {found} of {may_hold:?}"
            );
            // If reads of a side fail, another side may answer with other content.
            if !self.machine.bad_reads {
                *may_hold = BTreeSet::from([found]);
            }
        }
    }

    fn flush(&mut self) {
        if self.ask(Op::Flush, false, 0, Vec::new()).is_ok() {
            self.may_survive.clone_from(&self.may_hold);
        }
    }

    fn some_io(&mut self) {
        match self.random.below(12) {
            0 => self.flush(),
            1 => self.write(true),
            2..=6 => self.write(false),
            7..=9 => {
                let which = self.random.below(USED.len() as u64) as usize;
                self.read(which);
            }
            _ => {
                self.machine.advance();
            }
        }
    }

    /// Begins some writes, and cuts the power before they have ended.
    fn crash(&mut self) {
        for id in 2..2 + self.random.below(4) as u32 {
            let which = self.random.below(USED.len() as u64) as usize;
            let data = self.new_content(which);
            let offset = (USED[which] * BLOCK) as u64;
            self.machine
                .submit(ZioId(id), Op::Write, false, offset, data);
        }
        for _ in 0..self.random.below(8) {
            self.machine.advance();
        }
        self.lose_power();
    }

    fn lose_power(&mut self) {
        if self.restarts {
            self.machine.restart();
        } else {
            self.machine.crash();
        }
        self.may_hold.clone_from(&self.may_survive);
    }

    fn mirrors(&self) -> MirrorStats {
        let stats = self.machine.engine.pool_stats(PoolId(0), Instant::ZERO);
        stats.unwrap().mirrors.unwrap()
    }

    /// Runs until the pool is idle, and checks that the sides hold the same bytes.
    fn settle(&mut self) {
        while self.machine.advance() {}
        self.machine.bad_reads = false;
        assert_eq!(self.mirrors().nosync_regions, 0);
        assert!(self.machine.sides_agree(self.members), "the sides differ");
        (0..USED.len()).for_each(|which| self.read(which));
    }
}

const MIRRORS: [&[usize]; 3] = [&[2], &[3], &[2, 2]];

fn each_pool(run: impl FnMut(Run)) {
    each_of(6, run);
}

fn each_of(seeds: u64, mut run: impl FnMut(Run)) {
    for seed in 0..seeds {
        for members in MIRRORS {
            for policy in 0..policies().len() {
                for layout in [Layout::Static, Layout::Dynamic] {
                    run(Run::new(members, layout, policy, seed));
                }
            }
        }
    }
}

fn cut_power(restarts: bool) {
    let mut repaired = 0;
    each_of(if restarts { 3 } else { 6 }, |mut run| {
        if restarts && run.layout == Layout::Dynamic {
            return;
        }
        if restarts {
            run.restarts = true;
            run.machine.keep_record(0);
        }
        for _ in 0..12 {
            (0..run.random.below(20)).for_each(|_| run.some_io());
            run.crash();
            (0..run.random.below(30)).for_each(|_| run.some_io());
            if run.random.below(2) == 0 {
                run.settle();
            }
        }
        run.settle();
        run.flush();
        run.settle();
        assert_eq!(run.mirrors().dirty_regions, 0);
        repaired += run.mirrors().repaired_bytes;
        assert_eq!(run.machine.buffers(), 0, "a buffer was never freed");
    });
    assert!(repaired > 0);
}

#[test]
fn after_power_cuts_the_sides_are_made_the_same() {
    cut_power(false);
}

#[test]
fn after_cuts_of_the_disks_alone_the_sides_are_made_the_same() {
    each_of(3, |mut run| {
        if run.layout == Layout::Dynamic {
            return;
        }
        for _ in 0..12 {
            (0..run.random.below(30)).for_each(|_| run.some_io());
            run.machine.lose_caches();
            run.may_hold.clone_from(&run.may_survive);
            if run.random.below(2) == 0 {
                (0..USED.len()).for_each(|which| run.read(which));
            }
        }
        run.settle();
        assert_eq!(run.machine.buffers(), 0, "a buffer was never freed");
    });
}

#[test]
fn after_unclean_stops_the_record_says_where_the_sides_may_differ() {
    cut_power(true);
}

#[test]
fn a_side_that_was_replaced_is_not_believed_until_it_is_repaired() {
    let mut repaired = 0;
    each_of(3, |mut run| {
        if run.layout == Layout::Dynamic {
            return;
        }
        run.restarts = true;
        run.machine.keep_record(0);
        for _ in 0..4 {
            (0..20).for_each(|_| run.some_io());
            run.flush();
            run.lose_power();
            let side = run.random.below(2);
            run.machine.replace(side as usize);
            run.machine.keep_record(1 << side);
            (0..run.random.below(40)).for_each(|_| run.some_io());
            if run.random.below(2) == 0 {
                // The copies are complete, but may not be durable yet.
                run.machine.sync_takes = 200_000;
                while run.mirrors().nosync_regions > 0 && run.machine.advance() {}
                (0..run.random.below(3)).for_each(|_| {
                    run.machine.advance();
                });
                run.machine.sync_takes = 2_000;
            }
            run.lose_power();
            (0..run.random.below(40)).for_each(|_| run.some_io());
            run.settle();
            assert_eq!(run.mirrors().stale_sides, 0);
        }
        repaired += run.mirrors().repaired_bytes;
    });
    assert!(repaired > 0);
}

#[test]
fn a_region_leaves_the_record_some_time_after_it_is_clean() {
    let mut run = Run::new(&[2], Layout::Static, 0, 0);
    run.machine.keep_record(0);
    run.settle();
    (0..9).for_each(|_| run.write(true));
    run.settle();
    assert_eq!(run.mirrors().dirty_regions, 0);
    let records = run.machine.engine.mirror_records(PoolId(0));
    assert_eq!(records[0].regions, []);
    assert!(run.machine.engine.next_deadline().is_none());
}

fn fail_sides(bad_reads: bool) {
    let (mut repaired, mut failed) = (0, 0);
    each_pool(|mut run| {
        for _ in 0..12 {
            run.machine.bad_reads = bad_reads;
            let disks = run.machine.bad.len() as u64;
            let bad = run.random.below(disks) as usize;
            run.machine.bad[bad] = 1 + run.random.below(8);
            (0..run.random.below(40)).for_each(|_| run.some_io());
            run.machine.bad[bad] = 0;
            if run.random.below(2) == 0 {
                run.settle();
            }
        }
        run.settle();
        let stats = run.mirrors();
        (repaired, failed) = (
            repaired + stats.repaired_bytes,
            failed + stats.failed_pieces,
        );
        assert_eq!(run.machine.buffers(), 0, "a buffer was never freed");
    });
    assert!(repaired > 0 && failed > 0);
}

#[test]
fn after_failed_writes_of_sides_they_are_made_the_same() {
    fail_sides(false);
}

#[test]
fn after_all_failures_of_sides_they_are_made_the_same() {
    fail_sides(true);
}

#[test]
fn a_pool_that_ends_repairs_no_more_and_holds_nothing_back() {
    each_pool(|mut run| {
        (0..30).for_each(|_| run.some_io());
        run.crash();
        for id in 2..8 {
            let which = run.random.below(USED.len() as u64) as usize;
            let data = run.new_content(which);
            let offset = (USED[which] * BLOCK) as u64;
            run.machine
                .submit(ZioId(id), Op::Write, false, offset, data);
        }
        (0..run.random.below(40)).for_each(|_| {
            run.machine.advance();
        });
        let before = run.mirrors().repaired_bytes;
        run.machine.drain();
        while run.machine.advance() {}
        let after = run.mirrors().repaired_bytes;
        assert!(after - before <= PIECE, "another piece has begun");
        assert_eq!(run.machine.ended.len(), 6, "a write never ends");
        assert_eq!(run.machine.engine.dirty(), 0);
        assert_eq!(run.machine.buffers(), 0, "a buffer was never freed");
    });
}
