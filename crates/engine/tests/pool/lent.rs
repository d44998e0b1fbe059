//! Tests the buffers that a pool lends to replies: each buffer stays as it is until its reply has left or is
//! dropped.

use dashpot_engine::pool::{Layout, ThrottleConfig, WritePolicy};
use dashpot_engine::{
    Action, Buf, ClientId, Command, CommandId, Errno, Input, Move, Op, PoolId, VolumeId, Zio, ZioId,
};

use crate::hand::{BLOCK, Hand};

const POOL: PoolId = PoolId(0);

/// A pool of one disk that answers at once, and replies that leave only when a test says so.
struct Slow(Hand);

impl Slow {
    fn new(write: WritePolicy) -> Slow {
        let none = ThrottleConfig::None;
        let mut hand = Hand::pool(&[1], Layout::Static, 1 << 20, none, &[]).expect("a pool");
        hand.add(1 << 20, BLOCK as u32, write).expect("a volume");
        Slow(hand)
    }

    /// Carries out a step and all work of disks that follows from it.
    fn step(&mut self, input: Input<'_>) -> Vec<Action> {
        let (mut actions, mut at) = (Vec::new(), 0);
        self.0.engine.step(self.0.now, input, &mut actions);
        while let Some(action) = actions.get(at) {
            at += 1;
            if let Action::Start(id) = *action {
                let done = Input::Done(id, Ok(()));
                self.0.engine.step(self.0.now, done, &mut actions);
            }
        }
        actions
    }

    fn ask(&mut self, id: u32, op: Op, block: u64, length: u32) -> Vec<Action> {
        self.step(Input::SubmitToVolume(Zio {
            id: ZioId(id),
            device: VolumeId(0),
            client: ClientId(0),
            op,
            fua: false,
            call: None,
            offset: block * BLOCK,
            length,
            arrived: self.0.now,
        }))
    }

    /// Begins a read whose reply is not sent. Returns the buffer that it got.
    fn read(&mut self, id: u32) -> Buf {
        let actions = self.ask(id, Op::Read, u64::from(id), BLOCK as u32 / 2);
        assert!(freed(&actions).is_empty(), "{actions:?}");
        let lent = actions.iter().find_map(|action| match action {
            Action::Move(Move::Lend { zio, from }) if *zio == ZioId(id) => Some(from.buf),
            _ => None,
        });
        lent.expect("a buffer")
    }
}

fn freed(actions: &[Action]) -> Vec<Buf> {
    let free = |action: &Action| match action {
        Action::Move(Move::Free(buf)) => Some(*buf),
        _ => None,
    };
    actions.iter().filter_map(free).collect()
}

#[test]
fn a_lent_buffer_is_freed_once_when_its_reply_has_left_or_is_dropped() {
    for write in [WritePolicy::Through, WritePolicy::Back] {
        let mut slow = Slow::new(write);
        let lent: Vec<Buf> = (0..4).map(|id| slow.read(id)).collect();
        let distinct: std::collections::BTreeSet<Buf> = lent.iter().copied().collect();
        assert_eq!(distinct.len(), 4, "{lent:?}");
        // Neither writes nor a power cut nor the end of the pool frees a lent buffer.
        let mut actions = slow.ask(10, Op::Write, 20, BLOCK as u32);
        actions.extend(slow.step(Input::Command(CommandId(1), Command::Crash(POOL))));
        for _ in 0..8 {
            actions.extend(slow.step(Input::Tick));
        }
        actions.extend(slow.ask(11, Op::Read, 0, 3 * BLOCK as u32));
        let fail = Command::FailHeld(Errno::Shutdown);
        actions.extend(slow.step(Input::Command(CommandId(2), fail)));
        let others = freed(&actions);
        assert!(!others.is_empty(), "{write:?}");
        assert!(others.iter().all(|buf| !lent.contains(buf)), "{others:?}");
        let offered = slow.0.now;
        let reply = |zio| Input::Replied { zio, offered };
        assert_eq!(freed(&slow.step(reply(ZioId(0)))), [lent[0]]);
        assert_eq!(freed(&slow.step(reply(ZioId(0)))), []);
        let gone = [ZioId(1), ZioId(2)];
        assert_eq!(freed(&slow.step(Input::Abort(&gone))), lent[1..3]);
        assert_eq!(freed(&slow.step(Input::Abort(&gone))), []);
        assert_eq!(freed(&slow.step(reply(ZioId(3)))), [lent[3]]);
    }
}

/// A client that takes no replies would otherwise make the shard hold many times the bytes that its reads
/// ask for.
#[test]
fn a_small_part_of_a_block_and_parts_of_several_blocks_are_copied() {
    let mut slow = Slow::new(WritePolicy::Through);
    let lends = |action: &Action| matches!(action, Action::Move(Move::Lend { .. }));
    for (id, length, blocks) in [(1, BLOCK / 2 - 1, 1), (2, 2 * BLOCK, 2)] {
        let actions = slow.ask(id, Op::Read, 0, length as u32);
        assert!(!actions.iter().any(lends), "{actions:?}");
        assert_eq!(freed(&actions).len(), blocks);
    }
}
