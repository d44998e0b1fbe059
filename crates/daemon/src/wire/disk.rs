//! Converts snapshots of disks and volumes to the API's types.

use dashpot_api::{Disk, Summary, Suspension, Unheld, UnheldWay, Volume, WriteWord};
use dashpot_engine::histogram::Histogram;
use dashpot_engine::pool::{ThrottleConfig, WritePolicy};
use dashpot_export::{DiskInfo, DiskSnapshot, PoolInfo, VolumeInfo};

use super::device::DeviceView;
use super::memory::client_memory;
use super::shard::{load, stops};

/// A disk in the API's form.
pub(crate) fn disk(
    info: &DiskInfo,
    pool: Option<&PoolInfo>,
    uris: &[String],
    snapshot: &DiskSnapshot,
) -> Disk {
    Disk {
        name: info.name.clone(),
        pool: pool.map(|pool| pool.name.clone()),
        uris: uris.to_vec(),
        store: info.store.clone(),
        store_id: info.store_id.clone(),
        size_bytes: info.size,
        block_bytes: info.block,
        read_only: info.read_only,
        shard: info.shard,
        rules: snapshot.rules.len(),
        suspended: suspension(snapshot),
        off: snapshot.off,
        faulted: snapshot.faulted.clone(),
        damaged: snapshot.damaged.0,
        wrong_bytes: snapshot.damaged.1,
        failed: None,
        loop_gap: Summary::of(Some(&snapshot.loop_gap)),
        shard_stops: stops(snapshot.stops, snapshot.at),
        shard_load: load(snapshot.work),
        shard_memory: client_memory(snapshot.held),
        rule_lateness: Summary::of(Some(&lateness_of_rules(snapshot))),
        unheld: unheld(info),
        interrupted: interrupted(info),
        io: DeviceView(snapshot).io(),
    }
}

/// The accesses to a path disk's files that were not held; `None` for other disks.
pub(crate) fn unheld(info: &DiskInfo) -> Option<Unheld> {
    info.followed.as_ref()?;
    let counted = info.path_counts.unheld.counted();
    let way = |&(way, count): &(dashpot_export::Unheld, u64)| UnheldWay {
        way: way.word().to_owned(),
        count,
        said: way.counted(count),
        remedy: way.remedy().to_owned(),
    };
    Some(Unheld {
        count: counted.iter().map(|(_, count)| count).sum(),
        ways: counted.iter().map(way).collect(),
    })
}

/// How many calls of a path disk's programs a signal ended; `None` for other disks, and if it is not known.
pub(crate) fn interrupted(info: &DiskInfo) -> Option<u64> {
    info.followed.as_ref()?;
    info.path_counts.interrupted()
}

/// A volume in the API's form.
pub(crate) fn volume(
    info: &VolumeInfo,
    pool: &PoolInfo,
    uris: &[String],
    snapshot: &DiskSnapshot,
) -> Volume {
    Volume {
        name: info.name.clone(),
        pool: pool.name.clone(),
        uris: uris.to_vec(),
        size_bytes: info.size,
        block_bytes: info.block_size,
        store_id: info.store_id.clone(),
        write: match info.write {
            WritePolicy::Through => WriteWord::Through,
            WritePolicy::Back => throttle_word(pool.throttle),
        },
        shard: pool.shard,
        off: snapshot.off,
        failed: None,
        io: DeviceView(snapshot).io(),
    }
}

/// The word for the throttle of volumes that acknowledge writes early.
pub(crate) fn throttle_word(throttle: ThrottleConfig) -> WriteWord {
    match throttle {
        ThrottleConfig::None => WriteWord::None,
        ThrottleConfig::OpenZfs => WriteWord::Openzfs,
        ThrottleConfig::Legacy(_) => WriteWord::Legacy,
    }
}

fn suspension(snapshot: &DiskSnapshot) -> Option<Suspension> {
    let (since, lasts) = snapshot.suspended?;
    let age = snapshot.at.since(since);
    Some(Suspension {
        age_ns: age.as_nanos(),
        remaining_ns: lasts.map(|lasts| (lasts - age).as_nanos()),
    })
}

fn lateness_of_rules(snapshot: &DiskSnapshot) -> Histogram {
    let mut all = Histogram::default();
    let rules = snapshot.rules.iter();
    rules
        .filter_map(|rule| rule.stats.holds.lateness())
        .for_each(|lateness| all.merge(lateness));
    all
}
