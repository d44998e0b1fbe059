//! `heatmap --last`: the seconds that a daemon remembers, in the columns of a heat map. What was in
//! flight at their ends it does not remember.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use dashpot_engine::histogram::{Histogram, LAYOUT};

use super::quantize::in_set;
use super::wall::unix_ns;
use crate::api::types::{Second, Seconds};
use crate::cli::HeatmapArgs;
use crate::client::Client;
use crate::observe::Target;
use crate::report::heatmap::{Column, HeatMap};
use crate::report::in_flight::InFlight;

/// Adds a column for each second from `last` ago until now, or from the first that is remembered.
pub(super) fn recall(
    heat: &mut HeatMap,
    target: &Target,
    args: &HeatmapArgs,
    last: dashpot_engine::Duration,
) -> anyhow::Result<()> {
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
    let ahead_ns = unix_ns().saturating_sub(end_ns);
    let mut by_start: BTreeMap<u64, Vec<&Second>> = BTreeMap::new();
    for second in told.iter().flat_map(Seconds::all) {
        by_start.entry(second.start_ns).or_default().push(second);
    }
    // A second is told if it began after that moment.
    let first = (after_ns / SECOND_NS + 1).max(since_ns.unwrap_or_default() / SECOND_NS);
    for start_ns in (first..=end_ns / SECOND_NS).map(|number| number * SECOND_NS) {
        let seconds = by_start.remove(&start_ns).unwrap_or_default();
        let elapsed = Duration::from_nanos(SECOND_NS.min(end_ns - start_ns));
        let shown_ns = start_ns.saturating_add(ahead_ns);
        let latencies = latencies(&seconds, args)?;
        let column = Column::new(&latencies, shown_ns, elapsed, InFlight::default());
        let lost = seconds.iter().map(|second| second.dropped).sum();
        heat.columns.push(column.without(lost));
    }
    Ok(())
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
