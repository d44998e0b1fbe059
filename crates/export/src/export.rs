//! An export: the thing that clients reach under one name. Today it is a disk; a volume will be one, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashpot_engine::DiskId;

use crate::store::Store;

/// One export of a shard. Connections, clients, stalls and budgets belong to an export; only where a
/// shard tells the engine, it looks up the device behind the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExportId(pub(crate) u32);

/// One export, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// The name that clients ask for, at most 4,096 bytes.
    pub name: String,
    /// A line for people, or nothing.
    pub description: String,
    /// Its size in bytes: a multiple of `block`, or its last bytes cannot be reached.
    pub size: u64,
    /// The smallest read or write and its alignment, in bytes: a power of two, 1 to 64 KiB.
    pub block: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether it can be used at all; all clones of an export share it.
    pub power: Power,
}

/// An export that a shard is to serve: a disk of the engine, and its store.
pub(crate) struct Served {
    pub(crate) info: ExportInfo,
    pub(crate) disk: DiskId,
    pub(crate) store: Store,
}

/// The power of an export. It is on until its shard switches it off.
#[derive(Clone, Debug, Default)]
pub struct Power {
    off: Arc<AtomicBool>,
}

impl Power {
    /// Whether it is off. Then no client may connect.
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
