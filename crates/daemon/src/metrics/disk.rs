//! Metrics of a disk: its I/O by operation, and its state.

use std::borrow::Cow;
use std::fmt;

use dashpot_engine::{DepthSummary, LatencyKind};
use dashpot_export::{DiskInfo, DiskSnapshot};
use prometheus_client::registry::Unit;

use super::device::{Scraped, each, each_histogram, each_op, oldest_seconds};
use super::page::{Labels, Metric, Page, seconds_of};

/// The state of a disk at a scrape. If there is no snapshot, the disk's shard has failed.
#[derive(Debug)]
pub(super) struct DiskScrape {
    pub(super) info: DiskInfo,
    pub(super) snapshot: Option<DiskSnapshot>,
}

impl Scraped for DiskScrape {
    fn labels(&self) -> Labels<'_> {
        vec![("disk", Cow::from(&self.info.name))]
    }

    fn snapshot(&self) -> Option<&DiskSnapshot> {
        self.snapshot.as_ref()
    }
}

/// Writes the metrics of some disks.
pub(super) fn write(page: &mut Page<'_>, disks: &[DiskScrape]) -> fmt::Result {
    write_states(page, disks)?;
    write_operations(page, disks)?;
    write_latencies(page, disks)?;
    write_queues(page, disks)?;
    write_unheld(page, disks)
}

fn write_states(page: &mut Page<'_>, disks: &[DiskScrape]) -> fmt::Result {
    page.info(&INFO, disks.iter().map(info_labels))?;
    let failed = disks.iter().map(|disk| u64::from(disk.snapshot.is_none()));
    page.gauge(&FAILED, disks.iter().map(DiskScrape::labels).zip(failed))?;
    page.gauge(
        &FAULTED,
        each(disks, |disk| u64::from(disk.faulted.is_some())),
    )?;
    page.gauge(
        &SUSPENDED,
        each(disks, |disk| u64::from(disk.suspended.is_some())),
    )?;
    page.gauge(&CLIENTS, each(disks, |disk| disk.clients.len() as u64))?;
    page.gauge(&RULES, each(disks, |disk| disk.rules.len() as u64))
}

fn write_operations(page: &mut Page<'_>, disks: &[DiskScrape]) -> fmt::Result {
    page.counter(&OPERATIONS, each_op(disks, |op| op.completed))?;
    page.counter(&ERRORS, each_op(disks, |op| op.failed))?;
    page.counter(&BYTES, each_op(disks, |op| op.bytes))
}

fn write_latencies(page: &mut Page<'_>, disks: &[DiskScrape]) -> fmt::Result {
    page.histogram(&LATENCY, each_histogram(disks, LatencyKind::Disk))?;
    page.histogram(&TOTAL_LATENCY, each_histogram(disks, LatencyKind::Total))?;
    page.histogram(&LATENESS, each_histogram(disks, LatencyKind::Lateness))
}

fn write_queues(page: &mut Page<'_>, disks: &[DiskScrape]) -> fmt::Result {
    page.gauge(
        &IN_FLIGHT,
        each(disks, |disk| u64::from(disk.in_flight_total)),
    )?;
    page.gauge(&OLDEST, each(disks, oldest_seconds))?;
    page.counter(&ABORTED, each(disks, |disk| disk.stats.aborted))?;
    page.counter(
        &BUSY,
        each(disks, |disk| {
            seconds_of(depths(disk).busy.as_nanos().into())
        }),
    )?;
    page.counter(
        &DEPTH_TIME,
        each(disks, |disk| seconds_of(depths(disk).depth_time)),
    )?;
    page.gauge(&STALLED, each(disks, |disk| u64::from(disk.stalled)))?;
    page.counter(&STALLS, each(disks, |disk| disk.stalls))
}

/// Writes the counts of each path disk's unheld accesses, by kind, and of its interrupted calls.
fn write_unheld(page: &mut Page<'_>, disks: &[DiskScrape]) -> fmt::Result {
    let ways = disks.iter().flat_map(|disk| {
        let counted = disk.info.path_counts.unheld.counted().into_iter();
        counted.map(move |(way, count)| {
            let mut labels = disk.labels();
            labels.push(("way", way.word().into()));
            (labels, count)
        })
    });
    page.counter(&UNHELD, ways)?;
    let paths = disks.iter().filter(|disk| disk.info.followed.is_some());
    let interrupted =
        paths.filter_map(|disk| Some((disk.labels(), disk.info.path_counts.interrupted()?)));
    page.counter(&INTERRUPTED, interrupted)
}

fn depths(disk: &DiskSnapshot) -> DepthSummary {
    disk.stats.depths.summary()
}

fn info_labels(disk: &DiskScrape) -> Labels<'_> {
    let mut labels = disk.labels();
    labels.push(("shard", disk.info.shard.to_string().into()));
    labels
}

const INFO: Metric = Metric("disk", None, "The shard that serves a disk");
const FAILED: Metric = Metric(
    "disk_failed",
    None,
    "Whether the disk is no longer served because its shard has failed",
);
const FAULTED: Metric = Metric(
    "disk_faulted",
    None,
    "Whether the disk's store can no longer be trusted",
);
const SUSPENDED: Metric = Metric("disk_suspended", None, "Whether the disk is suspended");
const CLIENTS: Metric = Metric("disk_clients", None, "Clients that are connected");
const RULES: Metric = Metric("disk_rules", None, "Rules that are armed");
const OPERATIONS: Metric = Metric(
    "disk_operations",
    None,
    "I/Os replied to, failed ones included",
);
const ERRORS: Metric = Metric("disk_errors", None, "I/Os that failed");
const BYTES: Metric = Metric(
    "disk",
    Some(Unit::Bytes),
    "Bytes of the I/Os that did not fail",
);
const LATENCY: Metric = Metric(
    "disk_latency",
    Some(Unit::Seconds),
    "From issue until the reply was offered to the client",
);
const TOTAL_LATENCY: Metric = Metric(
    "disk_total_latency",
    Some(Unit::Seconds),
    "From arrival until the client had accepted the reply",
);
const LATENESS: Metric = Metric(
    "disk_lateness",
    Some(Unit::Seconds),
    "Lateness of I/Os that a rule held",
);
const IN_FLIGHT: Metric = Metric(
    "disk_in_flight",
    None,
    "I/Os not replied to, which are in no histogram yet",
);
const OLDEST: Metric = Metric(
    "disk_oldest_in_flight",
    Some(Unit::Seconds),
    "Time since the arrival of the oldest I/O in flight, or 0",
);
const ABORTED: Metric = Metric(
    "disk_aborted",
    None,
    "I/Os whose connection was gone before their reply",
);
const BUSY: Metric = Metric(
    "disk_busy",
    Some(Unit::Seconds),
    "Time with at least one I/O in flight",
);
const DEPTH_TIME: Metric = Metric(
    "disk_in_flight_time",
    Some(Unit::Seconds),
    "Time in flight of all I/Os; its rate is the average number of I/Os in flight",
);
const STALLED: Metric = Metric(
    "disk_stalled",
    None,
    "Connections that the shard does not read now, because of its bound on memory",
);
const STALLS: Metric = Metric(
    "disk_stalls",
    None,
    "How often the shard has stopped reading a connection because of its bound on memory",
);
const UNHELD: Metric = Metric(
    "disk_unheld",
    None,
    "Accesses to a path disk's files that no rule could hold",
);
const INTERRUPTED: Metric = Metric(
    "disk_interrupted",
    None,
    "Calls of a path disk's programs that a signal ended before they were received or their hold was over",
);
