//! Metrics of a rule: how many zios the rule matched and injected into, and how late the rule's zios
//! ended. The series of a rule end when the rule is cleared. The id is never used again, so no counter of
//! a rule ever falls.

use std::borrow::Cow;
use std::fmt;

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Holds, RuleStats};
use dashpot_export::RuleSnapshot;
use prometheus_client::registry::Unit;

use super::disk::DiskScrape;
use super::page::{Labels, Metric, Page, seconds_of};
use crate::Record;

/// Writes the metrics of the rules that are armed on some disks.
pub(super) fn write(page: &mut Page<'_>, disks: &[DiskScrape], records: &[Record]) -> fmt::Result {
    let rules = &armed(disks, records);
    page.info(&INFO, rules.iter().map(Armed::info_labels))?;
    page.counter(&MATCHED, each(rules, |stats| stats.matched))?;
    page.counter(&HELD, each(rules, |stats| stats.held))?;
    page.counter(&OVERRUN, each(rules, |stats| stats.overrun))?;
    page.counter(&ERRORS, each(rules, |stats| stats.failed))?;
    page.counter(&DAMAGED, each(rules, |stats| stats.damaged))?;
    page.counter(&BEATEN, each(rules, |stats| stats.beaten))?;
    page.counter(&ABORTED, each(rules, |stats| stats.aborted))?;
    page.counter(&LATE, each(rules, |stats| stats.late))?;
    page.counter(&STOPPED, each(rules, |stats| stopped(&stats.holds)))?;
    page.counter(
        &REQUESTED,
        each(rules, |stats| sum(stats.holds.requested())),
    )?;
    page.counter(&ACHIEVED, each(rules, |stats| sum(stats.holds.achieved())))?;
    page.histogram(&LATENESS, each(rules, |stats| lateness(&stats.holds)))?;
    let now = rules.iter().map(|rule| (rule.labels(), rule.snapshot.now));
    page.gauge(&IN_FLIGHT, now)?;
    let backlog = |rule: &Armed<'_>| seconds_of(rule.snapshot.backlog.as_nanos().into());
    page.gauge(
        &BACKLOG,
        rules.iter().map(|rule| (rule.labels(), backlog(rule))),
    )
}

/// A rule, with the facts that the engine does not know.
struct Armed<'a> {
    disk: &'a str,
    record: &'a Record,
    snapshot: &'a RuleSnapshot,
}

impl Armed<'_> {
    fn labels(&self) -> Labels<'_> {
        vec![
            ("disk", self.disk.into()),
            ("rule", self.record.id.0.to_string().into()),
            (
                "name",
                self.record.name.as_deref().unwrap_or_default().into(),
            ),
        ]
    }

    fn info_labels(&self) -> Labels<'_> {
        let mut labels = self.labels();
        labels.push(("words", Cow::from(&self.record.words)));
        labels
    }
}

/// The rules that appear in the snapshots of their disks. A rule that does not appear there was cleared
/// before the snapshot.
fn armed<'a>(disks: &'a [DiskScrape], records: &'a [Record]) -> Vec<Armed<'a>> {
    let find = |record: &'a Record| {
        let disk = disks.get(record.disk)?;
        let mut rules = disk.snapshot.as_ref()?.rules.iter();
        Some(Armed {
            disk: &disk.info.name,
            record,
            snapshot: rules.find(|rule| rule.id == record.id)?,
        })
    };
    records.iter().filter_map(find).collect()
}

fn each<'a, V>(
    rules: &'a [Armed<'a>],
    value: impl Fn(&'a RuleStats) -> V + 'a,
) -> impl Iterator<Item = (Labels<'a>, V)> {
    rules
        .iter()
        .map(move |rule| (rule.labels(), value(&rule.snapshot.stats)))
}

fn sum(histogram: Option<Histogram>) -> f64 {
    histogram.map_or(0.0, |histogram| seconds_of(histogram.sum()))
}

fn lateness(holds: &Holds) -> Cow<'_, Histogram> {
    holds.lateness().map_or_else(Cow::default, Cow::Borrowed)
}

fn stopped(holds: &Holds) -> u64 {
    holds.stopped().map_or(0, Histogram::count)
}

const INFO: Metric = Metric("rule", None, "The words of a rule");
const MATCHED: Metric = Metric(
    "rule_matched",
    None,
    "I/Os that matched the rule's operations, range and client",
);
const HELD: Metric = Metric("rule_held", None, "I/Os that the rule held");
const OVERRUN: Metric = Metric(
    "rule_overrun",
    None,
    "I/Os for which the store took longer than the rule asked for",
);
const ERRORS: Metric = Metric("rule_errors", None, "I/Os that the rule gave an error");
const DAMAGED: Metric = Metric("rule_damaged", None, "I/Os whose data the rule damaged");
const BEATEN: Metric = Metric(
    "rule_beaten",
    None,
    "I/Os for which another rule's lane or target was chosen",
);
const ABORTED: Metric = Metric(
    "rule_aborted",
    None,
    "I/Os that the rule held when their connection ended",
);
const LATE: Metric = Metric(
    "rule_late",
    None,
    "Held I/Os that ended late by more than 1 ms or 5 % of the delay",
);
const STOPPED: Metric = Metric(
    "rule_stopped",
    None,
    "Held I/Os that ended late because the host kept the shard from running",
);
const REQUESTED: Metric = Metric(
    "rule_requested",
    Some(Unit::Seconds),
    "Service times that the rule asked for, summed over all held I/Os",
);
const ACHIEVED: Metric = Metric(
    "rule_achieved",
    Some(Unit::Seconds),
    "Actual service times, without the wait for a lane, summed over all held I/Os",
);
const LATENESS: Metric = Metric(
    "rule_lateness",
    Some(Unit::Seconds),
    "Lateness of the I/Os that the rule held",
);
const IN_FLIGHT: Metric = Metric(
    "rule_in_flight",
    None,
    "I/Os that the rule holds now: they have not ended, and no other rule holds them longer",
);
const BACKLOG: Metric = Metric(
    "rule_backlog",
    Some(Unit::Seconds),
    "Time until a lane of the rule is free and, if the rule limits the bandwidth, all booked transfers are done",
);
