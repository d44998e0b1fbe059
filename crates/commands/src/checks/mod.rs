//! Checks: what a CI job expects of disks and rules, such as `wal.flush.p99 < 30ms`.
//!
//! This module does no I/O. The module looks up the names in an expression among known names, and judges the
//! expression from snapshots that the caller has taken of a daemon. An expectation for which there is no data
//! does not hold.

mod expression;
mod judge;
mod metric;
mod names;
mod report;

pub(crate) use expression::Expression;
pub(crate) use judge::{Outcome, Snapshot};
pub(crate) use names::{Names, Subject};
pub(crate) use report::{Ran, Report, effect};
