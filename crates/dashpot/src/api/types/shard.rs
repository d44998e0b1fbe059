//! A shard, the thread that serves some of the disks, and whether it keeps up.

use dashpot_engine::Instant;
use dashpot_export::{ProbeReading, StopSum, Stops as Stopped, Work};
use dashpot_observe::is_enough;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::rule::Summary;
use super::{ClientMemory, Disk};

/// A shard.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Shard {
    pub(crate) shard: usize,
    /// The disks that it serves.
    pub(crate) disks: Vec<String>,
    /// Whether it meets its deadlines by spinning.
    pub(crate) spins: bool,
    pub(crate) load: Load,
    pub(crate) memory: ClientMemory,
    /// How long it did not look at its sockets beyond the time for which it meant to sleep, each time
    /// since the start.
    pub(crate) loop_gap: Summary,
    pub(crate) stops: Stops,
    pub(crate) probe: Probe,
}

/// How much of its time a shard works. The accuracy of its rules is promised up to half of it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Load {
    /// The share of the last second or two.
    pub(crate) busy_percent: u32,
    /// Whether that is more, and there are rules.
    pub(crate) overloaded: bool,
    /// Seconds since the start in which it was.
    pub(crate) overloaded_seconds: u64,
}

/// How often the host kept a shard from running for more than 1 ms: another process had its CPU,
/// SIGSTOP, a frozen container, a paused virtual machine, a suspended host. What was due or arrived
/// in that time is late. While clients ask for something a stop may have been up to 20 ms longer than
/// is counted; up to a second longer, if nothing had been asked for a second before it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Stops {
    /// Since the start.
    pub(crate) all: StopTotals,
    /// In the last 30 to 60 seconds.
    pub(crate) recent: StopTotals,
    /// How long ago the last one ended.
    pub(crate) last_age_ns: Option<u64>,
}

/// Stops, added up.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct StopTotals {
    pub(crate) count: u64,
    pub(crate) total_ns: u64,
    pub(crate) longest_ns: u64,
}

/// What a read through a socket of the daemon's own took beyond the 1 ms of its rule: the error
/// that a client of this host meets, its own wake-up included. Of the last minute; read once a second while clients ask for
/// something, and never otherwise.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Probe {
    /// Readings of the last minute. None if nothing was asked of the shard.
    pub(crate) n: u64,
    /// How long ago the last one was.
    pub(crate) age_ns: Option<u64>,
    pub(crate) last_ns: Option<u64>,
    pub(crate) p50_ns: Option<u64>,
    pub(crate) max_ns: Option<u64>,
}

impl Shard {
    /// The shards of some disks. `probe` has the readings of each.
    pub(crate) fn all(
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
            let now = Instant::from_nanos(disk.at_ns);
            shards.push(Shard {
                shard: disk.shard,
                disks: vec![disk.name.clone()],
                spins,
                load: disk.shard_load,
                memory: disk.shard_memory,
                loop_gap: disk.loop_gap,
                stops: disk.shard_stops,
                probe: Probe::of(&probe(disk.shard), now),
            });
        }
        shards.sort_unstable_by_key(|shard| shard.shard);
        shards
    }
}

impl Load {
    pub(crate) fn of(work: Work) -> Load {
        Load {
            busy_percent: work.busy_percent,
            overloaded: work.overloaded,
            overloaded_seconds: work.overloaded_seconds,
        }
    }
}

impl Stops {
    pub(crate) fn of(stops: Stopped, now: Instant) -> Stops {
        Stops {
            all: StopTotals::of(stops.all),
            recent: StopTotals::of(stops.recent),
            last_age_ns: stops.last.map(|last| now.since(last).as_nanos()),
        }
    }
}

impl StopTotals {
    fn of(sum: StopSum) -> StopTotals {
        StopTotals {
            count: sum.count,
            total_ns: sum.total.as_nanos(),
            longest_ns: sum.longest.as_nanos(),
        }
    }
}

impl Probe {
    fn of(readings: &[ProbeReading], now: Instant) -> Probe {
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
}

#[cfg(test)]
mod tests {
    use super::Probe;
    use dashpot_engine::{Duration, Instant};
    use dashpot_export::ProbeReading;

    #[test]
    fn a_probe_is_summed_up_with_its_n() {
        let reading = |at, error| ProbeReading {
            at: Instant::from_nanos(at),
            error: Duration::from_nanos(error),
        };
        let probe = |readings: &[ProbeReading]| {
            let probe = Probe::of(readings, Instant::from_nanos(100));
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
