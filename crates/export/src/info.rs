//! The devices and pools of a server, as they were at the start.

use dashpot_engine::pool::{ThrottleConfig, WritePolicy};
use dashpot_rules::CallFiles;

/// One served disk.
#[derive(Clone, Debug)]
pub struct DiskInfo {
    /// Its name, which is also its export name if it has an export.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The smallest read or write, in bytes.
    pub block: u32,
    /// The smallest write that the store does without reading, in bytes, if it is known.
    pub physical: Option<u32>,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Its store, in the words of the lab file: `ram`, `file:/path`.
    pub store: String,
    /// Identifies the bytes of its store; `None` if they are lost when this process ends.
    pub store_id: Option<String>,
    /// The shard that owns it.
    pub shard: usize,
    /// The files that a program uses, without links in the path of their directory, if calls of that program are its zios.
    pub followed: Option<CallFiles>,
    /// The index of its export; `None` for a disk of a pool, which only the pool reaches, and for a disk
    /// with a directory, which only a program reaches.
    pub export: Option<usize>,
    /// The index of its pool, if it belongs to one.
    pub pool: Option<usize>,
}

/// One served pool.
#[derive(Clone, Debug)]
pub struct PoolInfo {
    /// Its name.
    pub name: String,
    /// Its top-level members, each with its sides, as indices of disks.
    pub members: Vec<Vec<usize>>,
    /// The throttle that holds its writes back.
    pub throttle: ThrottleConfig,
    /// The room for volumes, in bytes.
    pub size: u64,
    /// The shard that owns it, with its disks and volumes.
    pub shard: usize,
}

/// One served volume.
#[derive(Clone, Debug)]
pub struct VolumeInfo {
    /// Its name, which is also its export name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes in a block.
    pub block_size: u32,
    /// When it acknowledges writes.
    pub write: WritePolicy,
    /// Identifies its bytes; `None` if some of them may be lost when this process ends.
    pub store_id: Option<String>,
    /// The index of its pool.
    pub pool: usize,
    /// The index of its export.
    pub export: usize,
}

/// A served disk or volume.
#[derive(Clone, Copy, Debug)]
pub enum ServedDevice<'a> {
    /// A disk.
    Disk(&'a DiskInfo),
    /// A volume.
    Volume(&'a VolumeInfo),
}

impl<'a> ServedDevice<'a> {
    /// Its name.
    pub fn name(self) -> &'a str {
        match self {
            ServedDevice::Disk(disk) => &disk.name,
            ServedDevice::Volume(volume) => &volume.name,
        }
    }
}
