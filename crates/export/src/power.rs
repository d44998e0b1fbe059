//! The types for power cuts: the choice of the writes that are lost, and the report of the loss.
//!
//! Only a disk on a `lossy` store has a cache that can lose writes.

use std::collections::BTreeMap;

use dashpot_engine::{Duration, Errno};

/// A power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The choice of the writes that survive although no flush has covered them.
    pub keep: Keep,
    /// The unit in which writes are torn, in bytes: a multiple of 512. `None` if each write survives whole or
    /// not at all.
    pub tear: Option<u64>,
    /// The seed for the random choice of the writes that survive.
    pub seed: u64,
    /// The state of the disk after the cut.
    pub then: Then,
}

/// The choice of the writes that survive a power cut although no flush has covered them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// No write survives.
    None,
    /// Every write survives.
    All,
    /// Each write survives with probability one half.
    Random,
}

/// The state of a disk after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The disk keeps serving its clients and loses only its cache.
    GoesOn,
    /// The disk ends its connections, and accepts none until it is restarted.
    Off,
    /// The disk ends its connections, and then serves the data that has survived. If the disk is already off,
    /// it is served again and loses nothing.
    Restart,
}

impl Cut {
    /// Whether the disk keeps serving its clients.
    pub(crate) fn goes_on(&self) -> bool {
        self.then == Then::GoesOn
    }
}

/// The losses of a power cut of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The acknowledged writes that no flush had covered.
    pub unflushed: Sum,
    /// The `unflushed` writes that are not whole any more, and how many of their bytes are missing.
    pub lost: Sum,
    /// How many of the `lost` writes have survived in part.
    pub torn: u64,
    /// How many writes no client was told of. They are lost, unless the disk goes on; then only those count
    /// that still wait for their replies, and these stay.
    pub unacknowledged: u64,
    /// Since the last flush, how many bytes the store has written to the medium early because its cache was
    /// full.
    pub early_bytes: u64,
    /// Whether the disk was off, and therefore had nothing left to lose.
    pub was_off: bool,
    /// The lost writes of each client.
    pub clients: BTreeMap<String, Sum>,
    /// The lost writes, in the order in which the store received them.
    pub writes: Vec<LostWrite>,
}

/// The losses of a power cut of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolLoss {
    /// The txgs that were only in memory, each with the number of its dirty bytes. The pool had acknowledged
    /// these bytes to clients. Empty if the pool went on, because then the pool's host kept its memory.
    pub txgs: Vec<(u64, u64)>,
    /// The losses of each disk's cache, in the order of the pool's disks.
    pub disks: Vec<Loss>,
    /// Whether the pool was off, and therefore had nothing left to lose.
    pub was_off: bool,
}

/// A number of writes, and the number of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The number of writes.
    pub writes: u64,
    /// The number of bytes.
    pub bytes: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.writes += 1;
        self.bytes += bytes;
    }
}

/// A write that is missing, in whole or in part, after a power cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostWrite {
    /// The client that made the write.
    pub client: String,
    /// Where the write begins on the disk, in bytes.
    pub offset: u64,
    /// The length of the write in bytes.
    pub length: u64,
    /// How many bytes of the write are missing.
    pub missing: u64,
    /// How long before the cut the store had received the write.
    pub age: Duration,
}

/// The reason that the power was not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutError {
    /// The store has no volatile cache.
    LosesNothing,
    /// The disk is already off.
    IsOff,
    /// The store below the cache has failed.
    Failed(Errno),
}
