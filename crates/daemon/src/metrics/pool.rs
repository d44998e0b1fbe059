//! Metrics of a pool: its throttle, its memory, and the operations and bytes at its volumes, in its queues
//! and at its disks.

use std::borrow::Cow;
use std::fmt;

use dashpot_engine::pool::{MirrorStats, PoolStats, Traffic};
use dashpot_export::PoolSnapshot;
use prometheus_client::registry::Unit;

use super::page::{Labels, Metric, Page, seconds_of};

/// The state of a pool at a scrape.
#[derive(Debug)]
pub(super) struct PoolScrape {
    pub(super) name: String,
    /// The state of the pool; `None` if its shard has failed.
    pub(super) snapshot: Option<PoolSnapshot>,
}

/// Writes the metrics of some pools.
pub(super) fn write(page: &mut Page<'_>, pools: &[PoolScrape]) -> fmt::Result {
    write_throttle(page, pools)?;
    write_admissions(page, pools)?;
    write_mirrors(page, pools)?;
    page.counter(&OPERATIONS, traffic(pools, |sum| [sum.reads, sum.writes]))?;
    page.counter(
        &BYTES,
        traffic(pools, |sum| [sum.bytes_read, sum.bytes_written]),
    )?;
    let served = pools
        .iter()
        .filter_map(|pool| Some((labels(pool), pool.snapshot.as_ref()?.memory)));
    page.gauge(&MEMORY, served)
}

fn write_throttle(page: &mut Page<'_>, pools: &[PoolScrape]) -> fmt::Result {
    page.gauge(&DIRTY, each(pools, |pool| pool.dirty))?;
    page.gauge(&FILLED, each(pools, |pool| pool.level.filled))?;
    page.gauge(&STOPS_AT, each(pools, |pool| pool.level.stops_at))?;
    let delay = |pool: &PoolStats| seconds_of(pool.level.delay.as_nanos().into());
    page.gauge(&DELAY, each(pools, delay))?;
    page.gauge(&THROTTLED, each(pools, |pool| u64::from(pool.throttled)))?;
    page.gauge(&DEGRADED, each(pools, |pool| u64::from(pool.degraded)))?;
    let last = |pool: &PoolStats| pool.txgs.last().map_or(0, |txg| txg.txg);
    page.gauge(&TXG, each(pools, last))
}

fn write_admissions(page: &mut Page<'_>, pools: &[PoolScrape]) -> fmt::Result {
    page.counter(&ADMITTED, each(pools, |pool| pool.admissions.assigned))?;
    let delayed = |pool: &PoolStats| pool.admissions.dirty_delay + pool.admissions.delay;
    page.counter(&DELAYED, each(pools, delayed))?;
    let stopped = |pool: &PoolStats| pool.admissions.dirty_over_max + pool.admissions.write_limit;
    page.counter(&STOPPED, each(pools, stopped))
}

fn write_mirrors(page: &mut Page<'_>, pools: &[PoolScrape]) -> fmt::Result {
    page.gauge(
        &DIRTY_REGIONS,
        mirrors(pools, |mirrors| mirrors.dirty_regions.into()),
    )?;
    page.gauge(&NOSYNC, mirrors(pools, |mirrors| mirrors.nosync_bytes))?;
    page.counter(&REPAIRED, mirrors(pools, |mirrors| mirrors.repaired_bytes))?;
    page.counter(
        &FAILED_PIECES,
        mirrors(pools, |mirrors| mirrors.failed_pieces),
    )
}

/// A sample for each pool that is served and has mirrors.
fn mirrors<'a>(
    pools: &'a [PoolScrape],
    value: impl Fn(&MirrorStats) -> u64 + 'a,
) -> impl Iterator<Item = (Labels<'a>, u64)> {
    let all = each(pools, |stats| stats.mirrors.as_ref());
    all.filter_map(move |(labels, mirrors)| Some((labels, value(mirrors?))))
}

fn labels(pool: &PoolScrape) -> Labels<'_> {
    vec![("pool", Cow::from(&pool.name))]
}

/// A sample for each pool that is served.
fn each<'a, V>(
    pools: &'a [PoolScrape],
    value: impl Fn(&'a PoolStats) -> V + 'a,
) -> impl Iterator<Item = (Labels<'a>, V)> {
    let served = pools
        .iter()
        .filter_map(|pool| Some((labels(pool), &pool.snapshot.as_ref()?.stats)));
    served.map(move |(labels, stats)| (labels, value(stats)))
}

/// A sample for each direction (read or write) at each place of each pool: its volumes, its queues, its
/// disks, and of those at its disks, the overhead of txgs. `sums` gives the sum of each direction at a place.
fn traffic<'a>(
    pools: &'a [PoolScrape],
    sums: impl Fn(&Traffic) -> [u64; 2] + Copy + 'a,
) -> impl Iterator<Item = (Labels<'a>, u64)> {
    each(pools, |stats| stats).flat_map(move |(labels, stats)| {
        let places = [
            ("volumes", &stats.volumes),
            ("queues", &stats.queued),
            ("disks", &stats.disks),
            ("overhead", &stats.overhead.disks),
        ];
        places.into_iter().flat_map(move |(at, traffic)| {
            let labels = labels.clone();
            let both = ["read", "write"].into_iter().zip(sums(traffic));
            both.map(move |(direction, sum)| {
                let mut labels = labels.clone();
                labels.push(("at", at.into()));
                labels.push(("direction", direction.into()));
                (labels, sum)
            })
        })
    })
}

const DIRTY: Metric = Metric(
    "pool_dirty",
    Some(Unit::Bytes),
    "Acknowledged bytes that are not yet on the disks",
);
const FILLED: Metric = Metric(
    "pool_throttle_filled",
    Some(Unit::Bytes),
    "Bytes that are dirty or that admitted writes will make dirty or, in the legacy throttle, bytes that the \
     open txg has taken",
);
const STOPS_AT: Metric = Metric(
    "pool_throttle_limit",
    Some(Unit::Bytes),
    "The bytes at which the throttle stops writes",
);
const DELAY: Metric = Metric(
    "pool_throttle_delay",
    Some(Unit::Seconds),
    "The delay of a write that would come now",
);
const THROTTLED: Metric = Metric("pool_throttled", None, "Writes that wait for admission");
const DEGRADED: Metric = Metric(
    "pool_degraded",
    None,
    "Whether a disk fails writes of acknowledged data, which the pool repeats",
);
const DIRTY_REGIONS: Metric = Metric(
    "pool_mirror_dirty_regions",
    None,
    "Regions of mirrors with writes that no flush of all sides has covered",
);
const NOSYNC: Metric = Metric(
    "pool_mirror_nosync",
    Some(Unit::Bytes),
    "The regions of mirrors whose sides may differ, until they are repaired",
);
const REPAIRED: Metric = Metric(
    "pool_mirror_repaired",
    Some(Unit::Bytes),
    "Bytes that repairs of mirrors have copied to other sides",
);
const FAILED_PIECES: Metric = Metric(
    "pool_mirror_failed_pieces",
    None,
    "Copies of mirror repairs that failed and that the pool repeats",
);
const TXG: Metric = Metric("pool_txg", None, "The number of the open transaction group");
const ADMITTED: Metric = Metric("pool_writes_admitted", None, "Writes that were admitted");
const DELAYED: Metric = Metric(
    "pool_writes_delayed",
    None,
    "Writes that the throttle delayed",
);
const STOPPED: Metric = Metric(
    "pool_writes_stopped",
    None,
    "Writes that waited because the throttle was full",
);
const OPERATIONS: Metric = Metric(
    "pool_operations",
    None,
    "Operations that clients sent to the volumes, and that the disks have done without an error, before and after \
     joining",
);
const BYTES: Metric = Metric(
    "pool_transferred",
    Some(Unit::Bytes),
    "Bytes that clients asked of the volumes, and that the disks have moved, before and after joining",
);
const MEMORY: Metric = Metric(
    "pool_memory",
    Some(Unit::Bytes),
    "Memory for blocks that the pool's shard holds, for all of its pools",
);
