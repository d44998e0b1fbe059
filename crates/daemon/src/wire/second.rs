//! Converts the I/O of seconds to the API's type.

use dashpot_api::{LatencyHistogram, SecondLatency};

use crate::collector::SecondCell;

/// The I/O of one client with one operation on one disk, in one second.
pub(crate) fn second_latency(cell: &SecondCell, disk: &str) -> SecondLatency {
    SecondLatency {
        disk: disk.to_owned(),
        client: cell.client.to_string(),
        op: cell.op.name().to_owned(),
        completed: cell.tally.completed,
        bytes: cell.tally.bytes,
        latency: LatencyHistogram::of_sparse(&cell.tally.disk),
    }
}
