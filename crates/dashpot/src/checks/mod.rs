//! Checks: a CI's expectations of disks and rules, such as `wal.flush.p99 < 30ms`.
//!
//! This module does no I/O. This module parses an expression against known names. It judges the
//! expression from snapshots that the caller has taken of a daemon. Without data an expectation does
//! not hold.

mod expression;
mod judge;
mod metric;
mod names;
mod report;

pub(crate) use expression::Expression;
pub(crate) use judge::{Outcome, Snapshot};
pub(crate) use names::{Names, Subject};
pub(crate) use report::Report;
