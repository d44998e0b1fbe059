//! The state of a power cut whose work takes several steps.

use crate::lines::{Line, Lines};

/// A power cut whose work has not ended.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) stage: Stage,
    /// The volume that the stage works on, and the first of its blocks that the stage has not yet looked at.
    pub(super) volume: usize,
    pub(super) at: u32,
    /// Requests that came after the cut, in the order of arrival.
    pub(super) waiting: Line,
    /// The requests of `waiting`.
    pub(super) lines: Lines<()>,
}

/// The stages of a cut. A cut ends each stage for all volumes before it begins the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Blocks,
    Extents,
    Locks,
    Places,
    /// The reads of blocks that were in flight.
    Reads,
    /// The writes that were in flight or queued.
    Writes,
    /// Nothing is left to lose, so the waiting requests start.
    Over,
}

impl Stage {
    pub(super) fn next(self) -> Stage {
        match self {
            Stage::Blocks => Stage::Extents,
            Stage::Extents => Stage::Locks,
            Stage::Locks => Stage::Places,
            Stage::Places => Stage::Reads,
            Stage::Reads => Stage::Writes,
            Stage::Writes | Stage::Over => Stage::Over,
        }
    }
}
