//! An export: a device of the engine that clients reach under one name. Today each export is one
//! disk. A volume of a pool will become an export in the same way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashpot_engine::Device;

/// The id of an export of a shard. Connections, clients, stalls and budgets belong to an export.
/// The shard looks up the device behind the export only when it talks to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExportId(pub(crate) u32);

/// One export, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// The name that clients ask for, at most 4,096 bytes.
    pub name: String,
    /// A description for people, on one line; it may be empty.
    pub description: String,
    /// Its size in bytes. If this is not a multiple of `block`, clients cannot reach the last bytes.
    pub size: u64,
    /// The smallest read or write and its alignment, in bytes: a power of two from 1 to 64 KiB.
    pub block: u32,
    /// The smallest write that needs no read before it, in bytes, as far as the store knows.
    pub preferred: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether the export has power. All clones of an export share it.
    pub power: Power,
}

/// How a block device of the host reaches its export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// A loop device over a FUSE file.
    Loop,
    /// The kernel's NBD client.
    Nbd,
    /// The kernel's ublk driver.
    Ublk,
}

/// An export that a shard is to serve, and the engine's device behind it.
pub(crate) struct Served {
    pub(crate) info: ExportInfo,
    pub(crate) device: Device,
}

/// The power of an export. It is on until its shard switches it off.
#[derive(Clone, Debug, Default)]
pub struct Power {
    off: Arc<AtomicBool>,
}

impl Power {
    /// Whether the power is off. Then no client may connect.
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Acquire)
    }

    /// Switches it on or off.
    pub(crate) fn switch(&self, on: bool) {
        self.off.store(!on, Ordering::Release);
    }
}

impl PartialEq for Power {
    fn eq(&self, other: &Power) -> bool {
        self.is_off() == other.is_off()
    }
}

impl Eq for Power {}
