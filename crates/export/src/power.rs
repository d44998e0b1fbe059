//! The words for power cuts: what is cut, and what that takes.
//!
//! Only a disk on a `lossy` store has a cache that can lose something.

use std::collections::BTreeMap;

use dashpot_engine::{Duration, Errno};

/// A power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Which of the writes that no flush has covered survive.
    pub keep: Keep,
    /// The unit at which a write is torn, in bytes, a multiple of 512. None if each write survives
    /// whole or not at all.
    pub tear: Option<u64>,
    /// Seeds the draws of what survives.
    pub seed: u64,
    /// What the disk does afterwards.
    pub then: Then,
}

/// Which of the writes that no flush has covered survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// None of them.
    None,
    /// All of them.
    All,
    /// Each of them with a chance of one half.
    Random,
}

/// What a disk does after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It goes on under its clients: only its cache is lost.
    GoesOn,
    /// Its connections end and no client can connect, until it is restarted.
    Off,
    /// Its connections end, and it serves the data that has survived. A disk that is off is served again
    /// without a loss.
    Restart,
}

impl Cut {
    /// Whether the disk goes on under its clients.
    pub(crate) fn goes_on(&self) -> bool {
        self.then == Then::GoesOn
    }
}

/// The loss in a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Acknowledged writes that no flush had covered, and their bytes.
    pub unflushed: Sum,
    /// Those of them of which something is missing, and how many bytes are.
    pub lost: Sum,
    /// Those of which something is there.
    pub torn: u64,
    /// Writes that were on their way: no client had been told that they were done.
    pub unacknowledged: u64,
    /// Bytes that had reached the medium since the last flush only because the cache was full.
    pub early_bytes: u64,
    /// Whether the disk was off, so that nothing was left to lose.
    pub was_off: bool,
    /// The missing writes, by client.
    pub clients: BTreeMap<String, Sum>,
    /// The writes of which something is missing, in the order in which they were made.
    pub writes: Vec<LostWrite>,
}

/// So many writes, with so many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Writes.
    pub writes: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.writes += 1;
        self.bytes += bytes;
    }
}

/// A write of which something is missing after a power cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostWrite {
    /// The client that wrote it.
    pub client: String,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// How many of its bytes are missing.
    pub missing: u64,
    /// How long ago the store had it.
    pub age: Duration,
}

/// Why the power was not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutError {
    /// The store has no volatile cache.
    LosesNothing,
    /// The disk has no power already.
    IsOff,
    /// The store below has failed.
    Failed(Errno),
}
