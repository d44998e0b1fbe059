//! Tests the queue with cases made by hand, and against a model that scans all its I/O for each decision.

mod naive;
mod random;
mod vectors;

use super::{Limits, Picked, Queue};
use crate::pool::Class;
use crate::time::Instant;
use crate::zio::{DiskId, Op};
use alloc::vec::Vec;

/// The defaults of ZFS 2.2 for a disk with a head that moves.
const DEFAULTS: Limits = Limits {
    max_active: 1_000,
    min: [10, 10, 1, 2, 1],
    max: [10, 10, 3, 10, 2],
    aggregation_limit: 1 << 20,
    read_gap_limit: 32 << 10,
};

fn queue() -> Queue {
    Queue::new(DiskId(0))
}

/// The usual operation of a class.
fn op_of(class: Class) -> Op {
    match class {
        Class::SyncRead | Class::AsyncRead => Op::Read,
        Class::SyncWrite | Class::AsyncWrite => Op::Write,
        Class::Trim => Op::Trim,
    }
}

fn tags(queue: &Queue, picked: &Picked) -> Vec<u32> {
    queue.members(picked.id).map(|member| member.tag).collect()
}

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}
