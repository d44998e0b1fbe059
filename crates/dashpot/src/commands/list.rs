//! `list`: what the rules have done, and why nothing.

use std::collections::BTreeMap;

use super::output::{print, print_json};
use crate::api::types::{Rule, RuleState, Status};
use crate::cli::ListArgs;
use crate::client::{Client, segment};
use crate::observe::warn_of_failed;
use crate::report::health::{overload_note, quota_note};
use crate::report::nice::short_time;
use crate::report::table::{Column, table, time_or_dash};

const COLUMNS: [Column; 14] = [
    Column::Figure("id"),
    Column::Text("name"),
    Column::Text("disk"),
    Column::Figure("matched"),
    Column::Figure("injected"),
    Column::Figure("held"),
    Column::Figure("overrun"),
    Column::Figure("late"),
    Column::Figure("achieved p50"),
    Column::Figure("n"),
    Column::Figure("lateness p50"),
    Column::Figure("backlog"),
    Column::Figure("now"),
    // Last, because it is the widest: where lines are broken, the figures stay below their titles.
    Column::Text("rule"),
];

pub(crate) fn list(client: &Client, args: &ListArgs) -> anyhow::Result<()> {
    let status: Status = client.get("/v1/status?oldest=0")?;
    let path = match &args.disk {
        Some(disk) => format!("/v1/disks/{}/rules", segment(disk)),
        None => {
            warn_of_failed(&status.disks);
            "/v1/rules".to_owned()
        }
    };
    let rules: Vec<Rule> = client.get(&path)?;
    if args.json {
        return print_json(&rules);
    }
    if rules.is_empty() {
        return print("no rule is armed: 'dashpot inject DISK -D 10ms:1' arms one\n");
    }
    let mut shards = status.shards;
    shards.retain(|shard| rules.iter().any(|rule| shard.disks.contains(&rule.disk)));
    let notes = shards.iter().filter_map(overload_note);
    let notes = notes.chain(quota_note(&status.host));
    let notes: String = notes.map(|note| note + "\n").collect();
    print(&(text(&rules) + &notes))
}

fn text(rules: &[Rule]) -> String {
    let notes = rules.iter().filter_map(note).map(|note| note + "\n");
    table(&COLUMNS, rules.iter().map(row)) + &notes.collect::<String>() + &stalls(rules)
}

/// What distorts the latencies of all rules of a disk: a bound that they have not set.
fn stalls(rules: &[Rule]) -> String {
    let stalled = rules.iter().filter(|rule| rule.stalls > 0);
    let by_disk: BTreeMap<&str, &Rule> = stalled.map(|rule| (rule.disk.as_str(), rule)).collect();
    let line = |(disk, rule): (&str, &Rule)| {
        format!(
            "disk {disk}: {} connections stalled, {} times since the start: depth is bounded, \
             latencies are distorted\n",
            rule.stalled, rule.stalls
        )
    };
    by_disk.into_iter().map(line).collect()
}

fn row(rule: &Rule) -> Vec<String> {
    let counters = &rule.counters;
    vec![
        rule.id.to_string(),
        rule.name.clone().unwrap_or_else(|| "-".to_owned()),
        rule.disk.clone(),
        counters.matched.to_string(),
        counters.injected.to_string(),
        counters.held.to_string(),
        counters.overrun.to_string(),
        counters.late.to_string(),
        time_or_dash(counters.achieved.p50_ns),
        counters.achieved.count.to_string(),
        time_or_dash(counters.lateness.p50_ns),
        short_time(counters.backlog_ns),
        counters.now.to_string(),
        rule.rule.clone(),
    ]
}

/// What the figures of a rule do not say.
pub(super) fn note(rule: &Rule) -> Option<String> {
    let why = match (&rule.why_nothing, rule.state) {
        (Some(why), _) if rule.counters.matched == 0 => why.clone(),
        (Some(why), _) => format!("matched, injected nothing: {why}"),
        (None, RuleState::Ended) => "ended".to_owned(),
        (None, RuleState::Waiting | RuleState::Active) => return None,
    };
    Some(format!("rule {}: {why}", rule.id))
}
