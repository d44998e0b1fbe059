//! What a pool may be made of, and what its tunables let the queues of its disks do.

use alloc::vec::Vec;

use super::config::{PoolDisk, PoolError};
use super::queue::Limits;
use super::tunable::{Tunable, Tunables};

/// Refuses what is no layout: `disks` are those of all members, in their order.
pub(super) fn check_layout(members: &[Vec<PoolDisk>], disks: &[PoolDisk]) -> Result<(), PoolError> {
    if members.is_empty() || members.iter().any(Vec::is_empty) {
        return Err(PoolError::Empty);
    }
    if let Some(member) = members.iter().find(|sides| sides.len() > SIDES_MAX) {
        return Err(PoolError::TooManySides(member.len()));
    }
    for (at, disk) in disks.iter().enumerate() {
        if disks[..at].iter().any(|other| other.disk == disk.disk) {
            return Err(PoolError::DiskUsedTwice(disk.disk));
        }
    }
    Ok(())
}

/// What the queue of a disk may do.
pub(super) fn limits(tunables: &Tunables, rotational: bool) -> Limits {
    use Tunable::*;
    let get = |tunable| tunables.get(tunable) as u32;
    let aggregation = match rotational {
        true => AggregationLimit,
        false => AggregationLimitNonRotating,
    };
    Limits {
        max_active: get(MaxActive),
        min: [
            SyncReadMinActive,
            SyncWriteMinActive,
            AsyncReadMinActive,
            AsyncWriteMinActive,
            TrimMinActive,
        ]
        .map(get),
        max: [
            SyncReadMaxActive,
            SyncWriteMaxActive,
            AsyncReadMaxActive,
            AsyncWriteMaxActive,
            TrimMaxActive,
        ]
        .map(get),
        aggregation_limit: if tunables.aggregates() {
            get(aggregation)
        } else {
            0
        },
        read_gap_limit: get(ReadGapLimit),
    }
}

/// More copies than anybody keeps, and as many as there are bits for them.
const SIDES_MAX: usize = 64;
