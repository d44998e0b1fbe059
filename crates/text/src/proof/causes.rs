//! Possible causes of late zios, and distortions that the figures do not show.

use dashpot_rules::short_time;

use super::figures::share;
use super::verdict::{Facts, Verdict};
use crate::calls::interrupted;
use crate::depth::depth_note;
use crate::health::quota_note;

/// Smaller shares than these, in percent, are not worth a warning.
const LATE_SHARE: u64 = 1;
const STEAL_SHARE: f64 = 1.0;

impl Facts<'_> {
    /// The warnings that come with a verdict.
    pub(super) fn warnings(&self, verdict: Verdict) -> Vec<String> {
        let counters = self.rule.present();
        let is_late = counters.late * 100 > counters.held * LATE_SHARE;
        let late = is_late.then(|| {
            let late = share(counters.late, counters.held);
            format!("{late} were late by more than 1 ms or 5 % of the delay")
        });
        let outlasting = self.outlasting_ns.map(|age_ns| {
            let (now, age) = (counters.now, short_time(age_ns));
            format!(
                "it holds {now} now, the oldest for {age}: longer than the disk's finished I/Os \
                 took; no figure above includes them"
            )
        });
        let is_off = matches!(verdict, Verdict::NotKept | Verdict::CannotTell);
        let causes = if is_late || (is_off && self.lateness.count() > 0) {
            self.causes()
        } else {
            self.distortions()
        };
        let told = late.into_iter().chain(outlasting).chain(causes);
        told.chain(self.unheld()).collect()
    }

    /// A sentence for each kind of access that went round the rules of the disk, and for the calls that signals
    /// ended.
    fn unheld(&self) -> Vec<String> {
        let ways = self.disk.unheld.iter().flat_map(|unheld| &unheld.ways);
        let ways = ways.map(|way| format!("{}: {}", way.said, way.remedy));
        ways.chain(self.disk.interrupted.and_then(interrupted))
            .collect()
    }

    fn causes(&self) -> Vec<String> {
        let steal = self.host.steal_percent;
        let steal = steal.filter(|steal| *steal >= STEAL_SHARE);
        let steal = steal.map(|steal| {
            format!("the hypervisor took {steal:.1} % of the CPU time since the daemon's start")
        });
        let alone = (self.host.cpus < 2).then(|| "daemon and clients share one CPU".to_owned());
        let mut causes = self.distortions();
        causes.extend([steal, alone, self.gaps()].into_iter().flatten());
        // If there were stops, the verdict already has a sentence about them.
        if causes.is_empty() && self.stopped.count() == 0 {
            causes
                .push("no known cause explains it: 'dashpot doctor' examines this host".to_owned());
        }
        causes
    }

    /// A sentence about how long the shard left its sockets unread. A cause that keeps the shard from reading
    /// its sockets also makes the shard miss deadlines.
    fn gaps(&self) -> Option<String> {
        let shard = self.shard?;
        let gap = shard.loop_gap.p99_ns?;
        (gap > self.promised_lateness()).then(|| {
            let (number, gap) = (shard.shard, short_time(gap));
            format!(
                "shard {number} was away for {gap} at p99 since the daemon's start: other \
                 threads use its CPU, or clients ask much of its disks"
            )
        })
    }

    /// Warnings about facts that distort latencies even if the verdict is good.
    fn distortions(&self) -> Vec<String> {
        let stalls = (self.rule.stalls > 0).then(|| {
            let stalls = self.rule.stalls;
            format!("connections were stalled {stalls} times, which bounds the depth")
        });
        let depth = depth_note(self.rule);
        let notes = [quota_note(self.host), self.overload(), stalls, depth];
        notes.into_iter().flatten().collect()
    }

    /// A warning if the shard was overloaded since the rule was armed.
    fn overload(&self) -> Option<String> {
        let load = &self.rule.shard_load;
        (load.overloaded_seconds > 0).then(|| {
            format!(
                "the disk's shard was overloaded for {} s since the rule was armed, and is busy \
                 for {} % of its time: ask less of its disks",
                load.overloaded_seconds, load.busy_percent
            )
        })
    }
}
