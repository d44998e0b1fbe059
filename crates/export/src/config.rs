//! What a server serves, and where.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::shard::sleeper::Spin;
use crate::store::StoreConfig;

/// What a server serves.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Number of shard threads.
    pub shards: usize,
    /// Seeds the draws of the rules.
    pub seed: u64,
    /// The disks, in the order in which clients see them listed.
    pub disks: Vec<DiskConfig>,
    /// Where NBD clients connect.
    pub listen: Vec<Address>,
    /// Whether RAM disks may be larger than the memory there is.
    pub overcommit: bool,
    /// Whether shards spin to meet their deadlines.
    pub spin: Spin,
}

/// One disk.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// Its name, which is also its export name.
    pub name: String,
    /// Where its bytes are.
    pub store: StoreConfig,
    /// Its size in bytes, or that of its store.
    pub size: Option<u64>,
    /// The smallest read or write, in bytes: a power of two, 1 to 64 KiB.
    pub block: u32,
    /// Whether writes are refused.
    pub read_only: bool,
}

/// Where a socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A path in the file system.
    Unix(PathBuf),
    /// A TCP address; port 0 picks one.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(addr) => write!(f, "tcp:{addr}"),
        }
    }
}
