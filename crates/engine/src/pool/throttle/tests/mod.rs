//! Tests the throttle through its interface to the pool: with examples, against a naive model, and in a
//! published scenario.

mod legacy;
mod naive;
mod openzfs;
mod random;
mod scenario;

use super::{Throttle, Tx, Verdict};
use crate::pool::{ThrottleConfig, Tunable, Tunables};
use crate::time::Instant;
use crate::zio::ZioId;
use alloc::vec::Vec;

/// The first txg.
const OPEN: u64 = 4;

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1_000)
}

fn tx(zio: u32, started: Instant, bytes: u64) -> Tx {
    let zio = ZioId(zio);
    Tx {
        zio,
        started,
        bytes,
    }
}

/// A throttle with `dirty` bytes of dirty data.
fn throttle(config: ThrottleConfig, tunables: &Tunables, dirty: u64) -> Throttle {
    let mut throttle = Throttle::new(config, tunables, OPEN);
    throttle.dirtied_beside(at(0), OPEN, dirty);
    throttle
}

fn tunables(changes: &[(Tunable, u64)]) -> Tunables {
    let mut tunables = Tunables::new(8 << 30);
    tunables.set_all(changes.iter().copied()).unwrap();
    tunables
}

/// Takes out all writes that the throttle has released; each makes `bytes` dirty.
fn drain(throttle: &mut Throttle, now: Instant, txg: u64, bytes: u64) -> Vec<u32> {
    let mut admitted = Vec::new();
    while let Some(zio) = throttle.pop_admitted(now) {
        throttle.dirtied(now, txg, bytes);
        admitted.push(zio.0);
    }
    admitted
}

/// Wakes the throttle at each moment for which it asks. Returns the writes that it released, each with the
/// moment of its release.
fn run(throttle: &mut Throttle, txg: u64, bytes: u64) -> Vec<(u32, Instant)> {
    let mut admitted = Vec::new();
    while let Some(now) = throttle.next_wake() {
        throttle.wake(now);
        let zios = drain(throttle, now, txg, bytes);
        admitted.extend(zios.into_iter().map(|zio| (zio, now)));
    }
    admitted
}
