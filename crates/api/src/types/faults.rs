//! What rules have done to the data of a disk.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What rules have done to the data of a disk.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Faults {
    /// The name of the disk.
    pub disk: String,
    /// How many of the disk's bytes are wrong now: no client has written them again since a rule damaged them.
    pub wrong_bytes: u64,
    /// The number of places that have wrong bytes now.
    pub places: u64,
    /// The places with wrong bytes, in the order of their offsets, as many as asked for.
    pub wrong: Vec<ByteRange>,
    /// Whether there are so many places with wrong bytes that rules leave the disk's data alone.
    pub full: bool,
    /// Whether there was no room to note that some of these bytes are right again.
    pub inexact: bool,
    /// How many wrong bytes the disk's pool has read since the disk is served. It may have written copies of them to
    /// other disks, or back to this one; `wrong` does not list those.
    #[serde(default)]
    pub read_by_pool_bytes: u64,
    /// How many I/Os rules have damaged since the disk is served.
    pub damaged: u64,
    /// The last damaged I/Os, as many as asked for and kept, the oldest first.
    pub faults: Vec<DamagedIo>,
}

/// Bytes of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ByteRange {
    /// The first byte.
    pub start_bytes: u64,
    /// The first byte after the range.
    pub end_bytes: u64,
}

/// A damaged I/O.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DamagedIo {
    /// Time since the store was asked.
    pub age_ns: u64,
    /// The id of the rule.
    pub rule: u32,
    /// What the rule did: `drop`, `lie`, `torn`, `flip`, `zero`, `random` or `misdirect`.
    #[schema(example = "drop")]
    pub damage: String,
    /// The seed of the place and of the wrong bytes.
    pub seed: u64,
    /// The name of the client.
    pub client: String,
    /// The operation.
    pub op: String,
    /// The first byte of the I/O.
    pub offset_bytes: u64,
    /// The length of the I/O.
    pub length_bytes: u64,
    /// The bytes that have been wrong since then. For a read, the wrong bytes of its reply.
    pub wrong: Vec<ByteRange>,
    /// Where a misdirected I/O went instead; null for others, and if the disk has no other place: then a write is
    /// lost, and a read gets zeroes.
    pub other_bytes: Option<u64>,
}
