//! Tests the bound of the memory for blocks: twice the bytes that may be dirty, plus twice the bytes that the
//! requests in flight touch.

use dashpot_engine::pool::Layout;
use dashpot_engine::{Op, Random, ZioId};

use crate::bytes::{LAYOUTS, Policy, policies};
use crate::machine::Machine;

const BLOCK: u64 = 1 << 10;
const SIZE: u64 = 256 << 10;
const DIRTY_MAX: u64 = 40 * BLOCK;
/// How many requests are in flight at once.
const DEPTH: u64 = 16;
/// The maximum size of a request, in bytes.
const REQUEST_MAX: u64 = 12 * BLOCK;
/// The maximum that a request keeps in memory, in bytes. A request that begins in the middle of one block and
/// ends in the middle of another also keeps the old content of these two blocks.
const HELD_MAX: u64 = REQUEST_MAX + 3 * BLOCK;
/// The maximum size of a piece of a repair, in bytes.
const PIECE: u64 = 128 << 10;
/// The maximum total size of all blocks in memory, in bytes. Each dirty block may have replaced an older
/// version that a disk still writes.
const BOUND: u64 = 2 * (DIRTY_MAX + DEPTH * HELD_MAX) + PIECE;

fn run(members: &[usize], layout: Layout, policy: Policy, seed: u64) -> u64 {
    let what = format!("seed {seed}: {members:?} {layout:?} {policy:?}");
    let mut machine = Machine::new(members, layout, policy, BLOCK as u32, SIZE, seed);
    let mut random = Random::new(seed);
    let mut free: Vec<u32> = (0..DEPTH as u32).collect();
    let mut most = 0;
    for number in 0..1_500 {
        if let Some(id) = free.pop() {
            let op = match random.below(16) {
                0 => Op::Flush,
                1 => Op::Trim,
                2 => Op::Zero,
                3..=5 => Op::Read,
                _ => Op::Write,
            };
            let offset = random.below(SIZE / 4);
            let length = if op == Op::Flush {
                0
            } else {
                1 + random.below(REQUEST_MAX)
            };
            let offset = if op == Op::Flush { 0 } else { offset };
            let fua = op == Op::Write && random.below(4) == 0;
            machine.submit(
                ZioId(id),
                op,
                fua,
                offset,
                vec![number as u8; length as usize],
            );
        }
        for _ in 0..random.below(12) >> random.below(5) {
            machine.advance();
            most = most.max(machine.buffered());
        }
        most = most.max(machine.buffered());
        assert!(most <= BOUND, "{what}: blocks take {most} bytes");
        free.extend(machine.ended.drain(..).map(|(id, ..)| id.0));
        if number == 700 {
            machine.lose_caches();
        }
    }
    while machine.advance() {}
    assert_eq!(machine.buffered(), 0, "{what}: something is left");
    most
}

#[test]
fn the_blocks_in_memory_are_bounded() {
    let mut most = 0;
    for seed in 0..10 {
        for members in LAYOUTS {
            for policy in policies() {
                for layout in [Layout::Static, Layout::Dynamic] {
                    most = most.max(run(members, layout, policy, seed));
                }
            }
        }
    }
    assert!(
        most > DIRTY_MAX,
        "only {most} bytes: the test did not fill the memory"
    );
}
