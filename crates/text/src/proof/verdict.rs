//! The verdict on a rule, which answers two questions.
//!
//! *Was it injected as asked?* The rule must have matched and held zios. The rule does not hold a zio that
//! another rule decides. Without `--mode add`, it also does not hold a zio for which the store takes longer
//! than the rule's delay. *How far off was it?* The error, which is the achieved time minus the requested
//! time, must be within the caller's tolerance, at the median and at p99. If it is outside the tolerance only
//! because of zios that fell due while the host had stopped the shard, the host is to blame, and the verdict
//! is "cannot tell".
//!
//! SPECIFICATION.md also promises that dashpot itself is late by only microseconds. The verdict does not
//! depend on that promise: whether dashpot can keep it depends on the host, and a test of an application does
//! not need such precision.

use std::fmt;

use dashpot_api::{Disk, Host, LATENESS_NS, LATENESS_OF_BURST_NS, Rule, RuleEffect, Shard};
use dashpot_engine::histogram::Histogram;
use dashpot_observe::percentile;
use dashpot_rules::{Allowance, short_time};
use serde::Serialize;

use super::figures::{Error, share, signed};

/// Whether a rule was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The rule did what it says, within the tolerances.
    Kept,
    /// The rule did not do what it says, or its error is outside the tolerances.
    NotKept,
    /// The rule missed its tolerances, but perhaps only because the host stopped the shard.
    CannotTell,
    /// Too little is known for a verdict.
    Unproven,
}

/// The largest error that a rule may have, and the least number of zios that it must have held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// The largest error at the median.
    pub within: Allowance,
    /// The largest error at p99.
    pub tail: Allowance,
    /// If the rule held fewer zios than this, there is no verdict.
    pub min: u64,
}

impl Default for Tolerance {
    fn default() -> Tolerance {
        let allowance = |share_ppm, time_ns| Allowance { share_ppm, time_ns };
        Tolerance {
            within: allowance(50_000, 500_000),
            tail: allowance(200_000, 40_000_000),
            min: 30,
        }
    }
}

/// All known facts about a rule, and about whatever may have kept it from its effect.
pub struct Facts<'a> {
    /// The rule, as the API has it.
    pub rule: &'a Rule,
    /// The requested times of holds.
    pub requested: &'a Histogram,
    /// The achieved times of holds.
    pub achieved: &'a Histogram,
    /// How late the holds ended.
    pub lateness: &'a Histogram,
    /// The lateness of zios that fell due while the host kept the shard from running.
    pub stopped: &'a Histogram,
    /// Whether the last rule that took precedence over this rule belongs to this rule's group. The rules of a
    /// group share their lanes. If a rule of its own group beats the rule, the rule is not at fault.
    pub beaten_within_group: bool,
    /// The rule's disk.
    pub disk: &'a Disk,
    /// How much time, on average, clients added to an I/O by sending the request and reading the reply.
    pub outside_ns: u64,
    /// The age of the oldest zio that the rule holds, if no finished I/O of the disk took as long.
    pub outlasting_ns: Option<u64>,
    /// The shard of the rule's disk, if the daemon has reported the shard.
    pub shard: Option<&'a Shard>,
    /// The host of the daemon.
    pub host: &'a Host,
    /// How far the median sleep of this host exceeds its intended length; `None` if the daemon spins.
    pub oversleep_ns: Option<u64>,
    /// The caller's tolerance.
    pub tolerance: Tolerance,
}

/// A verdict, and its reason.
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    /// Whether the rule did what it says, however late.
    pub(super) as_asked: bool,
    pub(super) why: String,
}

/// The largest share, in percent, of zios for which the store may be slower than the rule.
const OVERRUN_SHARE: u64 = 1;
/// The largest share, in percent, of zios that a rule of another group may decide. This leaves room for
/// another rule that decides a tail of 5 % and, by chance, a few more zios.
const BEATEN_SHARE: u64 = 10;

impl Facts<'_> {
    /// The promised median lateness. It depends on how many zios can be due at once: the mean number of zios
    /// in flight, but no more than there are lanes.
    pub(super) fn promised_lateness(&self) -> u64 {
        let alone = match self.oversleep_ns {
            Some(oversleep) => oversleep + oversleep / 5,
            None => LATENESS_NS,
        };
        alone + LATENESS_OF_BURST_NS * self.burst()
    }

    fn burst(&self) -> u64 {
        let lanes = self.rule.fields.lanes.map_or(u64::MAX, u64::from);
        self.disk.io.mean_depth().min(lanes)
    }

    /// The least number of zios for a verdict. A rule with `--first N` needs at most N zios.
    pub(super) fn min(&self) -> u64 {
        let first = self.rule.fields.first.unwrap_or(u64::MAX);
        self.tolerance.min.min(first).max(1)
    }

    /// Judges the rule. `error` is the achieved time minus the requested time.
    pub(super) fn judge(&self, error: &Error) -> Judgement {
        if let Some((verdict, why)) = self.not_as_asked() {
            return Judgement {
                verdict,
                as_asked: false,
                why,
            };
        }
        let counters = self.rule.present();
        let (verdict, why) = match self.rule.fields.effect {
            RuleEffect::Error => {
                let errno = self.rule.fields.errno.as_deref().unwrap_or("an error");
                let failed = format!("{} failed with {errno}", counters.failed);
                match self.rule.fields.delay_ns {
                    None => (Verdict::Kept, failed),
                    Some(_) => {
                        let (verdict, why) = self.judge_holds(error);
                        (verdict, format!("{failed}; {why}"))
                    }
                }
            }
            RuleEffect::Damage => {
                let (count, disk) = (counters.damaged, &self.rule.disk);
                let were = if count == 1 { "was" } else { "were" };
                let why = match self.rule.fields.damage.as_deref() {
                    // No data is wrong then.
                    Some("short") => format!("{count} moved fewer bytes than asked"),
                    _ => format!("{count} {were} damaged: see 'dashpot faults {disk}'"),
                };
                (Verdict::Kept, why)
            }
            RuleEffect::Hang => (
                Verdict::Kept,
                format!("{} hung, {} of them now", counters.injected, counters.now),
            ),
            RuleEffect::Delay | RuleEffect::Bandwidth => self.judge_holds(error),
        };
        Judgement {
            verdict,
            as_asked: true,
            why,
        }
    }

    /// The verdict and its reason, if the rule was not injected as asked.
    fn not_as_asked(&self) -> Option<(Verdict, String)> {
        let not_kept = |why| (Verdict::NotKept, why);
        let counters = self.rule.present();
        if let Some(overrun) = self.overrun() {
            return Some(not_kept(overrun));
        }
        if let Some(why) = &self.rule.why_nothing {
            let another = counters.beaten + counters.preempted > 0;
            let verdict = if another {
                Verdict::NotKept
            } else {
                Verdict::Unproven
            };
            return Some((verdict, self.nothing(why)));
        }
        self.beaten().map(not_kept)
    }

    /// Reports a fault if the store was too slow for too many zios. The rule could not delay these, so its
    /// figures do not include them.
    fn overrun(&self) -> Option<String> {
        let counters = self.rule.present();
        let (overrun, all) = (counters.overrun, counters.overrun + counters.held);
        (overrun * 100 > all * OVERRUN_SHARE).then(|| {
            format!(
                "{} were not delayed, because the store was slower than the rule: --mode add \
                 delays I/Os all the same",
                share(overrun, all)
            )
        })
    }

    /// Reports a fault if a rule of another group decided too many zios. A rule for a tail may decide a few
    /// zios.
    fn beaten(&self) -> Option<String> {
        let counters = self.rule.present();
        let all = counters.beaten + counters.injected;
        let too_many = counters.beaten * 100 > all * BEATEN_SHARE && !self.beaten_within_group;
        too_many.then(|| {
            let winner = counters.beaten_by.map_or_else(
                || "another rule".to_owned(),
                |winner| format!("rule {winner}"),
            );
            format!("{} were decided by {winner}", share(counters.beaten, all))
        })
    }

    /// Says why the rule has injected nothing, and which operations its disk received.
    fn nothing(&self, why: &str) -> String {
        if self.rule.present().matched > 0 {
            return format!(
                "matched {}, injected nothing: {why}",
                self.rule.present().matched
            );
        }
        let done = self.disk.io.ops.iter().filter(|op| op.completed > 0);
        let done: Vec<String> = done
            .map(|op| format!("{} {}", op.op, op.completed))
            .collect();
        let done = if done.is_empty() {
            "nothing".to_owned()
        } else {
            done.join(", ")
        };
        let disk = &self.disk.name;
        format!("{why} (asked of {disk} since the start: {done})")
    }

    fn judge_holds(&self, error: &Error) -> (Verdict, String) {
        let n = self.lateness.count();
        if n == 0 {
            return (Verdict::Unproven, self.no_hold());
        }
        let min = self.min();
        if n < min {
            let why = format!("{n} were held, and at least {min} are judged: see --min");
            return (Verdict::Unproven, why);
        }
        let off = self.off(error);
        match (self.is_within(error), self.without_stops()) {
            (true, _) => (Verdict::Kept, off),
            (false, Some(others)) => (Verdict::CannotTell, format!("{off}; {others}")),
            (false, None) => (Verdict::NotKept, off),
        }
    }

    fn no_hold(&self) -> String {
        let counters = self.rule.present();
        if counters.now > 0 {
            return format!("nothing has ended yet, {} held now", counters.now);
        }
        if counters.aborted > 0 {
            let aborted = counters.aborted;
            return format!("the clients of {aborted} were gone before these had ended");
        }
        "a command released the held I/Os before their time".to_owned()
    }

    /// The largest errors that the tolerance allows at the median and at p99.
    pub(super) fn limits(&self) -> (u64, u64) {
        let asked = |ppm| self.requested.quantile(ppm).unwrap_or_default();
        let Tolerance { within, tail, .. } = self.tolerance;
        (within.of(asked(500_000)), tail.of(asked(990_000)))
    }

    fn is_within(&self, error: &Error) -> bool {
        let (within, tail) = self.limits();
        let fits = |error: Option<i64>, limit| error.is_none_or(|ns| ns.unsigned_abs() <= limit);
        fits(error.p50_ns, within) && fits(error.p99_ns, tail)
    }

    fn off(&self, error: &Error) -> String {
        let (within, tail) = self.limits();
        let at = |name: &str, ns: Option<i64>, percent: Option<f64>, limit| match (ns, percent) {
            (Some(ns), Some(percent)) => format!(
                "{} at {name} ({percent:+.1} %, at most {})",
                signed(ns),
                short_time(limit)
            ),
            (Some(ns), None) => format!("{} at {name} (at most {})", signed(ns), short_time(limit)),
            (None, _) => format!("{name} has too few I/Os"),
        };
        format!(
            "off by {}, {}, n={}",
            at("p50", error.p50_ns, error.p50_percent, within),
            at("p99", error.p99_ns, error.p99_percent, tail),
            self.lateness.count()
        )
    }

    /// The reason for the verdict "cannot tell", if the rule may have missed its tolerances only because of
    /// zios that fell due while the host kept the shard from running.
    fn without_stops(&self) -> Option<String> {
        let stopped = self.stopped.count();
        if stopped == 0 {
            return None;
        }
        let all = share(stopped, self.lateness.count());
        let due = format!("the host kept the shard from running when {all} were due");
        let others = self.lateness.since(self.stopped);
        if others.count() < self.min() {
            return Some(format!("{due}, and the others are too few"));
        }
        let (within, tail) = self.limits();
        let late = |ppm| percentile(&others, ppm);
        let fits = |ppm, limit| late(ppm).is_none_or(|ns| ns <= limit);
        (fits(500_000, within) && fits(990_000, tail)).then(|| {
            let times = [("p50", late(500_000)), ("p99", late(990_000))];
            let times = times
                .iter()
                .filter_map(|(name, ns)| Some(format!("{} at {name}", short_time((*ns)?))));
            let times: Vec<String> = times.collect();
            format!("{due}; the others were late by {}", times.join(", "))
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Kept => "kept",
            Verdict::NotKept => "not kept",
            Verdict::CannotTell => "cannot tell here",
            Verdict::Unproven => "unproven",
        })
    }
}
