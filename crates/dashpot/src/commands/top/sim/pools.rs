//! The state of a simulation's pools.

use dashpot_engine::pool::ThrottleConfig;
use dashpot_engine::{Device, Op};
use dashpot_observe::{DeviceInterval, Kind};
use dashpot_sim::scenario::Scenario;

use crate::commands::sim::snapshot::PoolSnapshot;
use crate::commands::top::frame::{PoolFrame, TXGS_MAX};

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
        dirty: stats.dirty,
        level: stats.level,
        throttled: stats.throttled,
        written,
        txgs: stats.txgs.iter().rev().take(TXGS_MAX).copied().collect(),
    }
}

/// The clients' writes to each pool in an interval, in operations and bytes per second. The
/// intervals of volumes must come first.
pub(super) fn written(
    scenario: &Scenario,
    intervals: &[DeviceInterval],
) -> Vec<Option<(f64, f64)>> {
    let of_pool = |pool: usize| {
        let volumes = scenario.volumes.iter().zip(intervals);
        let own = volumes.filter(|(volume, _)| volume.pool == pool);
        let done = own.filter_map(|(_, interval)| written_to(interval));
        done.reduce(|one, other| (one.0 + other.0, one.1 + other.1))
    };
    (0..scenario.pools.len()).map(of_pool).collect()
}

/// `None` if no time has passed.
fn written_to(volume: &DeviceInterval) -> Option<(f64, f64)> {
    let seconds = Some(volume.elapsed.as_secs_f64()).filter(|seconds| *seconds > 0.0)?;
    let writes = volume
        .ops
        .iter()
        .filter(|op| matches!(op.kind, Kind::Op(Op::Write | Op::Zero)));
    let sum = writes.fold((0, 0), |sum, op| (sum.0 + op.completed, sum.1 + op.bytes));
    Some((sum.0 as f64 / seconds, sum.1 as f64 / seconds))
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
