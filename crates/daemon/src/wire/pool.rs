//! Converts snapshots of pools to the API's types.

use dashpot_api::{
    ClassLatency, LatencyHistogram, Pool, PoolLatency, PoolTraffic, SizeHistogram, TunableValue,
    Txg, VolumeTraffic,
};
use dashpot_engine::Instant;
use dashpot_engine::histogram::{Histogram, LAYOUT};
use dashpot_engine::pool::{Class, ClassStats, PoolStats, Tunables, Unit};
use dashpot_export::{PoolInfo, PoolSnapshot};
use dashpot_rules::format_tunable;

use super::disk::throttle_word;

/// The fixed facts about a pool.
pub(crate) struct PoolFacts<'a> {
    pub(crate) info: &'a PoolInfo,
    /// The names of the pool's disks, by member.
    pub(crate) members: Vec<Vec<String>>,
    /// The names of the pool's volumes.
    pub(crate) volumes: Vec<String>,
    /// The sum of the sizes of the volumes.
    pub(crate) allocated: u64,
}

impl PoolFacts<'_> {
    /// The pool in the API's form. If the pool's shard has failed, `snapshot` is the reason.
    pub(crate) fn pool(self, snapshot: Result<&PoolSnapshot, String>) -> Pool {
        let none = PoolStats::default();
        let (stats, at) = match snapshot {
            Ok(snapshot) => (&snapshot.stats, snapshot.at),
            Err(_) => (&none, Instant::ZERO),
        };
        Pool {
            name: self.info.name.clone(),
            members: self.members,
            overhead: stats.overhead.into(),
            by_volume: by_volume(&self.volumes, stats),
            volumes: self.volumes,
            size_bytes: self.info.size,
            allocated_bytes: self.allocated,
            shard: self.info.shard,
            throttle: throttle_word(self.info.throttle),
            at_ns: at.as_nanos(),
            dirty_bytes: stats.dirty,
            dirty_metadata_bytes: stats.dirty_metadata,
            degraded: stats.degraded,
            throttled: stats.throttled,
            level: stats.level.into(),
            admissions: stats.admissions.into(),
            traffic: traffic(stats),
            mirrors: stats.mirrors.map(Into::into),
            memory_bytes: snapshot.as_ref().map_or(0, |snapshot| snapshot.memory),
            failed: snapshot.err(),
        }
    }

    /// The figures of the queues of the pool's disks, which the daemon has counted since `since`.
    pub(crate) fn latency(&self, since: Instant, snapshot: &PoolSnapshot) -> PoolLatency {
        let stats = &snapshot.stats;
        PoolLatency {
            pool: self.info.name.clone(),
            layout: LAYOUT.to_owned(),
            since_ns: since.as_nanos(),
            at_ns: snapshot.at.as_nanos(),
            allocated_bytes: self.allocated,
            free_bytes: self.info.size.saturating_sub(self.allocated),
            traffic: traffic(stats),
            overhead: stats.overhead.into(),
            by_volume: by_volume(&self.volumes, stats),
            classes: Class::ALL.map(|class| class_latency(stats, class)).into(),
            txgs: txgs(stats),
        }
    }
}

/// The transaction groups that a pool remembers, the oldest first.
pub(crate) fn txgs(stats: &PoolStats) -> Vec<Txg> {
    stats.txgs.iter().map(Txg::from).collect()
}

/// The tunables of a pool, in the order of their table.
pub(crate) fn tunables(tunables: &Tunables) -> Vec<TunableValue> {
    let values = tunables.iter().map(|(tunable, value)| {
        let info = tunable.info();
        let default = info.default(tunables.ram());
        let (unit, choices) = unit(info.unit);
        TunableValue {
            name: info.name.to_owned(),
            value,
            words: format_tunable(value, info.unit),
            unit: unit.to_owned(),
            default,
            default_words: format_tunable(default, info.unit),
            min: info.min,
            max: info.max,
            choices: choices.iter().map(|word| (*word).to_owned()).collect(),
            help: info.help.to_owned(),
        }
    });
    values.collect()
}

/// The word for a unit, and the words to choose from if the unit is a choice.
fn unit(unit: Unit) -> (&'static str, &'static [&'static str]) {
    match unit {
        Unit::Bytes => ("bytes", &[]),
        Unit::Percent => ("percent", &[]),
        Unit::Nanoseconds => ("ns", &[]),
        Unit::Milliseconds => ("ms", &[]),
        Unit::Seconds => ("s", &[]),
        Unit::Count => ("count", &[]),
        Unit::Choice(words) => ("choice", words),
    }
}

fn traffic(stats: &PoolStats) -> PoolTraffic {
    PoolTraffic {
        volumes: stats.volumes.into(),
        queues: stats.queued.into(),
        disks: stats.disks.into(),
    }
}

/// The counts of each volume, by name.
fn by_volume(names: &[String], stats: &PoolStats) -> Vec<VolumeTraffic> {
    let volumes = names.iter().zip(&stats.by_volume);
    let volumes = volumes.map(|(name, counts)| VolumeTraffic {
        volume: name.clone(),
        traffic: (*counts).into(),
    });
    volumes.collect()
}

/// One class, with the sums of its figures in the queues of all disks.
fn class_latency(stats: &PoolStats, class: Class) -> ClassLatency {
    let classes = || {
        let queues = stats.queues.iter();
        queues.map(|queue| &queue.classes[class as usize])
    };
    let merged = |of: fn(&ClassStats) -> Option<&Histogram>| {
        let mut all = Histogram::default();
        classes()
            .filter_map(of)
            .for_each(|histogram| all.merge(histogram));
        all
    };
    ClassLatency {
        class: class.name().to_owned(),
        pending: classes().map(|class| u64::from(class.pending)).sum(),
        active: classes().map(|class| u64::from(class.active)).sum(),
        total_wait: LatencyHistogram::of(&merged(|class| class.total_wait.as_deref())),
        disk_wait: LatencyHistogram::of(&merged(|class| class.disk_wait.as_deref())),
        queue_wait: LatencyHistogram::of(&merged(|class| class.queue_wait.as_deref())),
        alone: SizeHistogram::of(&merged(|class| class.alone.as_deref())),
        joined: SizeHistogram::of(&merged(|class| class.joined.as_deref())),
    }
}
