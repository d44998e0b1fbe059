//! The queues of a pool's disks: times and sizes by class, since the start.

use dashpot_engine::histogram::{
    BadBucket, Histogram, Moments, Sparse, bucket_of, lower_bound, upper_bound,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{LatencyHistogram, PoolTraffic, Txg, VolumeTraffic, Wide};

/// The queues of a pool's disks, all disks together, since the start. The difference between two answers
/// describes the interval between them.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolLatency {
    /// The name of the pool.
    pub pool: String,
    /// The name of the bucket boundaries.
    pub layout: String,
    /// The moment at which the counters began.
    pub since_ns: u64,
    /// The moment at which the fields below were read.
    pub at_ns: u64,
    /// The room that volumes have taken.
    pub allocated_bytes: u64,
    /// The room that is left.
    pub free_bytes: u64,
    /// The operations of clients, and the zios that these operations caused in the queues and at the disks.
    pub traffic: PoolTraffic,
    /// The part of `traffic` that is overhead of txgs: zios without bytes, for which no client asked.
    #[serde(default)]
    pub overhead: PoolTraffic,
    /// The same figures as in `traffic`, for each volume. Repairs of mirrors and the overhead of txgs belong
    /// to no volume.
    pub by_volume: Vec<VolumeTraffic>,
    /// The classes of the queues, the highest priority first.
    pub classes: Vec<ClassLatency>,
    /// Transaction groups, the oldest first: the last hundred that were committed, and those that are not
    /// committed yet.
    pub txgs: Vec<Txg>,
}

/// One class of the queues. Zios that the queue joined count as one zio, with the times of the zio at the
/// lowest offset.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ClassLatency {
    /// The name of the class in ZFS's tunables.
    #[schema(example = "async_write")]
    pub class: String,
    /// Number of zios that wait in the queues now.
    pub pending: u64,
    /// Number of zios at the disks now. Joined zios count as one.
    pub active: u64,
    /// The time from when a zio enters a queue until it ends.
    pub total_wait: LatencyHistogram,
    /// The time of a zio at the disk.
    pub disk_wait: LatencyHistogram,
    /// The time of a zio in the queue.
    pub queue_wait: LatencyHistogram,
    /// The sizes of zios that went to a disk alone.
    pub alone: SizeHistogram,
    /// The sizes of zios that the queue made by joining others.
    pub joined: SizeHistogram,
}

/// The occupied buckets of a histogram of sizes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SizeHistogram {
    /// Number of values.
    pub count: u64,
    /// The smallest value; 0 if there is no value.
    pub min_bytes: u64,
    /// The largest value; 0 if there is no value.
    pub max_bytes: u64,
    /// Sum of the values.
    pub sum_bytes: Wide,
    /// The buckets that are not empty, in ascending order.
    pub buckets: Vec<SizeBucket>,
}

/// A bucket, which counts the sizes between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SizeBucket {
    /// The smallest size that the bucket can hold.
    pub from_bytes: u64,
    /// The largest size that the bucket can hold.
    pub to_bytes: u64,
    /// Number of sizes from `from_bytes` to `to_bytes`, both included.
    pub count: u64,
}

impl SizeHistogram {
    /// The histogram as the API sends it.
    pub fn of(histogram: &Histogram) -> SizeHistogram {
        let sparse = histogram.to_sparse();
        let bucket = |&(index, count): &(usize, u64)| SizeBucket {
            from_bytes: lower_bound(index),
            to_bytes: upper_bound(index),
            count,
        };
        SizeHistogram {
            count: histogram.count(),
            min_bytes: sparse.min,
            max_bytes: sparse.max,
            sum_bytes: Wide(sparse.nanos.sum),
            buckets: sparse.buckets.iter().map(bucket).collect(),
        }
    }

    /// The histogram that the daemon sent, without the sum of squares and the moments in microseconds, which
    /// the API leaves out. Fails if a bucket does not fit the layout.
    pub fn histogram(&self) -> Result<Histogram, BadBucket> {
        let indexed = |bucket: &SizeBucket| (bucket_of(bucket.from_bytes), bucket.count);
        Histogram::from_sparse(&Sparse {
            buckets: self.buckets.iter().map(indexed).collect(),
            min: self.min_bytes,
            max: self.max_bytes,
            nanos: Moments {
                sum: self.sum_bytes.0,
                sum_of_squares: 0,
            },
            micros: Moments::default(),
        })
    }
}
