//! `list`: prints the counters of rules, and why some rules did nothing.

use std::collections::BTreeMap;

use dashpot_api::{Client, Disk, Rule};
use dashpot_attach::{Queue, queue_of};
use dashpot_cli::ListArgs;
use dashpot_output::screen::room;
use dashpot_output::{print, print_json};
use dashpot_rules::short_time;
use dashpot_sources::warn_of_failed;
use dashpot_text::depth::depth_note;
use dashpot_text::health::{overload_note, quota_note};
use dashpot_text::rule::{leased, note};
use dashpot_text::table::{Column, Field, prose_within, table_of, time_or_dash};

/// The columns of a rule. The rule's own text comes last, because it makes the widest column.
const FIELDS: [Field<Rule>; 13] = [
    Field::new(Column::Figure("id"), |rule| rule.id.to_string()),
    Field::new(Column::Figure("matched"), |rule| {
        rule.counters.matched.to_string()
    }),
    Field::wide(Column::Figure("injected"), |rule| {
        rule.counters.injected.to_string()
    }),
    Field::new(Column::Figure("held"), |rule| {
        rule.counters.held.to_string()
    }),
    Field::wide(Column::Figure("overrun"), |rule| {
        rule.counters.overrun.to_string()
    }),
    Field::new(Column::Figure("late"), |rule| {
        rule.counters.late.to_string()
    }),
    Field::new(Column::Figure("achieved"), |rule| {
        time_or_dash(rule.present().achieved.p50_ns)
    }),
    Field::wide(Column::Figure("lateness"), |rule| {
        time_or_dash(rule.present().lateness.p50_ns)
    }),
    Field::wide(Column::Figure("backlog"), |rule| {
        short_time(rule.counters.backlog_ns)
    }),
    Field::new(Column::Figure("now"), |rule| rule.counters.now.to_string()),
    Field::new(Column::Text("name"), |rule| {
        rule.name.clone().unwrap_or_else(|| "-".to_owned())
    }),
    Field::new(Column::Text("disk"), |rule| rule.disk.clone()),
    Field::new(Column::Text("rule"), |rule| rule.rule.clone()),
];

/// Prints the rules with their counters.
pub fn list(client: &Client, args: &ListArgs) -> anyhow::Result<()> {
    let status = client.status(LOOKED_AT)?;
    let rules = match &args.disk {
        Some(disk) => client.rules_of(disk)?,
        None => {
            let disks = status.disks.iter();
            warn_of_failed(disks.map(|disk| (&disk.name, &disk.failed)));
            client.rules()?
        }
    };
    if args.json {
        return print_json(&rules);
    }
    let hung = hung_since_cleared(&status.disks, args.disk.as_deref(), &rules);
    if rules.is_empty() {
        let none = "no rule is armed: 'dashpot inject DISK -D 10ms:1' arms one\n";
        return print(&(none.to_owned() + &hung));
    }
    let mut shards = status.shards;
    shards.retain(|shard| rules.iter().any(|rule| shard.disks.contains(&rule.disk)));
    let notes = shards.iter().filter_map(overload_note);
    let notes = notes.chain(quota_note(&status.host));
    let notes: String = notes.map(|note| note + "\n").collect();
    let room = room(args.wide);
    let table = table_of(room, args.wide, &FIELDS, &rules);
    print(&(table + &prose_within(room, &(remarks(&rules, &status.disks) + &notes + &hung))))
}

/// A line for each disk with zios that hang because of a rule that is no longer armed. Such zios never end by
/// themselves.
fn hung_since_cleared(disks: &[Disk], only: Option<&str>, rules: &[Rule]) -> String {
    let shown = disks
        .iter()
        .filter(|disk| only.is_none_or(|name| disk.name == name));
    let line = |disk: &Disk| {
        let is_armed = |id: u32| rules.iter().any(|rule| rule.id == id);
        let hung = disk.io.oldest.iter().filter(|zio| zio.wait == "hung");
        let rule = hung.filter_map(|zio| zio.rule).find(|id| !is_armed(*id))?;
        let name = &disk.name;
        Some(format!(
            "disk {name}: I/O still hangs by rule {rule}, which was cleared: 'dashpot clear {name} \
             --release' lets it go\n"
        ))
    };
    shown.filter_map(line).collect()
}

/// `list` checks this many of each disk's oldest zios for hung zios that no armed rule explains.
const LOOKED_AT: usize = 100;

/// Remarks about rules, printed below the table because they do not fit into it.
fn remarks(rules: &[Rule], disks: &[Disk]) -> String {
    let notes = rules.iter().flat_map(|rule| {
        [
            note(rule),
            leased(rule),
            counted(rule),
            overruns(rule),
            damaged(rule),
            depth(rule, disks),
        ]
    });
    let notes = notes.flatten().map(|note| note + "\n");
    notes.collect::<String>() + &stalls(rules)
}

/// A note if a rule did not delay some of its zios, because the store itself took longer for them than the
/// rule asks.
fn overruns(rule: &Rule) -> Option<String> {
    let counters = rule.present();
    let is_partial = counters.overrun > 0 && rule.why_nothing.is_none();
    is_partial.then(|| {
        format!(
            "rule {}: not delayed: {}, because the store took longer than the rule asks; '--mode \
             add' delays those, too",
            rule.id, counters.overrun
        )
    })
}

/// A note if a rule has damaged data, which no column shows.
fn damaged(rule: &Rule) -> Option<String> {
    let damaged = rule.counters.damaged;
    (damaged > 0).then(|| {
        format!(
            "rule {}: damaged: {damaged}; 'dashpot faults {}' shows what is wrong now",
            rule.id, rule.disk
        )
    })
}

/// How far the count of a rule has come that takes only some of the zios by their number.
fn counted(rule: &Rule) -> Option<String> {
    let fields = &rule.fields;
    let counts = fields.skip.is_some() || fields.every.is_some() || fields.first.is_some();
    counts.then(|| {
        let (ios, age) = (rule.counted, short_time(rule.counting_ns));
        format!("rule {}: {ios} counted since {age} ago", rule.id)
    })
}

/// A note if the clients had too few I/Os in flight to show the whole effect of a rule.
fn depth(rule: &Rule, disks: &[Disk]) -> Option<String> {
    let disk = disks.iter().find(|disk| disk.name == rule.disk);
    let is_devices = rule.fields.lanes.is_none() && disk.is_some_and(|disk| is_full(disk, rule));
    let note = depth_note(rule).filter(|_| !is_devices);
    note.map(|note| format!("rule {}: {note}", rule.id))
}

/// Whether a rule has seen as many zios in flight at once as the block device allows, while no further I/O
/// waits in the kernel.
fn is_full(disk: &Disk, rule: &Rule) -> bool {
    let mut attachments = disk.io.attachments.iter();
    attachments.any(|attachment| {
        queue_of(&attachment.node).is_some_and(|Queue { in_flight, most }| {
            most == u64::from(rule.depth.most) && in_flight <= u64::from(attachment.in_flight)
        })
    })
}

/// A note about stalled connections, which distort the latencies of all rules of a disk. The note shows the
/// count of the rule that was armed first, because that count is the largest.
fn stalls(rules: &[Rule]) -> String {
    let mut by_disk: BTreeMap<&str, &Rule> = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.stalls > 0) {
        let most = by_disk.entry(&rule.disk).or_insert(rule);
        if rule.stalls > most.stalls {
            *most = rule;
        }
    }
    let line = |(disk, rule): (&str, &Rule)| {
        format!(
            "disk {disk}: connections stalled: {} now, {} times since rule {} was armed: this \
             bounds the depth and distorts latencies\n",
            rule.stalled, rule.stalls, rule.id
        )
    };
    by_disk.into_iter().map(line).collect()
}
