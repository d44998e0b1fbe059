//! Histograms of latencies since the start: percentiles and occupied buckets. All have the same layout.

use dashpot_engine::histogram::{
    BUCKETS, BadBucket, Histogram, LAYOUT, Moments, Sparse, bucket_of, lower_bound, upper_bound,
};
use dashpot_engine::{LatencyKind, Op, OpStats};
use dashpot_observe::Percentiles;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{DepthTime, InFlightZio, Unheld, Wide};

/// The latencies of a disk or a volume since the start. The difference between two answers describes the
/// interval between them.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DiskLatency {
    /// The name of the disk or the volume.
    pub disk: String,
    /// The name of the bucket boundaries.
    pub layout: String,
    /// The moment at which the counters began.
    pub since_ns: u64,
    /// The moment at which the fields below were read.
    pub at_ns: u64,
    /// Time during which at least one zio was in flight.
    pub busy_ns: u64,
    /// The number of zios in flight, integrated over time. Divided by `busy_ns`, it is the mean depth
    /// while any zio was in flight.
    pub depth_time_ns: Wide,
    /// The time spent with each number of zios in flight, for each number that occurred.
    pub depth_times: Vec<DepthTime>,
    /// Total time for which zios waited for the disk to resume. This time is part of `total`, but not of
    /// `disk`.
    pub suspended_ns: u64,
    /// Time in which the host kept the disk's shard from running. Requests that clients sent in that
    /// time waited unread, and no histogram contains that wait.
    pub shard_stopped_ns: u64,
    /// Number of zios without a reply, which no histogram contains yet.
    pub in_flight: u32,
    /// The oldest zio without a reply; null if there is none.
    pub oldest: Option<InFlightZio>,
    /// Number of zios since the start that are missing from breakdowns and from `store`, because the
    /// collector could not keep up with the shards.
    pub dropped: u64,
    /// The accesses to the files of a path disk, since the start, that no rule could hold; null if the device
    /// is not a path disk.
    pub unheld: Option<Unheld>,
    /// How many calls of the path disk's programs, since the start, a signal ended before dashpot received them
    /// or before their hold was over; null if the device is not a path disk, or if Linux is older than 5.19.
    pub interrupted: Option<u64>,
    /// Every operation, in display order. A breakdown has the operations of one client or size, then those of
    /// the next, and so on.
    pub ops: Vec<OpLatency>,
}

/// The boundaries of all latency histograms. If the boundaries ever change, so does their name.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Layout {
    /// The name of the boundaries.
    #[schema(example = "v1")]
    pub layout: String,
    /// The smallest latency of each bucket, in ascending order. A bucket ends where the next one begins, and
    /// the last has no end.
    pub from_ns: Vec<u64>,
}

impl Layout {
    /// The boundaries that this program uses.
    pub fn current() -> Layout {
        Layout {
            layout: LAYOUT.to_owned(),
            from_ns: (0..BUCKETS).map(lower_bound).collect(),
        }
    }
}

/// The latencies of one operation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpLatency {
    /// The part of a breakdown: the name of a client, or a size (`4K`: at least 4 KiB and less than
    /// 8 KiB). Null without a breakdown.
    #[schema(example = "4K")]
    pub by: Option<String>,
    /// The name of the operation.
    #[schema(example = "read")]
    pub op: String,
    /// Number of zios with a reply, including failed zios.
    pub completed: u64,
    /// Number of zios that ended with an error.
    pub failed: u64,
    /// Total bytes of the zios that did not fail.
    pub bytes: u64,
    /// Time from a zio's arrival until the transport accepted its reply.
    pub total: LatencyHistogram,
    /// Time from a zio's issue until the daemon offered its reply to the transport.
    pub disk: LatencyHistogram,
    /// How late injected zios were: the time from their target until the daemon offered their reply to the
    /// transport.
    pub lateness: LatencyHistogram,
    /// The time that the store alone took, for all zios but the `dropped` ones.
    pub store: Option<LatencyHistogram>,
}

/// The dimension of a breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The client. The 64 most recently active clients have their own values, and all others share the value
    /// `other`. If a later answer no longer names a client, that answer counts the client's I/O in `other`.
    Client,
    /// The size of the I/O, in powers of two.
    Size,
}

/// The percentiles and the occupied buckets of a histogram.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LatencyHistogram {
    /// Number of values.
    pub count: u64,
    /// The smallest value; 0 if there is no value.
    pub min_ns: u64,
    /// The largest value; 0 if there is no value.
    pub max_ns: u64,
    /// The median; null below 2 values. A percentile is the middle of its bucket, so it is at most 1.2 % off
    /// between 1 us and 2,048 s. It is null unless at least one value is expected above it.
    pub p50_ns: Option<u64>,
    /// The 90th percentile; null below 10 values.
    pub p90_ns: Option<u64>,
    /// The 99th percentile; null below 100 values.
    pub p99_ns: Option<u64>,
    /// The 99.9th percentile; null below 1,000 values.
    pub p99_9_ns: Option<u64>,
    /// Sum of the values.
    pub sum_ns: Wide,
    /// Sum of the squares of the values, in square nanoseconds.
    pub sum_of_squares_ns: Wide,
    /// The sum of the latencies, each truncated to microseconds, as DTrace scripts compute it.
    pub sum_us: Wide,
    /// Sum of the squares of the truncated latencies, in square microseconds.
    pub sum_of_squares_us: Wide,
    /// The buckets that are not empty, in ascending order.
    pub buckets: Vec<Bucket>,
}

/// A bucket, which counts the values between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bucket {
    /// The lowest value that the bucket can hold.
    pub from_ns: u64,
    /// The highest value that the bucket can hold. The last bucket begins at 2^42 ns, and has null here.
    pub to_ns: Option<u64>,
    /// Number of values from `from_ns` to `to_ns`, both included.
    pub count: u64,
}

impl Bucket {
    fn of(&(index, count): &(usize, u64)) -> Bucket {
        Bucket {
            from_ns: lower_bound(index),
            to_ns: Some(upper_bound(index)).filter(|bound| *bound != u64::MAX),
            count,
        }
    }

    /// The bucket's index in the layout, and its count.
    fn indexed(&self) -> (usize, u64) {
        (bucket_of(self.from_ns), self.count)
    }
}

impl OpLatency {
    /// The latencies of an operation. The latencies of the store come from the collector (`store`), and all
    /// others from the shard's counters.
    pub fn of(op: Op, stats: &OpStats, store: &Sparse) -> OpLatency {
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
}

impl LatencyHistogram {
    /// The histogram as the API sends it.
    pub fn of(histogram: &Histogram) -> LatencyHistogram {
        let sparse = histogram.to_sparse();
        let percentiles = Percentiles::of(histogram);
        LatencyHistogram {
            count: histogram.count(),
            min_ns: sparse.min,
            max_ns: sparse.max,
            p50_ns: percentiles.p50_ns,
            p90_ns: percentiles.p90_ns,
            p99_ns: percentiles.p99_ns,
            p99_9_ns: percentiles.p99_9_ns,
            sum_ns: Wide(sparse.nanos.sum),
            sum_of_squares_ns: Wide(sparse.nanos.sum_of_squares),
            sum_us: Wide(sparse.micros.sum),
            sum_of_squares_us: Wide(sparse.micros.sum_of_squares),
            buckets: sparse.buckets.iter().map(Bucket::of).collect(),
        }
    }

    /// Like [`LatencyHistogram::of`], from a compact histogram. A histogram with another layout counts as
    /// empty.
    pub fn of_sparse(sparse: &Sparse) -> LatencyHistogram {
        LatencyHistogram::of(&sparse.histogram())
    }

    /// The histogram that the daemon sent. Fails if a bucket does not fit the layout.
    pub fn histogram(&self) -> Result<Histogram, BadBucket> {
        let moments = |sum: Wide, squares: Wide| Moments {
            sum: sum.0,
            sum_of_squares: squares.0,
        };
        Histogram::from_sparse(&Sparse {
            buckets: self.buckets.iter().map(Bucket::indexed).collect(),
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
