//! The writes of new blocks that wait until a member takes them.

use alloc::collections::VecDeque;

use super::stats::Class;

/// Writes that wait for a place, by id. A write may be listed twice, or may meanwhile have got its place.
#[derive(Debug, Default)]
pub(super) struct Unplaced {
    sync: VecDeque<u32>,
    other: VecDeque<u32>,
    /// Writes that need no place and have nothing to do: trims and zeroes of blocks that no disk has.
    done_at_once: VecDeque<u32>,
}

impl Unplaced {
    pub(super) fn push(&mut self, id: u32, class: Class) {
        match class {
            Class::SyncWrite => self.sync.push_back(id),
            _ => self.other.push_back(id),
        }
    }

    /// The next write to place. Writes that a client waits for come first.
    ///
    /// Drops at most `most` out-of-date entries, and subtracts their number from `most`. If `most` has become
    /// zero, `None` means that the caller must ask again.
    pub(super) fn next(
        &mut self,
        waits: impl Fn(u32, bool) -> bool,
        most: &mut u32,
    ) -> Option<u32> {
        for (list, is_sync) in [(&mut self.sync, true), (&mut self.other, false)] {
            while let Some(id) = list.front().copied() {
                if waits(id, is_sync) {
                    return Some(id);
                }
                *most = most.checked_sub(1)?;
                list.pop_front();
            }
        }
        None
    }

    /// Notes a write that has nothing to do.
    pub(super) fn push_done(&mut self, id: u32) {
        self.done_at_once.push_back(id);
    }

    pub(super) fn pop_done(&mut self) -> Option<u32> {
        self.done_at_once.pop_front()
    }
}
