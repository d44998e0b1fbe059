//! What the figures of an interval leave out.

use dashpot_observe::{DeviceInterval, InFlight, Seen, Stacked, in_flight_of_all};
use serde::Serialize;

/// What the figures of an interval leave out. JSON: `{"in_flight": in flight, "lost": 0}`. For the kernel's disks,
/// the object also has `"unmatched": 0`; for sync calls, it has `"unplaced": 0`; if disks are stacked,
/// `"not_in_sums": [{"device": "loop0", "over": ["vda"]}]`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LeftOut {
    /// The I/Os in flight at the interval's end.
    pub in_flight: InFlight,
    /// The disks whose I/Os would count twice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_in_sums: Vec<Stacked>,
    /// The number of events that are missing because a buffer was full.
    pub lost: u64,
    /// The number of completions whose start was not seen; `None` if the source sees every start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<u64>,
    /// How many sync calls were on unknown devices; `None` if the source watches no sync calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unplaced: Option<u64>,
}

impl LeftOut {
    /// What an interval leaves out whose figures are those of these devices.
    pub(crate) fn of<'a>(
        seen: &Seen,
        summed: impl IntoIterator<Item = &'a DeviceInterval>,
        not_in_sums: Vec<Stacked>,
    ) -> LeftOut {
        LeftOut {
            in_flight: in_flight_of_all(summed),
            not_in_sums,
            lost: seen.lost,
            unmatched: seen.unmatched,
            unplaced: seen.unplaced,
        }
    }
}
