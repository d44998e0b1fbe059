//! The state of the durable record of a pool's mirrors.

use alloc::vec::Vec;
use core::ops::Range;

use crate::time::Instant;

/// The state in which the driver found a mirror, given to the pool before the pool is used.
#[derive(Clone, Debug, Default)]
pub struct MirrorStart {
    /// The sides whose bytes the mirror must not read until they are repaired, as a bit mask.
    pub stale: u64,
    /// The ranges, in bytes, in which the sides may differ.
    pub differ: Vec<Range<u64>>,
}

/// The durable record that the driver is to make of a mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorRecord {
    /// The member of the pool.
    pub member: usize,
    /// The size of a region in bytes.
    pub region_size: u64,
    /// The regions in which the sides may differ after an unclean stop.
    pub regions: Vec<u32>,
    /// The sides that are not yet repaired, as a bit mask.
    pub stale: u64,
}

/// The state of the record.
#[derive(Debug)]
pub(super) struct Recording {
    /// Whether the pool may be used. Until it may, the driver must not change the old record.
    pub(super) is_open: bool,
    /// Whether the driver makes a record now.
    pub(super) is_making: bool,
    /// Whether the pool needs a new record.
    pub(super) is_wanted: bool,
    /// The earliest moment at which the pool may ask for a new record that it needs.
    pub(super) not_before: Instant,
    /// The earliest moment at which the pool may ask for a new record that does no more than drop clean
    /// regions.
    pub(super) drops_at: Instant,
    /// Whether the driver has failed to make the last record.
    pub(super) has_failed: bool,
    /// For each member, the sides that are not yet repaired.
    pub(super) stale: Vec<u64>,
    /// For each member that has stale sides and nothing left to copy, a value of
    /// [`Regions::covers`](super::regions::Regions::covers). The copies are safe once every side has
    /// completed a FLUSH that began at this value or later.
    pub(super) copied: Vec<Option<u64>>,
}
