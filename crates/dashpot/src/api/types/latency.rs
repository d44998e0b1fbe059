//! Histograms in the one layout: occupied buckets only, cumulative since the start.

use dashpot_engine::histogram::{BadBucket, Histogram, LAYOUT, Moments, Sparse};
use dashpot_engine::{LatencyKind, Op, OpStats};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{InFlightZio, View, Wide};
use crate::observe::collector::Tally;

/// A disk's latencies since the start. Of an interval: the difference of two answers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiskLatency {
    pub(crate) disk: String,
    /// Names the boundaries of the buckets.
    pub(crate) layout: String,
    /// The moment since which is counted.
    pub(crate) since_ns: u64,
    /// The moment of all that follows.
    pub(crate) at_ns: u64,
    /// Time during which at least one zio was in flight.
    pub(crate) busy_ns: u64,
    /// The integral of the number of zios in flight.
    pub(crate) depth_time_ns: Wide,
    /// Zios not replied to, which are in no histogram yet.
    pub(crate) in_flight: u32,
    /// The oldest of them.
    pub(crate) oldest: Option<InFlightZio>,
    /// Zios since the start that are in no breakdown, nor in what is known of the store, because the
    /// shards were faster than who listens.
    pub(crate) dropped: u64,
    /// Every operation, in display order. Of a breakdown: those that each part has done, part by
    /// part.
    pub(crate) ops: Vec<OpLatency>,
}

/// The latencies of one operation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct OpLatency {
    /// Of a breakdown, whose they are: the name of a client, or the least size of a power of two,
    /// `4K` for 4 KiB and more but less than 8 KiB.
    #[schema(example = "4K")]
    pub(crate) by: Option<String>,
    #[schema(example = "read")]
    pub(crate) op: String,
    /// Zios replied to, failed ones included.
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    /// Bytes of those that did not fail.
    pub(crate) bytes: u64,
    /// From arrival until the transport accepted the reply.
    pub(crate) total: LatencyHistogram,
    /// From issue until the transport was offered the reply.
    pub(crate) disk: LatencyHistogram,
    /// How late injected zios were.
    pub(crate) lateness: LatencyHistogram,
    /// For the store alone, of all that are in no `dropped`.
    pub(crate) store: Option<LatencyHistogram>,
}

/// What latencies can be broken down by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    /// The 64 that did something last; the rest are `other`. One that a later answer does not name
    /// has been added to `other` in it.
    Client,
    /// Powers of two.
    Size,
}

/// The occupied buckets of a histogram.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct LatencyHistogram {
    pub(crate) count: u64,
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) sum_ns: Wide,
    pub(crate) sum_of_squares_ns: Wide,
    /// The sum of the latencies truncated to microseconds, as DTrace's scripts add them up.
    pub(crate) sum_us: Wide,
    pub(crate) sum_of_squares_us: Wide,
    /// Pairs of a bucket's index in the layout and its count.
    pub(crate) buckets: Vec<(usize, u64)>,
}

impl View<'_> {
    /// The disk's histograms; `dropped` events are missing in those of the store, and in breakdowns.
    pub(crate) fn latency(&self, ops: Vec<OpLatency>, dropped: u64) -> DiskLatency {
        let snapshot = self.snapshot;
        DiskLatency {
            disk: self.info.name.clone(),
            layout: LAYOUT.to_owned(),
            since_ns: self.since.as_nanos(),
            at_ns: snapshot.at.as_nanos(),
            busy_ns: snapshot.stats.busy.as_nanos(),
            depth_time_ns: Wide(snapshot.stats.depth_time),
            in_flight: snapshot.in_flight_total,
            oldest: self.oldest().next(),
            dropped,
            ops,
        }
    }

    /// What is counted on the data path, with what is known of the store by operation.
    pub(crate) fn ops(&self, store: impl Fn(Op) -> Sparse) -> Vec<OpLatency> {
        let op = |op| OpLatency::of(op, self.snapshot.stats.op(op), &store(op));
        Op::ALL.map(op).to_vec()
    }
}

impl OpLatency {
    fn of(op: Op, stats: &OpStats, store: &Sparse) -> OpLatency {
        let latency = |kind| {
            let histogram = stats.latency(kind);
            histogram
                .as_deref()
                .map(LatencyHistogram::of)
                .unwrap_or_default()
        };
        OpLatency {
            by: None,
            op: op.name().to_owned(),
            completed: stats.completed,
            failed: stats.failed,
            bytes: stats.bytes,
            total: latency(LatencyKind::Total),
            disk: latency(LatencyKind::Disk),
            lateness: latency(LatencyKind::Lateness),
            store: Some(LatencyHistogram::of_sparse(store)),
        }
    }

    /// What was collected of a part.
    pub(crate) fn of_part(by: String, op: Op, tally: &Tally) -> OpLatency {
        OpLatency {
            by: Some(by),
            op: op.name().to_owned(),
            completed: tally.completed,
            failed: tally.failed,
            bytes: tally.bytes,
            total: LatencyHistogram::of_sparse(&tally.total),
            disk: LatencyHistogram::of_sparse(&tally.disk),
            lateness: LatencyHistogram::of_sparse(&tally.lateness),
            store: Some(LatencyHistogram::of_sparse(&tally.store)),
        }
    }
}

impl LatencyHistogram {
    pub(crate) fn of(histogram: &Histogram) -> LatencyHistogram {
        LatencyHistogram::of_sparse(&histogram.to_sparse())
    }

    pub(crate) fn of_sparse(sparse: &Sparse) -> LatencyHistogram {
        LatencyHistogram {
            count: sparse.buckets.iter().map(|(_, count)| count).sum(),
            min_ns: sparse.min,
            max_ns: sparse.max,
            sum_ns: Wide(sparse.nanos.sum),
            sum_of_squares_ns: Wide(sparse.nanos.sum_of_squares),
            sum_us: Wide(sparse.micros.sum),
            sum_of_squares_us: Wide(sparse.micros.sum_of_squares),
            buckets: sparse.buckets.clone(),
        }
    }

    /// The histogram that was sent.
    pub(crate) fn histogram(&self) -> Result<Histogram, BadBucket> {
        let moments = |sum: Wide, squares: Wide| Moments {
            sum: sum.0,
            sum_of_squares: squares.0,
        };
        Histogram::from_sparse(&Sparse {
            buckets: self.buckets.clone(),
            min: self.min_ns,
            max: self.max_ns,
            nanos: moments(self.sum_ns, self.sum_of_squares_ns),
            micros: moments(self.sum_us, self.sum_of_squares_us),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::LatencyHistogram;
    use dashpot_engine::histogram::Histogram;

    #[test]
    fn histograms_travel_whole() {
        let mut histogram = Histogram::default();
        for ns in [0, 1_999, 10_000_000, u64::MAX / 2] {
            histogram.record(ns);
        }
        let text = serde_json::to_string(&LatencyHistogram::of(&histogram)).unwrap();
        let sent: LatencyHistogram = serde_json::from_str(&text).unwrap();
        assert_eq!(sent.histogram().unwrap().to_sparse(), histogram.to_sparse());
    }
}
