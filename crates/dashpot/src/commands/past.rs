//! `heatmap --last` and `iolatency --last`: the seconds that a daemon remembers, in the columns of a heat
//! map, or together. What was in flight at their ends it does not remember.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use dashpot_api::{Client, Second, SecondLatency, Seconds};
use dashpot_engine::histogram::{Histogram, LAYOUT};
use dashpot_observe::{DeviceInterval, InFlight, Length, OpInterval};

use super::quantize::in_set;
use super::wall::unix_ns;
use crate::cli::HeatmapArgs;
use crate::sources::Target;
use dashpot_report::heatmap::{Column, HeatMap};

/// Adds a column for each second from `last` ago until now, or from the first that is remembered.
pub(super) fn recall(
    heat: &mut HeatMap,
    target: &Target,
    args: &HeatmapArgs,
    last: dashpot_engine::Duration,
) -> anyhow::Result<()> {
    let past = Past::ask(target, last)?;
    let ahead_ns = unix_ns().saturating_sub(past.end_ns);
    let mut by_start: BTreeMap<u64, Vec<&Second>> = BTreeMap::new();
    for second in past.seconds() {
        by_start.entry(second.start_ns).or_default().push(second);
    }
    for start_ns in past.starts() {
        let seconds = by_start.remove(&start_ns).unwrap_or_default();
        let elapsed = Duration::from_nanos(SECOND_NS.min(past.end_ns - start_ns));
        let shown_ns = start_ns.saturating_add(ahead_ns);
        let latencies = latencies(&seconds, args)?;
        let column = Column::new(&latencies, shown_ns, elapsed, InFlight::default());
        let lost = seconds.iter().map(|second| second.dropped).sum();
        heat.columns.push(column.without(lost));
    }
    Ok(())
}

/// What disks did from `last` ago until now, as far as it is remembered, as one interval; and how
/// many events are missing in it.
pub(super) fn recall_all(
    target: &Target,
    last: dashpot_engine::Duration,
) -> anyhow::Result<(Vec<DeviceInterval>, Length, u64)> {
    let past = Past::ask(target, last)?;
    let elapsed = Duration::from_nanos(past.end_ns.saturating_sub(past.first_ns));
    let mut disks: BTreeMap<&str, DeviceInterval> = BTreeMap::new();
    for one in past.seconds().flat_map(|second| &second.latencies) {
        let disk = disks.entry(&one.disk).or_insert_with(|| DeviceInterval {
            device: one.disk.clone(),
            elapsed,
            ops: Vec::new(),
            busy: Duration::ZERO,
            depth_time_ns: 0,
            in_flight: InFlight::default(),
        });
        disk.add(op(one)?);
    }
    let length = Length {
        elapsed,
        asked: Some(Duration::from_nanos(last.as_nanos())),
        missed: 0,
    };
    let lost = past.seconds().map(|second| second.dropped).sum();
    Ok((disks.into_values().collect(), length, lost))
}

/// What a client did of one operation in a second.
fn op(one: &SecondLatency) -> anyhow::Result<OpInterval> {
    let latency = one.latency.histogram().context("the daemon's histogram")?;
    Ok(OpInterval {
        op: one.op.clone(),
        rwbs: None,
        by: Some(one.client.clone()),
        completed: one.completed,
        bytes: one.bytes,
        total: latency.clone(),
        disk: latency,
        store: None,
    })
}

/// What a daemon remembers of the time up to now.
struct Past {
    told: Vec<Seconds>,
    /// When the first second begins of which all is told, and the moment of the answer.
    first_ns: u64,
    end_ns: u64,
}

impl Past {
    fn ask(target: &Target, last: dashpot_engine::Duration) -> anyhow::Result<Past> {
        let Target::Daemon(client, names) = target else {
            bail!("--last: nobody remembers what the kernel's disks did before: leave it out");
        };
        let now_ns = client.clock()?.now_ns;
        let after_ns = now_ns.saturating_sub(last.as_nanos());
        let told = match &names[..] {
            [] => vec![ask(client, after_ns, None)?],
            names => {
                let each = names.iter().map(|name| ask(client, after_ns, Some(name)));
                each.collect::<anyhow::Result<Vec<_>>>()?
            }
        };
        let since_ns = told.iter().map(|one| one.since_ns).max();
        let end_ns = told.iter().map(|one| one.now_ns).max().unwrap_or(now_ns);
        // A second is told if it began after that moment.
        let first = (after_ns / SECOND_NS + 1).max(since_ns.unwrap_or_default() / SECOND_NS);
        Ok(Past {
            told,
            first_ns: first * SECOND_NS,
            end_ns,
        })
    }

    fn seconds(&self) -> impl Iterator<Item = &Second> {
        self.told.iter().flat_map(Seconds::all)
    }

    /// When each second begins, those in which nothing was done among them.
    fn starts(&self) -> impl Iterator<Item = u64> {
        let numbers = self.first_ns / SECOND_NS..=self.end_ns / SECOND_NS;
        numbers.map(|number| number * SECOND_NS)
    }
}

/// The seconds that began after a moment, of one disk or of all.
fn ask(client: &Client, after_ns: u64, disk: Option<&String>) -> anyhow::Result<Seconds> {
    let told = client.seconds(after_ns, disk.map(String::as_str))?;
    ensure!(
        told.layout == LAYOUT,
        "the daemon's histograms are of layout {}, not {LAYOUT}: is it of another version?",
        told.layout
    );
    Ok(told)
}

/// What was done in a second.
fn latencies(did: &[&Second], args: &HeatmapArgs) -> anyhow::Result<Histogram> {
    let mut all = Histogram::default();
    for one in did.iter().flat_map(|second| &second.latencies) {
        if args.op.is_none_or(|ops| in_set(&one.op, ops)) {
            all.merge(&one.latency.histogram().context("the daemon's histogram")?);
        }
    }
    Ok(all)
}

const SECOND_NS: u64 = 1_000_000_000;
