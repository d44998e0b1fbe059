//! The state of a simulation's pools.

use dashpot_engine::Device;
use dashpot_engine::pool::ThrottleConfig;
use dashpot_sim::scenario::Scenario;
use dashpot_sources::simulated::PoolSnapshot;

use crate::frame::{self, PoolFrame, TXGS_MAX};

/// The pool at this index. `written` has its clients' writes, in operations and bytes per second.
pub(super) fn pool_look(
    scenario: &Scenario,
    place: usize,
    seen: &PoolSnapshot,
    written: Option<(f64, f64)>,
) -> PoolFrame {
    let stats = &seen.stats;
    PoolFrame {
        name: seen.name.clone(),
        throttle: match scenario.pools[place].throttle {
            ThrottleConfig::None => "none",
            ThrottleConfig::OpenZfs => "openzfs",
            ThrottleConfig::Legacy(_) => "legacy",
        },
        dirty: stats.dirty + stats.dirty_metadata,
        level: stats.level,
        throttled: stats.throttled,
        written,
        txgs: stats.txgs.iter().rev().take(TXGS_MAX).copied().collect(),
    }
}

/// The clients' writes to each pool between two moments.
pub(super) fn written(later: &[PoolSnapshot], earlier: &[PoolSnapshot]) -> Vec<Option<(f64, f64)>> {
    let pairs = later.iter().zip(earlier);
    let of_pool = |(later, earlier): (&PoolSnapshot, &PoolSnapshot)| {
        let done = later.stats.volumes.since(earlier.stats.volumes);
        frame::written(done, later.elapsed_since(earlier))
    };
    pairs.map(of_pool).collect()
}

/// The name of the pool of a volume or a disk.
pub(super) fn pool_of(scenario: &Scenario, device: Device) -> Option<String> {
    let pool = match device {
        Device::Volume(volume) => scenario.pools.get(scenario.volumes[volume.0 as usize].pool),
        Device::Disk(disk) => scenario.pools.iter().find(|pool| {
            let mut disks = pool.members.iter().flatten();
            disks.any(|member| *member == disk.0 as usize)
        }),
    };
    pool.map(|pool| pool.name.clone())
}
