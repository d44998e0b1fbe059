//! The pools of a daemon. An interval is the difference between two snapshots.

use std::time::Duration;

use anyhow::{Context, ensure};
use dashpot_api::{
    ClassLatency, LatencyHistogram, PoolLatency, PoolTraffic, STARTED_AGAIN, SizeHistogram,
    TrafficSum,
};
use dashpot_engine::histogram::BadBucket;
use dashpot_engine::pool::{Class, Traffic, TxgStats, VolumeTraffic};
use dashpot_observe::{ClassInterval, PoolInterval};

/// The I/O of a pool since the start.
pub(crate) fn since_start(later: &PoolLatency) -> anyhow::Result<PoolInterval> {
    let elapsed_ns = later.at_ns.saturating_sub(later.since_ns);
    interval(later, None, Duration::from_nanos(elapsed_ns))
}

/// The I/O of a pool between two snapshots.
pub(crate) fn between(earlier: &PoolLatency, later: &PoolLatency) -> anyhow::Result<PoolInterval> {
    ensure!(later.since_ns == earlier.since_ns, STARTED_AGAIN);
    let elapsed_ns = later.at_ns.saturating_sub(earlier.at_ns);
    interval(later, Some(earlier), Duration::from_nanos(elapsed_ns))
}

fn interval(
    later: &PoolLatency,
    earlier: Option<&PoolLatency>,
    elapsed: Duration,
) -> anyhow::Result<PoolInterval> {
    let class = |class: Class| {
        let is_it = |one: &&ClassLatency| one.class == class.name();
        let now = later.classes.iter().find(is_it);
        let before = earlier.and_then(|earlier| earlier.classes.iter().find(is_it));
        let interval = now.map(|now| class_interval(class, now, before));
        let interval = interval.unwrap_or_else(|| Ok(ClassInterval::empty(class)));
        interval.context("the daemon's histogram")
    };
    let traffic = |of: fn(&PoolTraffic) -> TrafficSum| {
        let before = earlier.map(|earlier| of(&earlier.traffic));
        Traffic::from(of(&later.traffic)).since(before.unwrap_or_default().into())
    };
    let [first, second, third, fourth, fifth] = Class::ALL.map(class);
    Ok(PoolInterval {
        name: later.pool.clone(),
        elapsed,
        allocated: later.allocated_bytes,
        free: later.free_bytes,
        volumes: traffic(|traffic| traffic.volumes),
        queued: traffic(|traffic| traffic.queues),
        traffic: traffic(|traffic| traffic.disks),
        overhead: VolumeTraffic::from(later.overhead).since(
            earlier
                .map(|earlier| earlier.overhead.into())
                .unwrap_or_default(),
        ),
        by_volume: by_volume(later, earlier),
        classes: Box::new([first?, second?, third?, fourth?, fifth?]),
        txgs: later.txgs.iter().map(TxgStats::from).collect::<Vec<_>>(),
    })
}

fn by_volume(later: &PoolLatency, earlier: Option<&PoolLatency>) -> Vec<(String, VolumeTraffic)> {
    let before = |name: &str| {
        let mut volumes = earlier?.by_volume.iter();
        volumes.find(|one| one.volume == name)
    };
    let volumes = later.by_volume.iter().map(|now| {
        let before = before(&now.volume).map(|before| before.traffic.into());
        let counts = VolumeTraffic::from(now.traffic).since(before.unwrap_or_default());
        (now.volume.clone(), counts)
    });
    volumes.collect()
}

fn class_interval(
    class: Class,
    now: &ClassLatency,
    before: Option<&ClassLatency>,
) -> Result<ClassInterval, BadBucket> {
    let times = |of: fn(&ClassLatency) -> &LatencyHistogram| {
        let before = before.map(|before| of(before).histogram()).transpose()?;
        Ok(of(now).histogram()?.since(&before.unwrap_or_default()))
    };
    let sizes = |of: fn(&ClassLatency) -> &SizeHistogram| {
        let before = before.map(|before| of(before).histogram()).transpose()?;
        Ok(of(now).histogram()?.since(&before.unwrap_or_default()))
    };
    Ok(ClassInterval {
        class,
        pending: now.pending,
        active: now.active,
        total_wait: times(|class| &class.total_wait)?,
        disk_wait: times(|class| &class.disk_wait)?,
        queue_wait: times(|class| &class.queue_wait)?,
        alone: sizes(|class| &class.alone)?,
        joined: sizes(|class| &class.joined)?,
    })
}
