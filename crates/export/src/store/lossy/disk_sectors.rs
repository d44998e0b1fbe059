//! The sectors of a disk.

/// The smallest piece of a torn write, in bytes.
pub(in crate::store) const SECTOR: u64 = 512;
