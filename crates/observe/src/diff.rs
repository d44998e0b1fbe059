//! The difference between the I/Os of two sides, by every fact about them.
//!
//! The slow I/Os of the side in question took longer than is usual on the other side, or a condition
//! selects them. For each value of each dimension, the value's share of the slow time is compared with
//! its share of the I/Os. A value with 98 % of the slow time and 2 % of the I/Os differs by 96 points.
//! So an effect on few I/Os is found, and a client that only does most of the work is not blamed.

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
