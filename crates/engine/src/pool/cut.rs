//! A power cut whose work takes several steps: it frees the blocks, places and I/Os that the cut has made
//! useless, and keeps the requests that came after it.

use alloc::boxed::Box;

use super::block_io::{BlockRead, BlockWrite, Cause};
use super::block_map::BlockMap;
use super::blocks::Block;
use super::jobs::Jobs;
use super::slab::Slab;
use super::step::Step;
use super::volume::Volume;
use crate::lines::{Line, Lines};
use crate::zio::ZioId;

/// A power cut whose work has not ended.
#[derive(Debug)]
pub(super) struct Cut {
    stage: Stage,
    /// The volume that the stage works on, and the first of its blocks that the stage has not yet looked at.
    volume: usize,
    at: u32,
    /// Requests that came after the cut, in the order of arrival.
    waiting: Line,
    /// The requests of `waiting`.
    lines: Lines<()>,
}

/// What a pool had in memory at the moment of the cut.
pub(super) struct Memory<'a> {
    pub(super) volumes: &'a mut [Volume],
    pub(super) map: &'a mut BlockMap,
    pub(super) reads: &'a mut Slab<BlockRead>,
    pub(super) writes: &'a mut Slab<BlockWrite>,
}

/// The stages of a cut. A cut ends each stage for all volumes before it begins the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
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

impl Cut {
    pub(super) fn begin() -> Box<Cut> {
        Box::new(Cut {
            stage: Stage::Blocks,
            volume: 0,
            at: 0,
            waiting: Line::EMPTY,
            lines: Lines::default(),
        })
    }

    /// Whether memory still has what the cut has made useless.
    pub(super) fn loses(&self) -> bool {
        self.stage != Stage::Over
    }

    /// Makes a request wait for the end of the cut.
    pub(super) fn wait(&mut self, id: ZioId) {
        self.lines.push_back(&mut self.waiting, id, ());
    }

    /// The next request that has waited.
    pub(super) fn next_waiting(&mut self) -> Option<ZioId> {
        let next = self.lines.pop_front(&mut self.waiting);
        next.map(|(id, ())| id)
    }

    /// Removes a request from those that wait.
    pub(super) fn leave(&mut self, id: ZioId) {
        self.lines.take(&mut [&mut self.waiting], id);
    }

    /// Frees as much as the step may touch. Returns whether nothing is left to free.
    pub(super) fn lose_some(
        &mut self,
        memory: &mut Memory<'_>,
        jobs: &mut Jobs,
        step: &mut Step<'_>,
    ) -> bool {
        while self.loses() && jobs.has_room() {
            if self.lose_next(memory, step) {
                jobs.touch();
                continue;
            }
            (self.volume, self.at) = (self.volume + 1, 0);
            if self.volume >= memory.volumes.len() {
                (self.stage, self.volume) = (self.stage.next(), 0);
            }
            if self.stage == Stage::Over {
                memory.reads.clear();
                memory.writes.clear();
            }
        }
        !self.loses()
    }

    /// Frees one more of the things that the stage is about. Returns false if the stage has nothing left to do
    /// for this volume.
    fn lose_next(&mut self, memory: &mut Memory<'_>, step: &mut Step<'_>) -> bool {
        let volume = memory.volumes.get_mut(self.volume);
        let next = match self.stage {
            Stage::Blocks => volume.and_then(|volume| lose_block(volume, self.at, step)),
            Stage::Extents => return volume.is_some_and(|volume| volume.extents.lose_one()),
            Stage::Locks => volume.and_then(|volume| volume.locks.lose_next(self.at)),
            Stage::Places => {
                let placement = memory.map.placement_mut();
                placement.and_then(|placement| placement.lose_next(self.volume, self.at))
            }
            Stage::Reads => lose_read(memory.reads, self.at, step),
            Stage::Writes => lose_write(memory.writes, self.at, step),
            Stage::Over => None,
        };
        self.at = next.unwrap_or(self.at);
        next.is_some()
    }
}

impl Stage {
    fn next(self) -> Stage {
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

/// Loses the versions of a block. Returns the block at which to go on.
fn lose_block(volume: &mut Volume, from: u32, step: &mut Step<'_>) -> Option<u32> {
    let at = volume.blocks.next_used(from..u32::MAX)?;
    let block: Block = volume.blocks.edit(at, core::mem::take);
    for content in block.contents() {
        step.free_content(content);
    }
    while volume.watchers.take(at).is_some() {}
    Some(at + 1)
}

/// Loses a read that was in flight. Returns the slot at which to go on.
fn lose_read(reads: &mut Slab<BlockRead>, from: u32, step: &mut Step<'_>) -> Option<u32> {
    let at = reads.next_live(from)?;
    step.free(reads.remove(at).buf);
    Some(at + 1)
}

/// Loses a write that was in flight or queued. Frees its content, unless the content was a version of a block.
/// Returns the slot at which to go on.
fn lose_write(writes: &mut Slab<BlockWrite>, from: u32, step: &mut Step<'_>) -> Option<u32> {
    let at = writes.next_live(from)?;
    let write = writes.remove(at);
    if matches!(write.cause, Cause::Through(_) | Cause::Replaced) {
        step.free_content(write.content);
    }
    Some(at + 1)
}
