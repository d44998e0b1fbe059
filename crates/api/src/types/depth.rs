//! How many I/Os clients keep in flight.

use dashpot_engine::{DepthSummary, DepthTimes};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many zios clients had in flight at a time. Clients choose this number, and many have a hidden
/// bound. A request that a client holds back because of its bound waits longer than the rule says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Depth {
    /// The most zios that were in flight at once. 512 stands for any number from 512 on.
    pub most: u32,
    /// The number of zios that was in flight for the longest time. 512 stands for any number from 512 on.
    pub usual: u32,
    /// For how much of the time with any zio in flight `usual` zios were in flight, in percent.
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

    /// Whether `most` is an exact number. 512 is not, because it stands for all larger numbers, too.
    pub fn is_exact(&self) -> bool {
        self.most < DepthTimes::DEEPEST
    }

    /// Whether clients kept their greatest number of zios in flight for nearly all of the time. Perhaps
    /// they had more requests and could not send them. A client that sends one request at a time looks
    /// the same.
    pub fn looks_bounded(&self) -> bool {
        self.most > 1
            && self.is_exact()
            && self.usual == self.most
            && self.usual_percent >= BOUNDED_PERCENT
    }
}

/// The time that a disk has spent with this number of zios in flight. The difference of two answers
/// describes the interval between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DepthTime {
    /// The number of zios; 512 stands for any number from 512 on.
    pub depth: u32,
    /// The time with this many zios in flight.
    pub time_ns: u64,
}

/// The least share of the time, in percent, at which a depth looks like a client's bound.
const BOUNDED_PERCENT: u32 = 80;
