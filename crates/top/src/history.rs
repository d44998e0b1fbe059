//! The history of a disk: one column of the charts for each of the last intervals.

use std::collections::VecDeque;

use dashpot_text::heatmap;

use crate::frame::Done;

/// The last intervals of a disk, the oldest first.
#[derive(Clone, Default)]
pub(crate) struct History {
    columns: VecDeque<IntervalFigures>,
}

#[derive(Clone, Debug)]
pub(crate) struct IntervalFigures {
    pub(crate) per_second: u64,
    /// The p99 of the interval. With fewer than 100 I/Os, it is the largest latency, which is the p99 by
    /// nearest rank.
    pub(crate) p99_ns: Option<u64>,
    pub(crate) heat: heatmap::HeatColumn,
}

impl History {
    pub(crate) fn push(&mut self, done: &Done) {
        if self.columns.len() == COLUMNS_MAX {
            self.columns.pop_front();
        }
        self.columns.push_back(IntervalFigures {
            per_second: done.all.round() as u64,
            p99_ns: done.p99_ns.or(done.max_ns),
            heat: done.heat.clone(),
        });
    }

    /// The last intervals, at most `room`, the oldest first.
    pub(crate) fn last(&self, room: usize) -> impl ExactSizeIterator<Item = &IntervalFigures> {
        let skipped = self.columns.len().saturating_sub(room);
        self.columns.range(skipped..)
    }
}

/// The maximum number of columns that a history keeps. No terminal is wider.
const COLUMNS_MAX: usize = 512;
