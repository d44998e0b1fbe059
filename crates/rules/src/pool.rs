//! Pools and volumes as a lab describes them. They have names, and refer to disks and pools by index.

use std::path::PathBuf;

use dashpot_engine::PoolId;
use dashpot_engine::pool::{
    Layout, PoolConfig, PoolDisk, ThrottleConfig, Tunables, VolumeConfig, WritePolicy,
};

/// A pool: disks joined by a layout.
#[derive(Clone, Debug)]
pub struct PoolSpec {
    pub name: String,
    /// The pool's top-level members. Each is a list of sides, which are indices in the lab's list of disks.
    pub members: Vec<Vec<usize>>,
    /// How the pool chooses a member for each block.
    pub layout: Layout,
    /// The throttle that holds back the pool's writes.
    pub throttle: ThrottleConfig,
    /// The values of the tunables when the pool starts.
    pub tunables: Tunables,
    /// The file for the labels of those mirror sides that cannot have file attributes, such as block devices.
    pub bitmap: Option<PathBuf>,
}

/// The room of a pool for volumes, in bytes. `size` returns the size of a disk, given by its index. A member
/// has only as much room as its smallest side. Under the static layout, blocks go to the members in turn, so
/// the smallest member limits all.
pub fn pool_capacity(members: &[Vec<usize>], layout: Layout, size: impl Fn(usize) -> u64) -> u64 {
    let smallest = |sides: &Vec<usize>| sides.iter().map(|disk| size(*disk)).min();
    let rooms = members.iter().filter_map(smallest);
    match layout {
        Layout::Static => {
            let least = rooms.min().unwrap_or(0);
            least.saturating_mul(members.len() as u64)
        }
        Layout::Dynamic => rooms.fold(0, u64::saturating_add),
    }
}

impl PoolSpec {
    /// The pool's disks, as indices in the lab's list of disks.
    pub fn disks(&self) -> impl Iterator<Item = usize> + '_ {
        self.members.iter().flatten().copied()
    }

    /// The room of the pool for volumes, in bytes; see [`pool_capacity`].
    pub fn capacity(&self, size: impl Fn(usize) -> u64) -> u64 {
        pool_capacity(&self.members, self.layout, size)
    }

    /// The pool as an engine's configuration. `disk` returns the engine's disk for an index.
    pub fn for_engine(&self, disk: impl Fn(usize) -> PoolDisk) -> PoolConfig {
        let member = |sides: &Vec<usize>| sides.iter().map(|at| disk(*at)).collect();
        PoolConfig {
            members: self.members.iter().map(member).collect(),
            layout: self.layout,
            throttle: self.throttle,
            tunables: self.tunables.clone(),
        }
    }
}

/// A block device carved from a pool.
#[derive(Clone, Debug)]
pub struct VolumeSpec {
    /// The volume's name, `POOL/NAME`, which is also its export name.
    pub name: String,
    /// The index of the volume's pool in the lab's list of pools.
    pub pool: usize,
    /// The volume's size in bytes.
    pub size: u64,
    /// The size of a block in bytes.
    pub block_size: u32,
    /// When the volume acknowledges writes.
    pub write: WritePolicy,
}

impl VolumeSpec {
    /// The volume as an engine's configuration. `pool` is the engine's id for the volume's pool.
    pub fn for_engine(&self, pool: PoolId) -> VolumeConfig {
        VolumeConfig {
            pool,
            size: self.size,
            block_size: self.block_size,
            write: self.write,
        }
    }
}

#[cfg(test)]
mod tests {
    use dashpot_engine::pool::Layout;

    use super::pool_capacity;

    #[test]
    fn the_smallest_member_limits_only_a_static_pool() {
        let sizes = [64, 192, 100, 90];
        let size = |disk: usize| sizes[disk];
        let single = [vec![0], vec![1]];
        assert_eq!(pool_capacity(&single, Layout::Static, size), 128);
        assert_eq!(pool_capacity(&single, Layout::Dynamic, size), 256);
        let mirrors = [vec![2, 3], vec![1]];
        assert_eq!(pool_capacity(&mirrors, Layout::Static, size), 180);
        assert_eq!(pool_capacity(&mirrors, Layout::Dynamic, size), 282);
        assert_eq!(pool_capacity(&[], Layout::Static, size), 0);
    }
}
