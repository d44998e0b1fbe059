//! Tests that the versions of a block never go back, whichever side of a mirror answers: once a read has
//! returned a version, no read that begins later returns an older one.

use dashpot_engine::pool::{Layout, ThrottleConfig, WritePolicy};
use dashpot_engine::{Op, Random, ZioId};

use crate::machine::Machine;

const BLOCK: u32 = 512;

/// A read or a write in flight. A read knows the oldest version that it may return.
struct Asked {
    id: ZioId,
    op: Op,
    version: u8,
}

/// Reads and writes one block at random, with at most one write at a time.
fn run(sides: usize, write: WritePolicy, seed: u64) {
    let mut random = Random::new(seed);
    let size = u64::from(BLOCK);
    let policy = (ThrottleConfig::OpenZfs, write);
    let mut machine = Machine::new(&[sides], Layout::Static, policy, BLOCK, size, seed);
    let (mut asked, mut oldest, mut written): (Vec<Asked>, u8, u8) = (Vec::new(), 0, 0);
    for number in 0..200 {
        let writes = asked.iter().any(|asked| asked.op == Op::Write);
        let op = match random.below(4) {
            0 if !writes => Op::Write,
            _ => Op::Read,
        };
        let version = match op {
            Op::Write => written + 1,
            _ => oldest,
        };
        written = written.max(version);
        let data = match op {
            Op::Write => vec![version; BLOCK as usize],
            _ => vec![0; BLOCK as usize],
        };
        let id = ZioId(number);
        machine.submit(id, op, false, 0, data);
        asked.push(Asked { id, op, version });
        for _ in 0..random.below(4) {
            machine.advance();
        }
        for (id, outcome, data) in machine.ended.drain(..) {
            let at = asked.iter().position(|asked| asked.id == id).unwrap();
            let asked = asked.swap_remove(at);
            assert_eq!(outcome, Ok(()));
            let version = if asked.op == Op::Read {
                data[0]
            } else {
                asked.version
            };
            assert!(
                version >= asked.version,
                "seed {seed}: {version} after {}",
                asked.version
            );
            oldest = oldest.max(version);
        }
    }
}

#[test]
fn the_versions_of_a_block_never_go_back() {
    for seed in 0..60 {
        for sides in [1, 2, 3] {
            run(sides, WritePolicy::Through, seed);
            run(sides, WritePolicy::Back, seed);
        }
    }
}
