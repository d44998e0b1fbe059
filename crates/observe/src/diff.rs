//! Compares the I/Os of two sides by every known fact about them.
//!
//! The slow I/Os of the side in question are the I/Os that took longer than is usual on the other side, or
//! the I/Os that a condition selects. For each value of each dimension, its share of the slow time is
//! compared with its share of the I/Os. For example, a value with 98 % of the slow time but only 2 % of the
//! I/Os differs by 96 points. This finds effects on few I/Os, and does not blame a client merely for doing
//! most of the work.

mod beside;
mod comparison;
mod rates;
mod slow;
mod sums;
mod thresholds;

pub use comparison::{Beside, Compared, Comparison, Finding, SideSum, Spent, ValueShare};
pub use rates::{Metered, Rate};
pub use slow::{Slow, Usual};
pub use sums::{Diff, Hung, Side};
pub use thresholds::{FACTOR_LEAST, IOS_LEAST, POINTS_LEAST};

#[cfg(test)]
mod tests;
