//! Tests that the pool looks again when a tunable changes: a change must not stop anything that only the timer
//! of the txgs would start again.

use dashpot_engine::pool::{ThrottleConfig, Tunable};
use dashpot_engine::{Command, Duration, Instant, Op, PoolId};

use crate::hand::{BLOCK, Hand};

/// A pool with 20 dirty blocks. The txg is synced once it has more.
fn with_dirty_blocks(throttle: ThrottleConfig) -> Hand {
    let mut hand = Hand::volume(&[1], throttle, &[(Tunable::DirtyDataMax, 100 * BLOCK)]);
    for id in 0..20 {
        hand.write(id, u64::from(id));
    }
    assert_eq!(hand.ended.len(), 20);
    assert!(hand.working.is_empty(), "nothing syncs yet");
    hand
}

fn tune(hand: &mut Hand, tunable: Tunable, value: u64) {
    let changes = vec![(tunable, value)];
    let pool = PoolId(0);
    hand.command(Command::Tune { pool, changes });
}

#[test]
fn what_is_dirty_is_synced_at_once_if_it_is_too_much_from_now_on() {
    for throttle in [ThrottleConfig::OpenZfs, ThrottleConfig::None] {
        for (tunable, value) in [
            (Tunable::DirtyDataMax, 4 * BLOCK),
            (Tunable::DirtyDataSyncPercent, 10),
        ] {
            let mut hand = with_dirty_blocks(throttle);
            tune(&mut hand, tunable, value);
            assert!(hand.ops().contains(&Op::Write), "{tunable:?}");
            hand.write(20, 20);
            while hand.outcome(20).is_none() && (hand.done(Ok(())) || hand.tick()) {}
            assert_eq!(hand.outcome(20), Some(Ok(())), "{tunable:?}");
            let waited = hand.now.since(Instant::ZERO);
            assert!(waited < Duration::from_secs(5), "{tunable:?}: {waited}");
        }
    }
}

#[test]
fn a_shorter_timeout_counts_from_the_last_sync() {
    let mut hand = with_dirty_blocks(ThrottleConfig::OpenZfs);
    hand.now = Instant::ZERO + Duration::from_secs(3);
    tune(&mut hand, Tunable::TxgTimeout, 2);
    assert!(hand.ops().contains(&Op::Write));
}
