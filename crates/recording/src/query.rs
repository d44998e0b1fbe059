//! A question about single I/Os.

use std::ops::RangeInclusive;

use crate::ios::IOS;

/// The I/Os that a caller asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Only I/Os that ended at this time or later, in nanoseconds since 1970.
    pub from_ns: u64,
    /// Only I/Os that ended before this time.
    pub to_ns: u64,
    /// Only I/Os whose time at their device is in this range.
    pub latency_ns: RangeInclusive<u64>,
    /// The columns of [`column`](mod@crate::column) that the caller will read.
    pub columns: Vec<usize>,
}

impl Default for Query {
    /// All columns of all I/Os.
    fn default() -> Query {
        Query {
            from_ns: 0,
            to_ns: u64::MAX,
            latency_ns: 0..=u64::MAX,
            columns: (0..IOS.columns.len()).collect(),
        }
    }
}
