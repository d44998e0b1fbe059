//! The root: routes each input to the disk it is for.

use alloc::vec::Vec;

use crate::command::{Action, Input};
use crate::time::Instant;
use crate::zio::DiskId;

/// What a disk is, to the engine.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// Seeds the draws of its rules.
    pub seed: u64,
}

/// The disks of one shard or of one simulation.
#[derive(Debug, Default)]
pub struct Engine {}

impl Engine {
    /// Adds a disk.
    pub fn add_disk(&mut self, _config: DiskConfig) -> DiskId {
        DiskId(0)
    }

    /// Takes one input, and appends to `actions` all that follows from it.
    pub fn step(&mut self, _now: Instant, _input: Input<'_>, _actions: &mut Vec<Action>) {}

    /// When to step again with [`Input::Tick`].
    pub fn next_deadline(&self) -> Option<Instant> {
        None
    }
}
