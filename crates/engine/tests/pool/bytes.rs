//! Tests that a volume returns the bytes that were written to it, with every layout and policy.

use dashpot_engine::pool::{Layout, LegacyConfig, ThrottleConfig, Tunable, WritePolicy};
use dashpot_engine::{Op, PoolId, Random, ZioId};

use crate::machine::Machine;

const SIZE: u64 = 64 << 10;
const BLOCK: u32 = 1 << 10;
pub(crate) const LAYOUTS: [&[usize]; 4] = [&[1], &[2], &[1, 1, 1], &[2, 2]];

pub(crate) type Policy = (ThrottleConfig, WritePolicy);

pub(crate) fn policies() -> [Policy; 4] {
    let legacy = LegacyConfig {
        delay_slots: Some(1),
        full_pipeline: None,
    };
    [
        (ThrottleConfig::None, WritePolicy::Through),
        (ThrottleConfig::None, WritePolicy::Back),
        (ThrottleConfig::OpenZfs, WritePolicy::Back),
        (ThrottleConfig::Legacy(legacy), WritePolicy::Back),
    ]
}

fn draw_range(random: &mut Random) -> (u64, u64) {
    let offset = random.below(SIZE - 1);
    let most = [5_000, SIZE][usize::from(random.below(4) == 0)];
    let length = 1 + random.below((SIZE - offset).min(most));
    if random.below(2) == 0 {
        return (offset, length);
    }
    let block = u64::from(BLOCK);
    let first = offset / block * block;
    (first, length.next_multiple_of(block).min(SIZE - first))
}

/// Trims the whole blocks of a range.
fn trim(model: &mut [u8], range: &std::ops::Range<usize>) {
    let block = BLOCK as usize;
    let whole = range.start.next_multiple_of(block)..range.end / block * block;
    if !whole.is_empty() {
        model[whole].fill(0);
    }
}

/// Runs one random zio at a time, and checks its result before the next.
fn run(members: &[usize], layout: Layout, policy: Policy, seed: u64) {
    run_on(
        Machine::new(members, layout, policy, BLOCK, SIZE, seed),
        members,
        layout,
        policy,
        seed,
    );
}

fn run_on(mut machine: Machine, members: &[usize], layout: Layout, policy: Policy, seed: u64) {
    let mut random = Random::new(seed);
    let mut model = vec![0u8; SIZE as usize];
    for number in 0..400u32 {
        let (offset, length) = draw_range(&mut random);
        let range = offset as usize..(offset + length) as usize;
        let id = ZioId(number % 7);
        let fua = random.below(8) == 0;
        let op = match random.below(12) {
            0..=3 => Op::Read,
            4..=7 => Op::Write,
            8..=9 => Op::Zero,
            10 => Op::Trim,
            _ => Op::Flush,
        };
        let data = match op {
            Op::Flush => Vec::new(),
            Op::Write => vec![number as u8 | 1; length as usize],
            _ => vec![0; length as usize],
        };
        match op {
            Op::Write => model[range.clone()].copy_from_slice(&data),
            Op::Zero => model[range.clone()].fill(0),
            Op::Trim => trim(&mut model, &range),
            _ => {}
        }
        machine.submit(id, op, fua && op != Op::Flush, offset, data);
        while machine.ended.is_empty() {
            assert!(machine.advance(), "seed {seed}: {op:?} {number} never ends");
        }
        let (ended, outcome, reply) = machine.ended.remove(0);
        assert_eq!((ended, outcome), (id, Ok(())), "seed {seed}");
        if op == Op::Read {
            assert!(
                reply == model[range],
                "seed {seed}: read {number} of {members:?}"
            );
        }
        if op == Op::Flush && layout == Layout::Static {
            for side in 0..2 {
                let disk = machine.on_disk(members, side);
                let differs = disk.iter().zip(&model).position(|(a, b)| a != b);
                assert!(
                    differs.is_none(),
                    "seed {seed}: flush {number} of {members:?} by {policy:?}, side {side}: byte \
                     {differs:?}"
                );
            }
        }
        for _ in 0..random.below(6) {
            machine.advance();
        }
    }
    while machine.advance() {}
    let tunables = machine.engine.tunables(PoolId(0)).unwrap();
    let has_overhead = tunables.get(Tunable::TxgOverhead) == 1;
    assert_eq!(machine.overhead > 0, has_overhead, "seed {seed}");
    let end = match layout {
        Layout::Static => machine.on_disk(members, 0),
        // No data is dirty any more, so the read comes from the disks.
        Layout::Dynamic => machine.read_all(),
    };
    assert!(
        end == model,
        "seed {seed}: at the end of {members:?} {policy:?}"
    );
    assert!(
        machine.sides_agree(members),
        "seed {seed}: {members:?} {policy:?}"
    );
}

#[test]
fn a_volume_holds_what_was_written() {
    for seed in 0..15 {
        for members in LAYOUTS {
            for policy in policies() {
                for layout in [Layout::Static, Layout::Dynamic] {
                    run(members, layout, policy, seed);
                }
            }
        }
    }
}

#[test]
fn a_volume_beside_overhead_holds_what_was_written() {
    for seed in 0..5 {
        for (members, layout) in [
            (LAYOUTS[0], Layout::Static),
            (LAYOUTS[3], Layout::Static),
            (LAYOUTS[2], Layout::Dynamic),
        ] {
            let policy = (ThrottleConfig::OpenZfs, WritePolicy::Back);
            let mut machine = Machine::new(members, layout, policy, BLOCK, SIZE, seed);
            machine.tune(Tunable::DirtyDataMax, 4 << 20);
            machine.tune(Tunable::TxgOverhead, 1);
            run_on(machine, members, layout, policy, seed);
        }
    }
}
