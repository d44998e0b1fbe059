//! Histograms in the one layout: percentiles and occupied buckets, cumulative since the start.

use dashpot_engine::histogram::{
    BadBucket, Histogram, Moments, Sparse, bucket_of, lower_bound, upper_bound,
};
use dashpot_engine::{LatencyKind, Op, OpStats};
use dashpot_observe::Percentiles;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{InFlightZio, Wide};

/// A disk's latencies since the start. Of an interval: the difference of two answers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DiskLatency {
    pub disk: String,
    /// Names the boundaries of the buckets.
    pub layout: String,
    /// The moment since which is counted.
    pub since_ns: u64,
    /// The moment of all that follows.
    pub at_ns: u64,
    /// Time during which at least one zio was in flight.
    pub busy_ns: u64,
    /// The integral of the number of zios in flight.
    pub depth_time_ns: Wide,
    /// How long zios waited for the disk to resume, added up: it is in their total, and in no time of
    /// the disk.
    pub suspended_ns: u64,
    /// Zios not replied to, which are in no histogram yet.
    pub in_flight: u32,
    /// The oldest of them.
    pub oldest: Option<InFlightZio>,
    /// Zios since the start that are in no breakdown, nor in what is known of the store, because the
    /// shards were faster than who listens.
    pub dropped: u64,
    /// Every operation, in display order. Of a breakdown: those that each part has done, part by
    /// part.
    pub ops: Vec<OpLatency>,
}

/// The latencies of one operation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpLatency {
    /// Of a breakdown, whose they are: the name of a client, or the least size of a power of two,
    /// `4K` for 4 KiB and more but less than 8 KiB.
    #[schema(example = "4K")]
    pub by: Option<String>,
    #[schema(example = "read")]
    pub op: String,
    /// Zios replied to, failed ones included.
    pub completed: u64,
    pub failed: u64,
    /// Bytes of those that did not fail.
    pub bytes: u64,
    /// From arrival until the transport accepted the reply.
    pub total: LatencyHistogram,
    /// From issue until the transport was offered the reply.
    pub disk: LatencyHistogram,
    /// How late injected zios were.
    pub lateness: LatencyHistogram,
    /// For the store alone, of all that are in no `dropped`.
    pub store: Option<LatencyHistogram>,
}

/// What latencies can be broken down by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The 64 that did something last; the rest are `other`. One that a later answer does not name
    /// has been added to `other` in it.
    Client,
    /// Powers of two.
    Size,
}

/// A histogram: its percentiles, and its occupied buckets.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LatencyHistogram {
    pub count: u64,
    /// 0 if there is no value.
    pub min_ns: u64,
    /// 0 if there is no value.
    pub max_ns: u64,
    /// A percentile is the middle of its bucket: above 1 us and below 2,048 s at most 1.2 % off. It
    /// is null unless at least one value is expected above it: `p99_ns` needs 100 values.
    pub p50_ns: Option<u64>,
    pub p90_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub p99_9_ns: Option<u64>,
    pub sum_ns: Wide,
    pub sum_of_squares_ns: Wide,
    /// The sum of the latencies truncated to microseconds, as DTrace's scripts add them up.
    pub sum_us: Wide,
    pub sum_of_squares_us: Wide,
    /// The buckets that are not empty, in the order of their bounds.
    pub buckets: Vec<Bucket>,
}

/// How many values are between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bucket {
    /// The lowest value that it can hold.
    pub from_ns: u64,
    /// The highest value that it can hold. That of the last bucket, from 2^42 ns on, is null.
    pub to_ns: Option<u64>,
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

    /// Its index in the layout and its count.
    fn indexed(&self) -> (usize, u64) {
        (bucket_of(self.from_ns), self.count)
    }
}

impl OpLatency {
    /// What is counted of an operation on the data path, with what is known of the store.
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

    /// Of a histogram of this layout, which is all that the daemon keeps.
    pub fn of_sparse(sparse: &Sparse) -> LatencyHistogram {
        LatencyHistogram::of(&Histogram::from_sparse(sparse).unwrap_or_default())
    }

    /// The histogram that was sent.
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
