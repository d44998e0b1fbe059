//! Cuts the power of the host at random moments. Afterwards, all data that a flush or FUA had acknowledged
//! must be there.

use std::collections::BTreeMap;

use dashpot_engine::pool::Layout;
use dashpot_engine::{Op, Random, ZioId};

use crate::bytes::{LAYOUTS, policies};
use crate::machine::Machine;

const BLOCK: usize = 1 << 10;
const BLOCKS: usize = 48;

/// The contents that each block of a volume may have after a power cut: the content at the last flush, and
/// all later contents.
struct Model {
    now: Vec<Vec<u8>>,
    since_flush: BTreeMap<usize, Vec<Vec<u8>>>,
}

impl Model {
    fn write(&mut self, block: usize, at: usize, bytes: &[u8]) {
        let before = self.now[block].clone();
        self.now[block][at..at + bytes.len()].copy_from_slice(bytes);
        let versions = self.since_flush.entry(block).or_insert(vec![before]);
        versions.push(self.now[block].clone());
    }

    fn may_hold(&self, block: usize, bytes: &[u8]) -> bool {
        match self.since_flush.get(&block) {
            Some(versions) => versions.iter().any(|version| version == bytes),
            None => self.now[block] == bytes,
        }
    }
}

struct Run {
    machine: Machine,
    model: Model,
    random: Random,
}

impl Run {
    fn ask(&mut self, op: Op, fua: bool, offset: usize, data: Vec<u8>) -> Vec<u8> {
        self.machine.submit(ZioId(1), op, fua, offset as u64, data);
        while self.machine.ended.is_empty() {
            assert!(self.machine.advance(), "{op:?} never ends");
        }
        let (_, outcome, data) = self.machine.ended.remove(0);
        assert_eq!(outcome, Ok(()));
        data
    }

    fn write(&mut self, fua: bool) {
        let block = self.random.below(BLOCKS as u64) as usize;
        let whole = self.random.below(2) == 0;
        let at = if whole {
            0
        } else {
            self.random.below(BLOCK as u64 - 1) as usize
        };
        let length = if whole {
            BLOCK
        } else {
            1 + self.random.below((BLOCK - at) as u64 - 1) as usize
        };
        let bytes = vec![self.random.below(255) as u8; length];
        self.model.write(block, at, &bytes);
        self.ask(Op::Write, fua, block * BLOCK + at, bytes);
        if fua {
            self.model.since_flush.remove(&block);
        }
    }

    /// Trims or zeroes some blocks.
    fn clear(&mut self, fua: bool) {
        let (op, first, count) = self.draw_clear();
        self.ask(op, fua, first * BLOCK, vec![0; count * BLOCK]);
        if fua {
            self.model
                .since_flush
                .retain(|block, _| !(first..first + count).contains(block));
        }
    }

    fn draw_clear(&mut self) -> (Op, usize, usize) {
        let first = self.random.below(BLOCKS as u64) as usize;
        let count = 1 + self.random.below((BLOCKS - first) as u64) as usize;
        for block in first..first + count {
            self.model.write(block, 0, &[0; BLOCK]);
        }
        let op = [Op::Trim, Op::Zero][self.random.below(2) as usize];
        (op, first, count)
    }

    fn flush(&mut self) {
        self.ask(Op::Flush, false, 0, Vec::new());
        self.model.since_flush.clear();
    }

    /// Begins some zios, and cuts the power before they end.
    fn crash(&mut self) {
        for id in 2..2 + self.random.below(6) as u32 {
            if self.random.below(4) == 0 {
                let (op, first, count) = self.draw_clear();
                let (offset, data) = (first * BLOCK, vec![0; count * BLOCK]);
                self.machine
                    .submit(ZioId(id), op, false, offset as u64, data);
                continue;
            }
            let block = self.random.below(BLOCKS as u64) as usize;
            let bytes = vec![id as u8; BLOCK];
            self.model.write(block, 0, &bytes);
            let offset = (block * BLOCK) as u64;
            self.machine
                .submit(ZioId(id), Op::Write, false, offset, bytes);
        }
        for _ in 0..self.random.below(10) {
            self.machine.advance();
        }
        self.machine.crash();
    }

    /// Checks every block. If a block might have several contents, writes it again, which makes the sides of
    /// mirrors equal.
    fn check(&mut self) {
        for block in 0..BLOCKS {
            let found = self.ask(Op::Read, false, block * BLOCK, vec![0; BLOCK]);
            assert!(self.model.may_hold(block, &found), "block {block}");
            self.model.now[block] = found.clone();
            if self.model.since_flush.contains_key(&block) {
                self.ask(Op::Write, false, block * BLOCK, found);
            }
        }
        self.flush();
    }
}

#[test]
fn what_was_flushed_survives_power_cuts() {
    let layouts = [Layout::Static, Layout::Dynamic];
    let layouts = layouts.map(|layout| LAYOUTS.map(|members| (layout, members)));
    for (seed, policy) in (0..).zip(policies()) {
        for (layout, members) in layouts.into_iter().flatten() {
            let size = (BLOCK * BLOCKS) as u64;
            let block = vec![0; BLOCK];
            let mut run = Run {
                machine: Machine::new(members, layout, policy, BLOCK as u32, size, seed),
                model: Model {
                    now: vec![block; BLOCKS],
                    since_flush: BTreeMap::new(),
                },
                random: Random::new(seed),
            };
            for _ in 0..40 {
                for _ in 0..run.random.below(40) {
                    match run.random.below(10) {
                        0 => run.flush(),
                        1 => run.write(true),
                        2 => run.clear(true),
                        3 => run.clear(false),
                        _ => run.write(false),
                    }
                }
                run.crash();
                run.check();
            }
            assert_eq!(run.machine.engine.dirty(), 0);
            assert_eq!(run.machine.buffers(), 0, "a buffer was never freed");
        }
    }
}
