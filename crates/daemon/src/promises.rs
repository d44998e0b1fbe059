//! The promises about time: whether dashpot can keep each promise on this host, and the reason if
//! it cannot.
//!
//! SPECIFICATION.md has the bounds, and the measurements behind the bounds. The bounds apply to medians, on
//! hosts that give a shard a CPU when it needs one. This file looks for causes that keep a shard from its
//! CPU. It measures nothing: if it finds no such cause, its verdict is that dashpot can keep the promise. The
//! prober and `make bench` measure.

use dashpot_api::{CanHold, Disk, Host, LATENESS_NS, LATENESS_OF_BURST_NS, Promise, Shard};
use dashpot_rules::{cpus_of, short_time};

type Verdict = (CanHold, String);

/// The known facts about a host, and about the shards of a daemon if one runs there.
struct Facts<'a> {
    host: &'a Host,
    shards: &'a [Shard],
    disks: &'a [Disk],
    wake_cost_ns: Option<u64>,
}

/// Every promise about time, for a running daemon.
pub fn promises(host: &Host, shards: &[Shard], disks: &[Disk]) -> Vec<Promise> {
    all(&Facts {
        host,
        shards,
        disks,
        wake_cost_ns: None,
    })
}

/// Every promise about time, for a daemon that could be started on this host. `wake_cost_ns` is the median
/// cost of a wake-up.
pub fn promises_of_host(host: &Host, wake_cost_ns: u64) -> Vec<Promise> {
    all(&Facts {
        host,
        shards: &[],
        disks: &[],
        wake_cost_ns: Some(wake_cost_ns),
    })
}

fn all(facts: &Facts<'_>) -> Vec<Promise> {
    let table: [(&str, Verdict); 6] = [
        ("no zio completes before its target", facts.never_early()),
        (
            "p50 lateness of at most 30 us, by spinning",
            facts.spinning(),
        ),
        (
            "without spinning, as late as a sleep at p50",
            facts.sleeping(),
        ),
        (
            "end to end within 100 us at p50, 1-10 ms",
            facts.end_to_end(),
        ),
        (
            "beside a flood, a 10 ms disk below 11 ms",
            facts.beside_a_flood(),
        ),
        ("an idle daemon does not wake up", facts.idle()),
    ];
    let promise = |(promise, (can_hold, why)): (&str, Verdict)| Promise {
        promise: promise.to_owned(),
        can_hold,
        why,
    };
    table.map(promise).to_vec()
}

impl Facts<'_> {
    fn never_early(&self) -> Verdict {
        yes("the engine compares each with its target; no host can change that")
    }

    fn spinning(&self) -> Verdict {
        if let Some(quota) = self.host.quota_millicpus {
            return no(format!(
                "a CPU quota of {} is in force, and spinning uses it up: lift it",
                cpus_of(quota)
            ));
        }
        if self.shards.iter().any(|shard| !shard.spins) {
            return no("the daemon does not spin: start it with --spin auto, and without a quota");
        }
        let (can_hold, why) = self.in_the_way().unwrap_or_else(|| self.for_the_median());
        match (can_hold, self.measured()) {
            (CanHold::Yes, Some((true, measured))) => doubtful(measured),
            (can_hold, Some((_, measured))) => (can_hold, format!("{why}; {measured}")),
            (can_hold, None) => (can_hold, why),
        }
    }

    /// The lateness of armed rules, measured on the disk where they were latest, and whether this
    /// lateness exceeds the promise.
    fn measured(&self) -> Option<(bool, String)> {
        let judged = self.disks.iter().filter_map(|disk| {
            let late = disk.rule_lateness;
            let p50 = late.p50_ns.filter(|_| late.count >= MEASURED_MIN)?;
            let promised = LATENESS_NS + LATENESS_OF_BURST_NS * disk.io.mean_depth();
            Some((p50.saturating_sub(promised), p50, promised, disk))
        });
        let (beyond, p50, promised, disk) =
            judged.max_by_key(|(beyond, p50, ..)| (*beyond, *p50))?;
        let why = format!(
            "armed rules on {} were {} late at p50 (n={}), {} are promised there",
            disk.name,
            short_time(p50),
            disk.rule_lateness.count,
            short_time(promised)
        );
        Some((beyond > 0, why))
    }

    fn sleeping(&self) -> Verdict {
        self.stopped()
            .or_else(|| self.in_the_way())
            .unwrap_or_else(|| self.for_the_median())
    }

    fn end_to_end(&self) -> Verdict {
        let (can_hold, why) = self.spinning();
        let (Some((error, reads)), true) = (self.probed(), can_hold != CanHold::No) else {
            return (can_hold, why);
        };
        if error > WITH_WAKE_UP_NS {
            no(reads)
        } else if error > END_TO_END_NS {
            doubtful(reads)
        } else {
            (can_hold, format!("{reads}; {why}"))
        }
    }

    /// How late a sleeping client wakes here, and the source of that figure: the worst of the probes
    /// or, if no probe has a reading, the cost of a wake-up.
    fn probed(&self) -> Option<(u64, String)> {
        let probes = self.shards.iter().map(|shard| shard.probe);
        let p50 = probes.clone().filter_map(|probe| probe.p50_ns).max();
        let last = probes.filter_map(|probe| probe.last_ns).max();
        let says = |ns: u64, who: &str| (ns, format!("{who} {}", short_time(ns)));
        let probe = match (p50, last) {
            (Some(p50), _) => Some((
                p50,
                format!(
                    "the probe reads {} at p50, its wake-up included",
                    short_time(p50)
                ),
            )),
            (None, Some(last)) => Some(says(last, "the probe has read")),
            (None, None) => None,
        };
        probe.or_else(|| {
            Some(says(
                self.wake_cost_ns?,
                "a client that sleeps is woken late by",
            ))
        })
    }

    /// The promise about a zio beside a flood. The work that a shard does in one pass is bounded, so the
    /// flood does no harm. If the host stops the shard, however briefly, the promise can break.
    fn beside_a_flood(&self) -> Verdict {
        self.stopped()
            .or_else(|| self.paused(STOP_NS))
            .or_else(|| self.crowded())
            .unwrap_or_else(|| self.for_the_median())
    }

    fn idle(&self) -> Verdict {
        yes("no timer runs and no probe reads while nothing is asked for")
    }

    /// A cause that keeps a shard from running when a zio is due.
    fn in_the_way(&self) -> Option<Verdict> {
        self.overloaded()
            .or_else(|| self.paused(STOPPED_MUCH_NS))
            .or_else(|| self.crowded())
    }

    /// A verdict if the host has stopped a shard in the last minute, for a total of at least `least_ns`.
    fn paused(&self, least_ns: u64) -> Option<Verdict> {
        let worst = self
            .shards
            .iter()
            .max_by_key(|one| one.stops.recent.total_ns)?;
        let recent = worst.stops.recent;
        (recent.count > 0 && recent.total_ns >= least_ns).then(|| {
            doubtful(format!(
                "the host stopped shard {} for {} in the last minute, at most {} at once",
                worst.shard,
                short_time(recent.total_ns),
                short_time(recent.longest_ns)
            ))
        })
    }

    fn overloaded(&self) -> Option<Verdict> {
        let shard = self.shards.iter().find(|shard| shard.load.overloaded)?;
        Some(no(format!(
            "overloaded: shard {} works {} % of its time; ask less of its disks ({})",
            shard.shard,
            shard.load.busy_percent,
            shard.disks.join(", ")
        )))
    }

    fn stopped(&self) -> Option<Verdict> {
        let Host {
            throttled_periods,
            quota_periods,
            ..
        } = *self.host;
        (throttled_periods > 0).then(|| {
            no(format!(
                "the CPU quota has stopped it in {throttled_periods} of {quota_periods} periods: \
                 raise it"
            ))
        })
    }

    fn crowded(&self) -> Option<Verdict> {
        if self.host.cpus < 2 {
            return Some(doubtful("one CPU: clients run on it when a zio is due"));
        }
        let steal = self
            .host
            .steal_percent
            .filter(|steal| *steal >= STEAL_MUCH)?;
        Some(doubtful(format!(
            "the hypervisor takes {steal:.0} % of the CPU time"
        )))
    }

    fn for_the_median(&self) -> Verdict {
        match self.host.steal_percent {
            Some(steal) if steal >= STEAL_SOME => yes(format!(
                "at the median; {steal:.1} % steal shows in the tail"
            )),
            _ => yes("nothing is in the way"),
        }
    }
}

fn yes(why: impl Into<String>) -> Verdict {
    (CanHold::Yes, why.into())
}

fn doubtful(why: impl Into<String>) -> Verdict {
    (CanHold::Doubtful, why.into())
}

fn no(why: impl Into<String>) -> Verdict {
    (CanHold::No, why.into())
}

/// With fewer held zios than this, the median means nothing.
const MEASURED_MIN: u64 = 30;
/// The bound on the end-to-end error of a client that polls.
const END_TO_END_NS: u64 = 100_000;
/// The bound on the end-to-end error of a client that sleeps.
const WITH_WAKE_UP_NS: u64 = END_TO_END_NS + 115_000;
/// Stops count only if they total at least this in the last minute.
const STOP_NS: u64 = 1_000_000;
/// Stops can affect the median only if they total at least this in the last minute. This is 1 % of 30 s,
/// because the count of recent stops goes back at least 30 s.
const STOPPED_MUCH_NS: u64 = 300_000_000;
/// The smallest share of steal that matters, in percent.
const STEAL_SOME: f64 = 1.0;
/// The smallest share of steal that can affect the median, in percent.
const STEAL_MUCH: f64 = 25.0;

#[cfg(test)]
#[path = "promises_tests.rs"]
mod tests;
