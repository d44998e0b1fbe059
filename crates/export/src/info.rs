//! The facts about a server's devices and pools that do not change after its start.

use std::sync::Arc;

use dashpot_engine::pool::{ThrottleConfig, WritePolicy};
use dashpot_rules::CallFiles;

use crate::export::PathCounts;

/// One served disk.
#[derive(Clone, Debug)]
pub struct DiskInfo {
    /// The disk's name. If the disk has an export, this is also the export's name.
    pub name: String,
    /// The disk's size in bytes.
    pub size: u64,
    /// The smallest read or write, in bytes.
    pub block: u32,
    /// The smallest write, in bytes, for which the store need not read first, if that is known.
    pub physical: Option<u32>,
    /// Whether writes are refused.
    pub read_only: bool,
    /// The disk's store, written as in the lab file: `ram`, `file:/path`.
    pub store: String,
    /// A text that identifies the store's bytes; `None` if they are lost when this process ends.
    pub store_id: Option<String>,
    /// The shard that owns the disk.
    pub shard: usize,
    /// The files of a path disk: a program's calls on them become zios of the disk. The path of their
    /// directory has no symbolic links. `None` if the disk is not a path disk.
    pub followed: Option<CallFiles>,
    /// The calls on the files of a path disk that dashpot did not hold as the rules demand.
    pub path_counts: Arc<PathCounts>,
    /// The index of the disk's export. `None` for a disk that only its pool uses, and for a path disk, which
    /// only a program uses.
    pub export: Option<usize>,
    /// The index of the disk's pool, if the disk belongs to a pool.
    pub pool: Option<usize>,
}

/// One served pool.
#[derive(Clone, Debug)]
pub struct PoolInfo {
    pub name: String,
    /// The top-level members of the pool. Each member is the list of its sides, given as indices of disks.
    pub members: Vec<Vec<usize>>,
    /// The throttle that holds the pool's writes back.
    pub throttle: ThrottleConfig,
    /// The pool's room for volumes, in bytes.
    pub size: u64,
    /// The shard that owns the pool, with its disks and volumes.
    pub shard: usize,
}

/// One served volume.
#[derive(Clone, Debug)]
pub struct VolumeInfo {
    /// The volume's name, which is also the name of its export.
    pub name: String,
    /// The volume's size in bytes.
    pub size: u64,
    /// The size of the volume's blocks, in bytes.
    pub block_size: u32,
    /// When the volume acknowledges writes.
    pub write: WritePolicy,
    /// A text that identifies the volume's bytes; `None` if some of them may be lost when this process ends.
    pub store_id: Option<String>,
    /// The index of the volume's pool.
    pub pool: usize,
    /// The index of the volume's export.
    pub export: usize,
}

/// A served disk or volume.
#[derive(Clone, Copy, Debug)]
pub enum ServedDevice<'a> {
    Disk(&'a DiskInfo),
    Volume(&'a VolumeInfo),
}

impl<'a> ServedDevice<'a> {
    /// The name of the disk or volume.
    pub fn name(self) -> &'a str {
        match self {
            ServedDevice::Disk(disk) => &disk.name,
            ServedDevice::Volume(volume) => &volume.name,
        }
    }
}
