//! Whether a rule was kept, and what was in the way.
//!
//! The measure is dashpot's own promise: the median lateness of what it held. Beside a promise
//! about time, a rule can fail to be one at all: nothing met it, another rule decided, or the store
//! was slower than the rule.

use std::fmt;

use dashpot_engine::histogram::Histogram;
use serde::Serialize;

use crate::api::types::{Disk, Host, Rule, RuleEffect, Shard};
use crate::report::health::{overload_note, quota_note};
use crate::report::nice::short_time;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    Kept,
    NotKept,
    /// There is nothing to judge by.
    Unproven,
}

/// All that is known of a rule and of what could have been in its way.
pub(crate) struct Facts<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) requested: &'a Histogram,
    pub(crate) achieved: &'a Histogram,
    pub(crate) lateness: &'a Histogram,
    pub(crate) disk: &'a Disk,
    /// What clients added on average by sending a request and by taking its reply.
    pub(crate) outside_ns: u64,
    pub(crate) shard: Option<&'a Shard>,
    pub(crate) host: &'a Host,
    /// Where the daemon does not spin: how much too long the median sleep of this host is.
    pub(crate) oversleep_ns: Option<u64>,
}

/// The promised median lateness of zios that are due one by one, where the daemon spins.
const LATENESS_NS: u64 = 30_000;
/// What each zio of a burst adds to it.
const LATENESS_OF_BURST_NS: u64 = 500;
/// Shares in percent from which on something is worth telling.
const LATE_SHARE: u64 = 1;
const OVERRUN_SHARE: u64 = 1;
const STEAL_SHARE: f64 = 1.0;

impl Facts<'_> {
    /// The promised median lateness: at once can be due what is in flight, and no more than there
    /// are lanes.
    pub(crate) fn allowed_lateness(&self) -> u64 {
        let alone = match self.oversleep_ns {
            Some(oversleep) => oversleep + oversleep / 5,
            None => LATENESS_NS,
        };
        alone + LATENESS_OF_BURST_NS * self.burst()
    }

    fn burst(&self) -> u64 {
        let depth = self
            .disk
            .depth_time_ns
            .0
            .checked_div(u128::from(self.disk.busy_ns));
        let depth = depth.and_then(|depth| u64::try_from(depth).ok());
        let lanes = self.rule.fields.lanes.map_or(u64::MAX, u64::from);
        depth.unwrap_or_default().max(1).min(lanes)
    }

    pub(super) fn verdict(&self) -> (Verdict, String) {
        let counters = &self.rule.counters;
        if let Some(overrun) = self.overrun() {
            return (Verdict::NotKept, overrun);
        }
        if let Some(why) = &self.rule.why_nothing {
            return (Verdict::Unproven, self.nothing(why));
        }
        match self.rule.fields.effect {
            RuleEffect::Error => {
                let errno = self.rule.fields.errno.as_deref().unwrap_or("an error");
                let failed = format!("{} failed with {errno}", counters.failed);
                return (Verdict::Kept, failed);
            }
            RuleEffect::Hang => {
                let hung = format!("{} hung, {} of them now", counters.injected, counters.now);
                return (Verdict::Kept, hung);
            }
            RuleEffect::Delay | RuleEffect::Bandwidth => {}
        }
        match self.lateness.quantile(500_000) {
            Some(p50) => self.judge(p50),
            None if counters.now > 0 => {
                let now = format!("nothing has ended yet, {} held now", counters.now);
                (Verdict::Unproven, now)
            }
            None if counters.aborted > 0 => {
                let aborted = counters.aborted;
                let gone = format!("the clients of {aborted} were gone before these had ended");
                (Verdict::Unproven, gone)
            }
            None => {
                let released = "what it held was released before its time".to_owned();
                (Verdict::Unproven, released)
            }
        }
    }

    fn judge(&self, p50_ns: u64) -> (Verdict, String) {
        let allowed = self.allowed_lateness();
        let (p50, n) = (short_time(p50_ns), self.lateness.count());
        let measured = format!("p50 lateness {p50} (n={n})");
        let allowed_words = short_time(allowed);
        if p50_ns <= allowed {
            return (
                Verdict::Kept,
                format!("{measured} of at most {allowed_words}"),
            );
        }
        let causes = self.causes().join("; ");
        let why = format!("{measured}, at most {allowed_words} is promised: {causes}");
        (Verdict::NotKept, why)
    }

    /// Zios that the rule could not delay are in none of its figures, so they must be few.
    fn overrun(&self) -> Option<String> {
        let counters = &self.rule.counters;
        let (overrun, all) = (counters.overrun, counters.overrun + counters.held);
        (overrun * 100 > all * OVERRUN_SHARE).then(|| {
            format!(
                "{} were not delayed, the store was slower than the rule: --mode add delays them \
                 all the same",
                share(overrun, all)
            )
        })
    }

    /// Why the rule has injected nothing, with what its disk was asked for instead.
    fn nothing(&self, why: &str) -> String {
        if self.rule.counters.matched > 0 {
            return format!(
                "matched {}, injected nothing: {why}",
                self.rule.counters.matched
            );
        }
        let done = self.disk.ops.iter().filter(|op| op.completed > 0);
        let done: Vec<String> = done
            .map(|op| format!("{} {}", op.op, op.completed))
            .collect();
        let done = match done.is_empty() {
            true => "nothing".to_owned(),
            false => done.join(", "),
        };
        let disk = &self.disk.name;
        format!("{why} (asked of {disk} since the start: {done})")
    }

    pub(super) fn warnings(&self, verdict: Verdict) -> Vec<String> {
        let counters = &self.rule.counters;
        let is_late = counters.late * 100 > counters.held * LATE_SHARE;
        let late = is_late.then(|| {
            let late = share(counters.late, counters.held);
            format!("{late} were late by more than 1 ms or 5 % of the delay")
        });
        let causes = match (verdict, is_late) {
            (Verdict::NotKept, _) => Vec::new(),
            (_, true) => self.causes(),
            (_, false) => self.distortions(),
        };
        late.into_iter().chain(causes).collect()
    }

    /// What can have made zios late.
    fn causes(&self) -> Vec<String> {
        let steal = self.host.steal_percent;
        let steal = steal.filter(|steal| *steal >= STEAL_SHARE);
        let alone = (self.host.cpus < 2).then(|| "daemon and clients share one CPU".to_owned());
        let outside = (self.outside_ns > self.allowed_lateness()).then(|| {
            format!(
                "clients took {} on average to send a request and take its reply",
                short_time(self.outside_ns)
            )
        });
        let steal = steal.map(|steal| format!("the hypervisor took {steal:.1} % of the CPU time"));
        let mut causes = self.distortions();
        causes.extend([steal, alone, self.gaps(), outside].into_iter().flatten());
        if causes.is_empty() {
            causes
                .push("nothing known explains it, 'dashpot doctor' examines this host".to_owned());
        }
        causes
    }

    /// How long the shard did not look at its sockets: what keeps it from that keeps it from
    /// meeting deadlines, too.
    fn gaps(&self) -> Option<String> {
        let shard = self.shard?;
        let gap = shard.loop_gap.p99_ns?;
        (gap > self.allowed_lateness()).then(|| {
            let (number, gap) = (shard.shard, short_time(gap));
            format!(
                "shard {number} was away for {gap} at p99: others use its CPU, or much is asked"
            )
        })
    }

    /// What makes latencies wrong, whatever the median says.
    fn distortions(&self) -> Vec<String> {
        let quota = quota_note(self.host);
        let overload = self.shard.and_then(overload_note);
        let stalls = (self.rule.stalls > 0).then(|| {
            let stalls = self.rule.stalls;
            format!("connections were stalled {stalls} times: depth is bounded")
        });
        [quota, overload, stalls].into_iter().flatten().collect()
    }
}

/// `31 of 1000 (3.1 %)`.
fn share(part: u64, all: u64) -> String {
    format!(
        "{part} of {all} ({:.1} %)",
        part as f64 * 100.0 / all as f64
    )
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Kept => "kept",
            Verdict::NotKept => "not kept",
            Verdict::Unproven => "unproven",
        })
    }
}
