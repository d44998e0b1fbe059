//! Checks, with a counting allocator, that no zio allocates memory in the steady state.

#![allow(unsafe_code, reason = "a global allocator needs unsafe code")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use dashpot_engine::inject::{Effect, GroupId, Mode, RuleId, RuleSpec};
use dashpot_engine::pool::{
    Layout as Spread, PoolConfig, PoolDisk, ThrottleConfig, Tunable, Tunables, VolumeConfig,
    WritePolicy,
};
use dashpot_engine::{
    Action, ClientId, Command, CommandId, DiskConfig, DiskId, Duration, Engine, Input, Instant, Op,
    PoolId, VolumeId, Zio, ZioId,
};

struct Counting;

thread_local! {
    /// Counts only this thread's allocations, because the harness allocates in its own thread.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting has no effect on it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller guarantees what `System` needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees what `System` needs.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller guarantees what `System` needs.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DISK: DiskId = DiskId(0);

fn engine() -> Engine {
    let mut engine = Engine::new();
    engine.add_disk(DiskConfig { seed: 1 });
    let ms = Duration::from_millis;
    let lanes = RuleSpec::delay(ms(10), Some(4));
    let any = RuleSpec::delay(ms(2), None);
    let add = RuleSpec {
        mode: Mode::Add,
        ..RuleSpec::delay(ms(1), Some(16))
    };
    let pass = RuleSpec {
        bandwidth: Some(1_000_000_000),
        ..RuleSpec::new(Effect::Pass)
    };
    let mut actions = Vec::new();
    for (id, spec) in (1..).zip([lanes, any, add, pass]) {
        let rules = vec![(RuleId(id), spec)];
        let inject = Command::Inject {
            disk: DISK,
            group: GroupId(id),
            rules,
        };
        let input = Input::Command(CommandId(u64::from(id)), inject);
        engine.step(Instant::ZERO, input, &mut actions);
    }
    engine
}

/// Sends 64 zios through the engine, all at the same time.
fn round(engine: &mut Engine, now: &mut Instant, actions: &mut Vec<Action>) {
    for id in 0..64 {
        let zio = Zio {
            id: ZioId(id),
            device: DISK,
            client: ClientId(0),
            op: [Op::Read, Op::Write][id as usize % 2],
            fua: id % 7 == 1,
            call: None,
            offset: u64::from(id) * 4096,
            length: 4096,
            arrived: *now,
        };
        engine.step(*now, Input::Submit(zio), actions);
        drive(engine, *now, actions);
    }
    while let Some(deadline) = engine.next_deadline() {
        *now = deadline;
        engine.step(*now, Input::Tick, actions);
        drive(engine, *now, actions);
    }
}

/// Carries out the engine's actions at once, at the time `now`.
fn drive(engine: &mut Engine, now: Instant, actions: &mut Vec<Action>) {
    let mut at = 0;
    while at < actions.len() {
        match actions[at] {
            Action::Start(id) | Action::StartDamaged(id, _) => {
                engine.step(now, Input::Done(id, Ok(())), actions);
            }
            Action::Complete(zio, _) => {
                engine.step(now, Input::Replied { zio, offered: now }, actions);
            }
            // The driver makes the record of the mirrors at once.
            Action::Record(pool) => {
                engine.step(now, Input::Recorded(pool, Ok(())), actions);
            }
            _ => {}
        }
        at += 1;
    }
    actions.clear();
}

#[test]
fn a_zio_allocates_nothing_once_its_disk_has_been_used() {
    let (mut engine, mut now, mut actions) = (engine(), Instant::ZERO, Vec::new());
    for _ in 0..3 {
        round(&mut engine, &mut now, &mut actions);
    }
    let before = ALLOCATIONS.get();
    for _ in 0..100 {
        round(&mut engine, &mut now, &mut actions);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    let stats = engine.disk_stats(DISK, now).unwrap();
    assert_eq!(stats.op(Op::Read).completed, 103 * 32);
}

const BLOCK: u32 = 8_192;

/// An engine with a pool of a mirror and a disk, and a volume.
fn pool(layout: Spread, throttle: ThrottleConfig, write: WritePolicy) -> Engine {
    let mut engine = Engine::new();
    let mut disk = || PoolDisk {
        disk: engine.add_disk(DiskConfig { seed: 1 }),
        size: 1 << 30,
        rotational: false,
    };
    let members = vec![vec![disk(), disk()], vec![disk()]];
    let mut tunables = Tunables::new(8 << 30);
    // So much that no write is held back, because a write that waits takes a lock, which allocates.
    let most = 1_024 * u64::from(BLOCK);
    tunables.set(Tunable::DirtyDataMax, most).unwrap();
    let config = PoolConfig {
        members,
        layout,
        throttle,
        tunables,
    };
    engine.add_pool(config, Instant::ZERO).unwrap();
    let volume = VolumeConfig {
        pool: PoolId(0),
        size: 256 << 20,
        block_size: BLOCK,
        write,
    };
    engine.add_volume(volume).unwrap();
    engine
}

/// Sends zios through the pool: I/O of whole blocks, some of it durable, and flushes.
fn pool_round(engine: &mut Engine, now: &mut Instant, actions: &mut Vec<Action>, ops: &[Op]) {
    for id in 0..256 {
        let zio = Zio {
            id: ZioId(id),
            device: VolumeId(0),
            client: ClientId(0),
            op: ops[id as usize % ops.len()],
            fua: id % 32 == 1,
            call: None,
            offset: u64::from(id % 128 * 2 * BLOCK),
            length: 2 * BLOCK,
            arrived: *now,
        };
        engine.step(*now, Input::SubmitToVolume(zio), actions);
        if id % 16 == 0 {
            drive(engine, *now, actions);
        }
    }
    drive(engine, *now, actions);
    while let Some(deadline) = engine.next_deadline() {
        *now = (*now).max(deadline);
        engine.step(*now, Input::Tick, actions);
        drive(engine, *now, actions);
    }
}

/// How often twenty rounds allocate memory, after rounds that have warmed the engine up.
fn allocated(mut engine: Engine, ops: &[Op]) -> u64 {
    let (mut now, mut actions) = (Instant::ZERO, Vec::new());
    for _ in 0..24 {
        pool_round(&mut engine, &mut now, &mut actions, ops);
    }
    let before = ALLOCATIONS.get();
    for _ in 0..20 {
        pool_round(&mut engine, &mut now, &mut actions, ops);
    }
    ALLOCATIONS.get() - before
}

#[test]
fn a_zio_allocates_nothing_if_its_mirror_has_a_durable_record() {
    use {Op::Flush, Op::Read, Op::Write};
    for write in [WritePolicy::Back, WritePolicy::Through] {
        for ops in [&[Write][..], &[Read, Write, Write, Flush]] {
            let mut engine = pool(Spread::Static, ThrottleConfig::OpenZfs, write);
            engine.record_mirrors(PoolId(0), &[]);
            let repair = Input::Command(CommandId(1), Command::Repair(PoolId(0)));
            let mut actions = Vec::new();
            engine.step(Instant::ZERO, repair, &mut actions);
            drive(&mut engine, Instant::ZERO, &mut actions);
            let count = allocated(engine, ops);
            assert_eq!(count, 0, "{write:?} {ops:?}");
        }
    }
}

#[test]
fn a_zio_of_whole_blocks_allocates_nothing_once_its_pool_has_been_used() {
    use {Op::Flush, Op::Read, Op::Write};
    let mixes: [&[Op]; 4] = [
        &[Read],
        &[Write],
        &[Write, Flush],
        &[Read, Write, Write, Flush],
    ];
    for (throttle, write) in [
        (ThrottleConfig::OpenZfs, WritePolicy::Back),
        (ThrottleConfig::None, WritePolicy::Back),
        (ThrottleConfig::None, WritePolicy::Through),
    ] {
        for layout in [Spread::Static, Spread::Dynamic] {
            for ops in mixes {
                let count = allocated(pool(layout, throttle, write), ops);
                assert_eq!(count, 0, "{layout:?} {throttle:?} {write:?} {ops:?}");
            }
        }
    }
}
