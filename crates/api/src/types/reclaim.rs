//! The rights and settings that a process needs to serve a block device of its own host.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether the daemon can continue when the host is short of memory. To free memory, the kernel then writes
/// to disks, perhaps to one of the daemon's, so the daemon must not wait for memory.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Reclaim {
    /// Whether the daemon's memory is locked.
    pub locked: bool,
    /// Whether the kernel treats the daemon as a part of the path to a disk (`PR_SET_IO_FLUSHER`).
    pub io_flusher: bool,
    /// The rights or settings that the daemon lacks, with the remedy.
    pub lacks: Vec<String>,
}
