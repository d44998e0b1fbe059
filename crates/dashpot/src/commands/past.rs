//! `heatmap --last`: the seconds that a daemon remembers, in the columns of a heat map. What was in
//! flight at their ends it does not remember.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use dashpot_engine::histogram::{Histogram, LAYOUT};

use super::quantize::in_set;
use super::wall::unix_ns;
use crate::api::types::{Disk, Second, SecondLatency, Seconds};
use crate::cli::HeatmapArgs;
use crate::client::{Client, segment};
use crate::observe::Target;
use crate::report::heatmap::{Column, HeatMap};
use crate::report::in_flight::InFlight;

/// Adds a column for each second from `last` ago until now, or from the first that is remembered.
/// Returns how many zios are in none of them.
pub(super) fn recall(
    heat: &mut HeatMap,
    target: &Target,
    args: &HeatmapArgs,
    last: dashpot_engine::Duration,
) -> anyhow::Result<u64> {
    let Target::Daemon(client, names) = target else {
        bail!("--last: nobody remembers what the kernel's disks did before: leave it out");
    };
    let disk = match &names[..] {
        [name] => format!("&disk={}", segment(name)),
        _ => String::new(),
    };
    let now_ns = daemons_time(client)?;
    let after_ns = now_ns.saturating_sub(last.as_nanos());
    let told: Seconds = client.get(&format!("/v1/seconds?after_ns={after_ns}{disk}"))?;
    ensure!(
        told.layout == LAYOUT,
        "the daemon's histograms are of layout {}, not {LAYOUT}: is it of another version?",
        told.layout
    );
    let end_ns = now_ns.max(told.running.start_ns);
    let seconds = told.seconds.into_iter().chain([told.running]);
    let seconds: BTreeMap<u64, Second> = seconds.map(|one| (one.start_ns, one)).collect();
    let (Some(first), Some(running)) = (seconds.keys().next(), seconds.keys().next_back()) else {
        return Ok(0);
    };
    let ahead_ns = unix_ns().saturating_sub(end_ns);
    for start_ns in (*first..=*running).step_by(SECOND_NS as usize) {
        let did = seconds.get(&start_ns).map_or(&[][..], |one| &one.latencies);
        heat.columns.push(Column::new(
            &latencies(did, names, args)?,
            start_ns.saturating_add(ahead_ns),
            Duration::from_nanos(SECOND_NS.min(end_ns - start_ns)),
            InFlight::default(),
        ));
    }
    Ok(seconds.values().map(|second| second.dropped).sum())
}

fn daemons_time(client: &Client) -> anyhow::Result<u64> {
    let disks: Vec<Disk> = client.get("/v1/disks?oldest=0")?;
    let moments = disks.iter().map(|disk| disk.at_ns);
    Ok(moments.max().unwrap_or_default())
}

/// What was done in a second on these disks, or on all if none is named.
fn latencies(
    did: &[SecondLatency],
    names: &[String],
    args: &HeatmapArgs,
) -> anyhow::Result<Histogram> {
    let mut all = Histogram::default();
    for one in did {
        let is_named = names.is_empty() || names.contains(&one.disk);
        if is_named && args.op.is_none_or(|ops| in_set(&one.op, ops)) {
            all.merge(&one.latency.histogram().context("the daemon's histogram")?);
        }
    }
    Ok(all)
}

const SECOND_NS: u64 = 1_000_000_000;
