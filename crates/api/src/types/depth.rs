//! How many I/Os clients keep in flight.

use dashpot_engine::{DepthSummary, DepthTimes};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many zios clients had in flight at a time. Clients choose this number, and many of them limit it
/// without saying so. If a client holds a program's request back because of such a limit, the program sees a
/// longer latency than the rule asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Depth {
    /// The most zios that were in flight at once. 512 means 512 or more.
    pub most: u32,
    /// The number of zios that were in flight for the largest part of the time. 512 means 512 or more.
    pub usual: u32,
    /// Time with exactly `usual` zios in flight, in percent of the time with any zio in flight.
    pub usual_percent: u32,
}

impl Depth {
    /// A summary of the time spent at each depth.
    pub fn of(summary: DepthSummary) -> Depth {
        let busy = u128::from(summary.busy.as_nanos());
        let share = |part: u128| part.checked_div(busy).unwrap_or_default() as u64;
        Depth {
            most: summary.most,
            usual: summary.usual,
            usual_percent: share(u128::from(summary.usual_time.as_nanos()) * 100) as u32,
        }
    }

    /// Whether `most` is an exact number. 512 is not, because it also stands for all larger numbers.
    pub fn is_exact(&self) -> bool {
        self.most < DepthTimes::DEEPEST
    }

    /// Whether clients kept their greatest number of zios in flight for most of the time. Clients that have
    /// more requests and cannot send them look like this, but so do clients that never have more requests.
    pub fn looks_bounded(&self) -> bool {
        self.most > 1
            && self.is_exact()
            && self.usual == self.most
            && self.usual_percent >= BOUNDED_PERCENT
    }
}

/// The time that a disk has spent with a given number of zios in flight. The difference between two answers
/// describes the interval between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DepthTime {
    /// The number of zios; 512 means 512 or more.
    pub depth: u32,
    /// The time with this many zios in flight.
    pub time_ns: u64,
}

/// If clients spend at least this percentage of the time at their greatest depth, the depth looks like a
/// limit that the clients set.
const BOUNDED_PERCENT: u32 = 80;
