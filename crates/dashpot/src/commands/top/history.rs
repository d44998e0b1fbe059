//! What a disk did in the last intervals: one column of the charts for each.

use std::collections::VecDeque;

use super::look::Done;
use dashpot_report::heatmap;

/// The last intervals of a disk, the oldest first.
#[derive(Clone, Default)]
pub(super) struct History {
    columns: VecDeque<Column>,
}

/// An interval.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) per_second: u64,
    /// Of fewer than 100 I/Os the largest, which is what the nearest rank gives.
    pub(super) p99_ns: Option<u64>,
    pub(super) heat: heatmap::Column,
}

impl History {
    pub(super) fn push(&mut self, done: &Done) {
        if self.columns.len() == COLUMNS_MAX {
            self.columns.pop_front();
        }
        self.columns.push_back(Column {
            per_second: done.all.round() as u64,
            p99_ns: done.p99_ns.or(done.max_ns),
            heat: done.heat.clone(),
        });
    }

    /// As many of the last as there is room for, the oldest first.
    pub(super) fn last(&self, room: usize) -> impl ExactSizeIterator<Item = &Column> {
        let skipped = self.columns.len().saturating_sub(room);
        self.columns.range(skipped..)
    }
}

/// More than a terminal is wide.
const COLUMNS_MAX: usize = 512;
