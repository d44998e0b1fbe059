//! Converts shards to the API's type, with their load, stops and probes.

use dashpot_api::{Disk, Load, Probe, Shard, StopTotals, Stops};
use dashpot_engine::Instant;
use dashpot_export::{ProbeReading, StopSum, Stops as Stopped, Work};
use dashpot_observe::is_enough;

/// The shards of the disks that have not failed, by number. `probe` returns the readings of a shard's prober.
pub(crate) fn shards(
    disks: &[Disk],
    spins: bool,
    probe: impl Fn(usize) -> Vec<ProbeReading>,
) -> Vec<Shard> {
    let mut shards: Vec<Shard> = Vec::new();
    for disk in disks.iter().filter(|disk| disk.failed.is_none()) {
        let known = shards.iter_mut().find(|shard| shard.shard == disk.shard);
        if let Some(shard) = known {
            shard.disks.push(disk.name.clone());
            continue;
        }
        let now = Instant::from_nanos(disk.io.at_ns);
        shards.push(Shard {
            shard: disk.shard,
            disks: vec![disk.name.clone()],
            spins,
            load: disk.shard_load,
            memory: disk.shard_memory,
            loop_gap: disk.loop_gap,
            stops: disk.shard_stops,
            probe: summed_up(&probe(disk.shard), now),
        });
    }
    shards.sort_unstable_by_key(|shard| shard.shard);
    shards
}

pub(super) fn load(work: Work) -> Load {
    Load {
        busy_percent: work.busy_percent,
        overloaded: work.overloaded,
        overloaded_seconds: work.overloaded_seconds,
    }
}

pub(super) fn stops(stopped: Stopped, now: Instant) -> Stops {
    Stops {
        all: totals(stopped.all),
        recent: totals(stopped.recent),
        last_age_ns: stopped.last.map(|last| now.since(last).as_nanos()),
    }
}

fn totals(sum: StopSum) -> StopTotals {
    StopTotals {
        count: sum.count,
        total_ns: sum.total.as_nanos(),
        longest_ns: sum.longest.as_nanos(),
    }
}

fn summed_up(readings: &[ProbeReading], now: Instant) -> Probe {
    let mut errors: Vec<u64> = readings.iter().map(|one| one.error.as_nanos()).collect();
    errors.sort_unstable();
    let n = errors.len() as u64;
    let middle = errors.get(errors.len() / 2).copied();
    let last = readings.last();
    Probe {
        n,
        age_ns: last.map(|last| now.since(last.at).as_nanos()),
        last_ns: last.map(|last| last.error.as_nanos()),
        p50_ns: middle.filter(|_| is_enough(n, 500_000)),
        max_ns: errors.last().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::summed_up;
    use dashpot_engine::{Duration, Instant};
    use dashpot_export::ProbeReading;

    #[test]
    fn a_probe_is_summed_up_with_its_n() {
        let reading = |at, error| ProbeReading {
            at: Instant::from_nanos(at),
            error: Duration::from_nanos(error),
        };
        let probe = |readings: &[ProbeReading]| {
            let probe = summed_up(readings, Instant::from_nanos(100));
            (
                probe.n,
                probe.age_ns,
                probe.last_ns,
                probe.p50_ns,
                probe.max_ns,
            )
        };
        assert_eq!(probe(&[]), (0, None, None, None, None));
        assert_eq!(
            probe(&[reading(70, 9)]),
            (1, Some(30), Some(9), None, Some(9))
        );
        assert_eq!(
            probe(&[reading(50, 9), reading(60, 1), reading(70, 2)]),
            (3, Some(30), Some(2), Some(2), Some(9))
        );
    }
}
