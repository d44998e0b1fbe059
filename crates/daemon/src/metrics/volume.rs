//! Metrics of a volume: its I/O by operation. Users must not add a volume's I/O to the I/O of its pool's
//! disks, so the volume's metrics have names of their own.

use std::borrow::Cow;
use std::fmt;

use dashpot_engine::LatencyKind;
use dashpot_export::DiskSnapshot;
use prometheus_client::registry::Unit;

use super::device::{Scraped, each, each_histogram, each_op, oldest_seconds};
use super::page::{Labels, Metric, Page, seconds_of};

/// The state of a volume at a scrape.
#[derive(Debug)]
pub(super) struct VolumeScrape {
    pub(super) name: String,
    pub(super) pool: String,
    /// The state of the volume; `None` if its shard has failed.
    pub(super) snapshot: Option<DiskSnapshot>,
}

impl Scraped for VolumeScrape {
    fn labels(&self) -> Labels<'_> {
        vec![
            ("volume", Cow::from(&self.name)),
            ("pool", Cow::from(&self.pool)),
        ]
    }

    fn snapshot(&self) -> Option<&DiskSnapshot> {
        self.snapshot.as_ref()
    }
}

/// Writes the metrics of some volumes.
pub(super) fn write(page: &mut Page<'_>, volumes: &[VolumeScrape]) -> fmt::Result {
    page.counter(&OPERATIONS, each_op(volumes, |op| op.completed))?;
    page.counter(&ERRORS, each_op(volumes, |op| op.failed))?;
    page.counter(&BYTES, each_op(volumes, |op| op.bytes))?;
    page.histogram(&LATENCY, each_histogram(volumes, LatencyKind::Disk))?;
    page.histogram(&TOTAL_LATENCY, each_histogram(volumes, LatencyKind::Total))?;
    let in_flight = |volume: &DiskSnapshot| u64::from(volume.in_flight_total);
    page.gauge(&IN_FLIGHT, each(volumes, in_flight))?;
    page.gauge(&OLDEST, each(volumes, oldest_seconds))?;
    page.gauge(
        &CLIENTS,
        each(volumes, |volume| volume.clients.len() as u64),
    )?;
    let busy = |volume: &DiskSnapshot| volume.stats.depths.summary().busy.as_nanos();
    page.counter(
        &BUSY,
        each(volumes, move |volume| seconds_of(busy(volume).into())),
    )
}

const OPERATIONS: Metric = Metric(
    "volume_operations",
    None,
    "I/Os of volumes replied to, failed ones included",
);
const ERRORS: Metric = Metric("volume_errors", None, "I/Os of volumes that failed");
const BYTES: Metric = Metric(
    "volume",
    Some(Unit::Bytes),
    "Bytes of the successful I/Os of volumes",
);
const LATENCY: Metric = Metric(
    "volume_latency",
    Some(Unit::Seconds),
    "From submission until the reply was offered, with the wait for the throttle",
);
const TOTAL_LATENCY: Metric = Metric(
    "volume_total_latency",
    Some(Unit::Seconds),
    "From arrival until the client had accepted the reply",
);
const IN_FLIGHT: Metric = Metric(
    "volume_in_flight",
    None,
    "I/Os of volumes not replied to, which are in no histogram yet",
);
const OLDEST: Metric = Metric(
    "volume_oldest_in_flight",
    Some(Unit::Seconds),
    "Time since the arrival of the oldest I/O in flight, or 0",
);
const CLIENTS: Metric = Metric("volume_clients", None, "Clients that are connected");
const BUSY: Metric = Metric(
    "volume_busy",
    Some(Unit::Seconds),
    "Time with at least one I/O in flight",
);
