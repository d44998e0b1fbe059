//! The collected figures of a part of a disk's I/O: of a client, or of a size.

use dashpot_api::{LatencyHistogram, OpLatency};
use dashpot_engine::Op;

use crate::collector::Tally;

/// The figures of a part.
pub(crate) fn part_latency(by: String, op: Op, tally: &Tally) -> OpLatency {
    OpLatency {
        by: Some(by),
        op: op.name().to_owned(),
        completed: tally.brief.completed,
        failed: tally.failed,
        bytes: tally.brief.bytes,
        total: LatencyHistogram::of_sparse(&tally.total),
        disk: LatencyHistogram::of_sparse(&tally.brief.disk),
        lateness: LatencyHistogram::of_sparse(&tally.lateness),
        store: Some(LatencyHistogram::of_sparse(&tally.store)),
    }
}
