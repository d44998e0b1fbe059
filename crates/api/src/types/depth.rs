//! How many I/Os clients keep in flight.

use dashpot_engine::{DepthSummary, DepthTimes};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many zios clients had in flight at a time. Clients decide that, and many bound it without saying
/// so: what waits above the bound waits longer than a rule says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Depth {
    /// The most at once. 512 stands for any number above.
    pub most: u32,
    /// The number that was in flight for the longest time; 512 stands for any number above, too.
    pub usual: u32,
    /// The share of the time with any in flight that had this number, in percent.
    pub usual_percent: u32,
}

impl Depth {
    /// What the time spent at each depth comes to.
    pub fn of(summary: DepthSummary) -> Depth {
        let busy = u128::from(summary.busy.as_nanos());
        let share = |part: u128| part.checked_div(busy).unwrap_or_default() as u64;
        Depth {
            most: summary.most,
            usual: summary.usual,
            usual_percent: share(u128::from(summary.usual_time.as_nanos()) * 100) as u32,
        }
    }

    /// Whether the most that clients had in flight is a number that was told apart from those above.
    pub fn is_exact(&self) -> bool {
        self.most < DepthTimes::DEEPEST
    }

    /// Whether clients stayed at their most for nearly all of the time, as those do that have more to
    /// ask and may not. A client that asks one by one does so, too.
    pub fn looks_bounded(&self) -> bool {
        self.most > 1
            && self.is_exact()
            && self.usual == self.most
            && self.usual_percent >= BOUNDED_PERCENT
    }
}

/// The time that a disk has spent with so many zios in flight. The difference of two answers is the
/// interval between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DepthTime {
    /// The number of zios; 512 stands for any number above.
    pub depth: u32,
    /// The time.
    pub time_ns: u64,
}

/// The share of the time from which on a depth looks like a bound.
const BOUNDED_PERCENT: u32 = 80;
