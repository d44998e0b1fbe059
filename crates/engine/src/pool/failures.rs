//! The failures of a pool: how many there are, when to repeat them, and the writes that wait for that.

use alloc::collections::VecDeque;

use super::block_io::Retry;
use crate::lines::{Line, Lines};
use crate::time::{Duration, Instant};
use crate::zio::ZioId;

/// The failures of a pool that have not yet been repeated successfully.
#[derive(Debug)]
pub(super) struct Failures {
    /// The number of blocks, extents and zios without bytes whose last write failed, plus the number of disks
    /// whose last sync failed. The pool is degraded while any are left.
    failing: u32,
    /// The operations to repeat, in the order of their times.
    retries: VecDeque<(Instant, Retry)>,
    /// Clients' writes that wait until the pool is no longer degraded.
    stalled: Line,
    /// The requests of `stalled`.
    lines: Lines<()>,
}

impl Failures {
    pub(super) fn none() -> Failures {
        Failures {
            failing: 0,
            retries: VecDeque::new(),
            stalled: Line::EMPTY,
            lines: Lines::default(),
        }
    }

    /// Schedules a failed operation to be repeated. `had_failed`: whether this is itself a repetition.
    pub(super) fn failed(&mut self, what: Retry, had_failed: bool, now: Instant) {
        self.failing += u32::from(!had_failed);
        self.retries.push_back((now + RETRY_AFTER, what));
    }

    /// Notes that an operation that had failed has been repeated successfully.
    pub(super) fn repeated(&mut self) {
        debug_assert!(self.failing > 0, "more has been repeated than has failed");
        self.failing -= 1;
    }

    /// Whether a write of acknowledged data, or a sync of a disk, has failed and has not yet been repeated
    /// successfully.
    pub(super) fn is_degraded(&self) -> bool {
        self.failing > 0
    }

    /// When the next operation is to be repeated, or [`Instant::NEVER`].
    pub(super) fn next_retry(&self) -> Instant {
        self.retries.front().map_or(Instant::NEVER, |(at, _)| *at)
    }

    /// The next operation that is to be repeated now.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Retry> {
        let due = self.next_retry() <= now;
        due.then(|| self.retries.pop_front())?.map(|(_, what)| what)
    }

    /// Makes a client's write wait until the pool is no longer degraded.
    pub(super) fn stall(&mut self, id: ZioId) {
        self.lines.push_back(&mut self.stalled, id, ());
    }

    /// Takes a write out of those that wait. Does nothing if it does not wait.
    pub(super) fn leave(&mut self, id: ZioId) {
        self.lines.take(&mut [&mut self.stalled], id);
    }

    /// The next write that waits no longer, because the pool is not degraded.
    pub(super) fn pop_resumed(&mut self) -> Option<ZioId> {
        if self.is_degraded() {
            return None;
        }
        self.lines.pop_front(&mut self.stalled).map(|(id, ())| id)
    }
}

/// How long the pool waits before it repeats a failed operation.
const RETRY_AFTER: Duration = Duration::from_secs(1);
