//! The configuration of a server.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use dashpot_rules::{Address, DiskConfig, PoolSpec, VolumeSpec};

/// The configuration of a server: its disks, pools and volumes, and where clients
/// connect.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The number of shard threads.
    pub shards: usize,
    /// The seed for the random draws of the rules.
    pub seed: u64,
    /// The disks, in the order in which clients list them.
    pub disks: Vec<DiskConfig>,
    /// The pools made of the disks. Clients cannot reach the disks of a pool.
    pub pools: Vec<PoolSpec>,
    /// The volumes carved from the pools. Clients list them after the disks.
    pub volumes: Vec<VolumeSpec>,
    /// Where NBD clients connect.
    pub listen: Vec<Address>,
    /// Listening sockets that the parent process has handed over. NBD clients connect to these sockets,
    /// too.
    pub handed: Vec<Arc<OwnedFd>>,
    /// Whether the RAM disks together may be larger than the available memory.
    pub overcommit: bool,
    /// Whether shards may spin to meet their deadlines.
    pub spin: Spin,
}

/// Whether a shard may spin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spin {
    /// A shard spins if no CPU quota is in force, but spends at most a fixed share of a core on spinning.
    #[default]
    Auto,
    /// No shard spins.
    Never,
}
