//! The bounds of a pool's layout, and the limits that its tunables set for disk queues.

use alloc::vec::Vec;

use super::config::{PoolDisk, PoolError};
use super::queue::Limits;
use super::tunable::{Tunable, Tunables};

/// Refuses an invalid layout. `disks` are the disks of all members, in order.
pub(super) fn check_layout(members: &[Vec<PoolDisk>], disks: &[PoolDisk]) -> Result<(), PoolError> {
    if members.is_empty() || members.iter().any(Vec::is_empty) {
        return Err(PoolError::Empty);
    }
    if let Some(member) = members.iter().find(|sides| sides.len() > SIDES_MAX) {
        return Err(PoolError::TooManySides(member.len()));
    }
    members.iter().try_for_each(|sides| check_sides(sides))?;
    for (at, disk) in disks.iter().enumerate() {
        if disks[..at].iter().any(|other| other.disk == disk.disk) {
            return Err(PoolError::DiskUsedTwice(disk.disk));
        }
    }
    Ok(())
}

fn check_sides(sides: &[PoolDisk]) -> Result<(), PoolError> {
    let unequal = sides.windows(2).find(|two| two[0].size != two[1].size);
    unequal.map_or(Ok(()), |two| {
        Err(PoolError::UnequalSides(two[0].size, two[1].size))
    })
}

/// The limits of a disk's queue.
pub(super) fn limits(tunables: &Tunables, rotational: bool) -> Limits {
    use Tunable::*;
    let get = |tunable| tunables.get(tunable) as u32;
    let aggregation = if rotational {
        AggregationLimit
    } else {
        AggregationLimitNonRotating
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

/// The maximum number of sides of a mirror. No pool needs more copies, and a bit mask of sides has this many
/// bits.
const SIDES_MAX: usize = 64;
