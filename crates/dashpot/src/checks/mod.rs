//! Checks: what a CI expects of disks and rules, `wal.flush.p99 < 30ms`, and whether it holds.
//!
//! Pure: an expression is parsed against the names that there are, and judged by looks at a daemon
//! that the caller has taken. What cannot be known does not hold: no data is no success.

mod expression;
mod judge;
mod metric;
mod names;

pub(crate) use expression::Expression;
pub(crate) use judge::{Look, Outcome};
pub(crate) use names::{Names, Subject};
