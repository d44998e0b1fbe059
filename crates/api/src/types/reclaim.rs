//! What a process needs that serves a block device of its own host.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether the daemon can go on when the host is short of memory. The kernel then writes to disks to
/// free some, perhaps to one that the daemon serves, and the daemon must not wait for that.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Reclaim {
    /// Whether its memory stays in memory.
    pub locked: bool,
    /// Whether the kernel knows it as a part of the way to a disk (`PR_SET_IO_FLUSHER`).
    pub io_flusher: bool,
    /// What it lacks, with the remedy.
    pub lacks: Vec<String>,
}
