//! Metrics of a shard. They show whether the shard keeps up.

use std::borrow::Cow;
use std::fmt;

use dashpot_export::{DiskSnapshot, ProbeReading};
use prometheus_client::registry::Unit;

use super::disk::DiskScrape;
use super::page::{Labels, Metric, Page, seconds_of};

/// Writes the metrics of the shards of some disks. `probes` has the last reading of each shard's
/// prober.
pub(super) fn write(
    page: &mut Page<'_>,
    disks: &[DiskScrape],
    probes: &[Option<ProbeReading>],
) -> fmt::Result {
    let shards = &shards_of(disks);
    page.gauge(
        &BUSY,
        each(shards, |one| f64::from(one.work.busy_percent) / 100.0),
    )?;
    page.gauge(
        &OVERLOADED,
        each(shards, |one| u64::from(one.work.overloaded)),
    )?;
    page.counter(
        &OVERLOADED_TIME,
        each(shards, |one| one.work.overloaded_seconds),
    )?;
    page.counter(&STOPS, each(shards, |one| one.stops.all.count))?;
    page.counter(
        &STOPPED_TIME,
        each(shards, |one| {
            seconds_of(one.stops.all.total.as_nanos().into())
        }),
    )?;
    page.histogram(&LOOP_GAP, each(shards, |one| Cow::Borrowed(&*one.loop_gap)))?;
    page.gauge(&HELD, shards.iter().flat_map(held))?;
    page.gauge(&HELD_MAX, shards.iter().flat_map(held_max))?;
    let read = |(shard, reading): (usize, &Option<ProbeReading>)| {
        let error = reading.as_ref()?.error.as_nanos();
        Some((labels(shard), seconds_of(error.into())))
    };
    page.gauge(&PROBE, probes.iter().enumerate().filter_map(read))
}

/// Each shard that has not failed, with the snapshot of one of its disks.
fn shards_of(disks: &[DiskScrape]) -> Vec<(usize, &DiskSnapshot)> {
    let served = disks
        .iter()
        .filter_map(|disk| Some((disk.info.shard, disk.snapshot.as_ref()?)));
    let mut shards: Vec<_> = served.collect();
    shards.sort_by_key(|(shard, _)| *shard);
    shards.dedup_by_key(|(shard, _)| *shard);
    shards
}

fn each<'a, V>(
    shards: &'a [(usize, &'a DiskSnapshot)],
    value: impl Fn(&'a DiskSnapshot) -> V + 'a,
) -> impl Iterator<Item = (Labels<'a>, V)> {
    shards
        .iter()
        .map(move |(shard, snapshot)| (labels(*shard), value(snapshot)))
}

/// The memory that a shard holds for its clients, by kind of memory.
fn held((shard, snapshot): &(usize, &DiskSnapshot)) -> [(Labels<'static>, u64); 2] {
    let held = snapshot.held;
    by_kind(*shard, [held.payload, held.kept])
}

fn held_max((shard, snapshot): &(usize, &DiskSnapshot)) -> [(Labels<'static>, u64); 2] {
    let held = snapshot.held;
    by_kind(*shard, [held.payload_max, held.kept_max])
}

fn by_kind(shard: usize, values: [u64; 2]) -> [(Labels<'static>, u64); 2] {
    let [payload, buffered] = values;
    [("payload", payload), ("buffered", buffered)].map(|(kind, value)| {
        let mut labels = labels(shard);
        labels.push(("kind", kind.into()));
        (labels, value)
    })
}

fn labels(shard: usize) -> Labels<'static> {
    vec![("shard", shard.to_string().into())]
}

const BUSY: Metric = Metric(
    "shard_busy_ratio",
    None,
    "Share of the last second or two in which the shard worked",
);
const OVERLOADED: Metric = Metric(
    "shard_overloaded",
    None,
    "Whether the shard has rules and too much work to be accurate",
);
const OVERLOADED_TIME: Metric = Metric(
    "shard_overloaded",
    Some(Unit::Seconds),
    "Time in which the shard was overloaded",
);
const STOPS: Metric = Metric(
    "shard_stops",
    None,
    "Stops of the shard by the host, of more than 1 ms",
);
const STOPPED_TIME: Metric = Metric(
    "shard_stopped",
    Some(Unit::Seconds),
    "Time for which the host stopped the shard, in stops of more than 1 ms",
);
const LOOP_GAP: Metric = Metric(
    "shard_loop_gap",
    Some(Unit::Seconds),
    "How long the shard left its sockets unread, beyond its intended sleep",
);
const HELD: Metric = Metric(
    "shard_held",
    Some(Unit::Bytes),
    "Memory that clients make the shard hold",
);
const HELD_MAX: Metric = Metric(
    "shard_held_limit",
    Some(Unit::Bytes),
    "The bound on the memory that clients make the shard hold; at the bound it stops reading connections",
);
const PROBE: Metric = Metric(
    "shard_probe_error",
    Some(Unit::Seconds),
    "The last reading of the prober: how much longer its read took than its delay",
);
