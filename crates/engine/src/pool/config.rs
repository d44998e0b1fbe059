//! The configuration of pools and volumes.

use alloc::vec::Vec;
use core::fmt;

use crate::pool::tunable::Tunables;
use crate::time::Duration;
use crate::zio::{DiskId, PoolId};

/// A pool: disks joined by a layout. The pool spreads blocks over the members; each side of a member
/// holds a copy.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// The top-level members: one disk each for a stripe, several for mirrors. No disk occurs
    /// twice, and none is exported by itself.
    pub members: Vec<Vec<PoolDisk>>,
    /// How the pool chooses the member of a block.
    pub layout: Layout,
    /// The throttle that holds back the pool's writes.
    pub throttle: ThrottleConfig,
    /// The tunables at the start.
    pub tunables: Tunables,
}

/// How a pool chooses the member of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The block's number decides, and the members take turns. A block is always at the same place.
    #[default]
    Static,
    /// When a block is first written, the member with the fewest bytes queued takes it, and keeps it until a
    /// trim. All volumes of the pool have the same block size.
    Dynamic,
}

#[derive(Clone, Copy, Debug)]
pub struct PoolDisk {
    /// The disk, which must have been added to the engine.
    pub disk: DiskId,
    /// The size of the disk in bytes.
    pub size: u64,
    /// Whether the disk has a head that moves. The aggregation limit depends on this.
    pub rotational: bool,
}

/// How a pool holds back writers that are faster than its disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottleConfig {
    /// Writes wait only when dirty data reaches its maximum.
    None,
    /// OpenZFS since 2013: delays that grow with the dirty data of the pool.
    OpenZfs,
    /// ZFS before 2013: an estimate of the throughput, and a limit for each txg.
    Legacy(LegacyConfig),
}

/// Details of the throttle before 2013 that are not known today, or that differed between systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegacyConfig {
    /// How many delays can run at the same time; `None` for any number. ZFS ran one on each processor,
    /// because a delay held a lock of its processor.
    pub delay_slots: Option<u32>,
    /// If set, the pool starts with two full txgs: one syncs, and the other waits for it. The value is the
    /// throughput in bytes per millisecond from which the first limit follows.
    pub full_pipeline: Option<u64>,
}

/// A block device carved from a pool (ZFS: zvol).
#[derive(Clone, Copy, Debug)]
pub struct VolumeConfig {
    pub pool: PoolId,
    /// The size of the volume in bytes; a multiple of the block size.
    pub size: u64,
    /// The size of a block in bytes: a power of two of at least 512.
    pub block_size: u32,
    /// When the volume acknowledges its writes.
    pub write: WritePolicy,
}

/// When a volume acknowledges a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritePolicy {
    /// When the write is on the disks.
    Through,
    /// When the pool's throttle has admitted the write.
    Back,
}

/// ZFS's fixed cap for one delay (`zfs_delay_max_ns`).
pub const DELAY_MAX: Duration = Duration::from_millis(100);

/// The reason that a pool or a volume cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolError {
    /// The pool, or one of its members, has no disks.
    Empty,
    /// There is no such disk.
    UnknownDisk(DiskId),
    DiskUsedTwice(DiskId),
    /// There is no such pool.
    UnknownPool(PoolId),
    /// The block size is not a power of two of at least 512, or is larger than 1 MiB.
    BlockSize(u32),
    /// The size is zero, or not a whole number of blocks.
    Size(u64),
    /// The pool has the dynamic layout, and its other volumes have blocks of another size.
    OtherBlockSize {
        /// The block size that was asked for, in bytes.
        wanted: u32,
        /// The block size of the other volumes, in bytes.
        others: u32,
    },
    /// The volume has more blocks than can be numbered. Larger blocks help.
    TooManyBlocks(u64),
    /// The mirror has more sides than a mirror can have.
    TooManySides(usize),
    /// A mirror has sides of these two different sizes, in bytes.
    UnequalSides(u64, u64),
    /// The pool has too little room left.
    NoRoom {
        /// The size that was asked for, in bytes.
        wanted: u64,
        /// The size of the room that is left, in bytes.
        left: u64,
    },
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolError::Empty => f.write_str("a pool and each of its members need a disk"),
            PoolError::UnknownDisk(disk) => write!(f, "no disk {}", disk.0),
            PoolError::DiskUsedTwice(disk) => write!(f, "disk {} is used twice", disk.0),
            PoolError::UnknownPool(pool) => write!(f, "no pool {}", pool.0),
            PoolError::BlockSize(size) => write!(
                f,
                "a block of {size} bytes: choose a power of two from 512 to 1048576"
            ),
            PoolError::Size(size) => write!(
                f,
                "a volume of {size} bytes: choose a whole number of blocks, and at least one"
            ),
            PoolError::OtherBlockSize { wanted, others } => write!(
                f,
                "a volume with blocks of {wanted} bytes in a pool with the dynamic layout, where the \
                 other volumes have blocks of {others}: choose {others}, or the static layout"
            ),
            PoolError::TooManyBlocks(size) => write!(
                f,
                "a volume of {size} bytes has more than 4294967295 blocks: choose larger ones"
            ),
            PoolError::TooManySides(sides) => {
                write!(f, "a mirror of {sides} sides: choose at most 64")
            }
            PoolError::UnequalSides(first, other) => write!(
                f,
                "a mirror with sides of {first} and of {other} bytes: give all of its disks one size"
            ),
            PoolError::NoRoom { wanted, left } => write!(
                f,
                "a volume of {wanted} bytes, and the pool has {left} left"
            ),
        }
    }
}

impl core::error::Error for PoolError {}
