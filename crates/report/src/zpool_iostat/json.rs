//! `zpool-iostat` as JSON.

use dashpot_engine::histogram::Histogram;
use dashpot_observe::{ClassInterval, Percentiles, PoolInterval};
use serde::{Serialize, Serializer};

use super::ZpoolIostat;

impl Serialize for ZpoolIostat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.pools.iter().map(PoolObject::of))
    }
}

#[derive(Serialize)]
struct PoolObject<'a> {
    pool: &'a str,
    elapsed_ns: u128,
    alloc_bytes: u64,
    free_bytes: u64,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    classes: Vec<ClassObject>,
}

#[derive(Serialize)]
struct ClassObject {
    class: &'static str,
    pending: u64,
    active: u64,
    total_wait: Latency,
    disk_wait: Latency,
    queue_wait: Latency,
    alone: u64,
    joined: u64,
}

/// Percentiles of a latency, and the exact mean.
#[derive(Serialize)]
struct Latency {
    mean_ns: Option<u64>,
    #[serde(flatten)]
    percentiles: Percentiles,
}

impl PoolObject<'_> {
    fn of(pool: &PoolInterval) -> PoolObject<'_> {
        PoolObject {
            pool: &pool.name,
            elapsed_ns: pool.elapsed.as_nanos(),
            alloc_bytes: pool.allocated,
            free_bytes: pool.free,
            reads: pool.traffic.reads,
            read_bytes: pool.traffic.bytes_read,
            writes: pool.traffic.writes,
            written_bytes: pool.traffic.bytes_written,
            classes: pool.classes.iter().map(ClassObject::of).collect(),
        }
    }
}

impl ClassObject {
    fn of(class: &ClassInterval) -> ClassObject {
        ClassObject {
            class: class.class.name(),
            pending: class.pending,
            active: class.active,
            total_wait: Latency::of(&class.total_wait),
            disk_wait: Latency::of(&class.disk_wait),
            queue_wait: Latency::of(&class.queue_wait),
            alone: class.alone.count(),
            joined: class.joined.count(),
        }
    }
}

impl Latency {
    fn of(histogram: &Histogram) -> Latency {
        Latency {
            mean_ns: histogram.mean(),
            percentiles: Percentiles::of(histogram),
        }
    }
}
