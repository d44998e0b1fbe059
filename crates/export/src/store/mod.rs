//! Where the bytes of a disk really are.

use std::path::PathBuf;

/// Which store a disk has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreConfig {
    /// Sparse memory.
    Ram,
    /// Nothing: reads give zeroes, writes are forgotten.
    Null,
    /// A file.
    File(PathBuf),
}
