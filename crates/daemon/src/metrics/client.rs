//! The I/O of each client on a disk or volume, from the events. At most 64 clients of a device are counted
//! separately. All other clients are counted as `other`. The client that has been idle for longest makes room
//! for a new client, and is counted in `other` from then on: its series end, and the series of `other` rise
//! by its counts.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use dashpot_engine::Op;
use dashpot_engine::histogram::Histogram;
use dashpot_export::DeviceId;
use prometheus_client::registry::Unit;

use super::page::{Labels, Metric, Page};
use crate::collector::{Part, Tally, View};

/// The clients' I/O at one layer, as counted from events.
#[derive(Debug)]
pub(super) struct ClientsScrape {
    operations: Vec<ClientScrape>,
    /// How many events of each device are missing from these counts, because the rings had no room for the
    /// events.
    dropped: Vec<(String, u64)>,
}

/// The I/O of one client with one operation on a disk or volume.
#[derive(Debug)]
struct ClientScrape {
    device: String,
    client: Arc<str>,
    op: Op,
    tally: Tally,
}

impl ClientsScrape {
    /// The I/O of the clients of these devices. `devices` has the id and the name of each device.
    pub(super) fn of(events: &View<'_>, devices: &[(DeviceId, &str)]) -> ClientsScrape {
        let operations =
            |(device, name): &(DeviceId, &str)| ClientScrape::all_of(events, *device, name);
        let dropped =
            |(device, name): &(DeviceId, &str)| ((*name).to_owned(), events.dropped(Some(*device)));
        ClientsScrape {
            operations: devices.iter().flat_map(operations).collect(),
            dropped: devices.iter().map(dropped).collect(),
        }
    }
}

impl ClientScrape {
    /// The operations of all clients of a device.
    fn all_of(events: &View<'_>, device: DeviceId, name: &str) -> Vec<ClientScrape> {
        let look = |(part, op, tally): (Part, Op, &Tally)| {
            let Part::Client(place) = part else {
                return None;
            };
            Some(ClientScrape {
                device: name.to_owned(),
                client: events.collected.client(device, place),
                op,
                tally: tally.clone(),
            })
        };
        events.collected.parts(device).filter_map(look).collect()
    }

    fn labels(&self, layer: &'static str) -> Labels<'_> {
        vec![
            (layer, Cow::from(&self.device)),
            ("client", Cow::from(&*self.client)),
            ("op", self.op.name().into()),
        ]
    }

    fn latency(&self) -> Cow<'_, Histogram> {
        Cow::Owned(self.tally.brief.disk.histogram())
    }
}

/// The metrics of the clients at one layer. Users must not add a volume's I/O to the I/O of disks, so
/// the metrics of a volume's clients have names of their own.
pub(super) struct Metrics {
    /// The label that names the device.
    label: &'static str,
    dropped: Metric,
    operations: Metric,
    errors: Metric,
    bytes: Metric,
    latency: Metric,
}

impl Metrics {
    /// Writes the metrics of some clients.
    pub(super) fn write(&self, page: &mut Page<'_>, scrape: &ClientsScrape) -> fmt::Result {
        let device = |name| vec![(self.label, Cow::from(name))];
        let dropped = scrape.dropped.iter();
        page.counter(
            &self.dropped,
            dropped.map(|(name, events)| (device(name), *events)),
        )?;
        let each = || scrape.operations.iter().map(|one| one.labels(self.label));
        let tallies = || scrape.operations.iter().map(|one| &one.tally);
        let completed = tallies().map(|tally| tally.brief.completed);
        page.counter(&self.operations, each().zip(completed))?;
        let failed = tallies().map(|tally| tally.failed);
        page.counter(&self.errors, each().zip(failed))?;
        page.counter(
            &self.bytes,
            each().zip(tallies().map(|tally| tally.brief.bytes)),
        )?;
        let latencies = scrape.operations.iter().map(ClientScrape::latency);
        page.histogram(&self.latency, each().zip(latencies))
    }
}

/// The metrics of the clients of disks.
pub(super) const OF_DISKS: Metrics = Metrics {
    label: "disk",
    dropped: Metric(
        "events_dropped",
        None,
        "Finished I/Os that are in no client's counts, because there was no room for their events",
    ),
    operations: Metric(
        "client_operations",
        None,
        "I/Os of a client that were replied to, failed ones included",
    ),
    errors: Metric("client_errors", None, "I/Os of a client that failed"),
    bytes: Metric(
        "client",
        Some(Unit::Bytes),
        "Bytes of the successful I/Os of a client",
    ),
    latency: Metric(
        "client_latency",
        Some(Unit::Seconds),
        "From issue until the reply was offered to the client",
    ),
};

/// The metrics of the clients of volumes.
pub(super) const OF_VOLUMES: Metrics = Metrics {
    label: "volume",
    dropped: Metric(
        "volume_events_dropped",
        None,
        "Finished I/Os of a volume that are in no client's counts, because there was no room for their events",
    ),
    operations: Metric(
        "volume_client_operations",
        None,
        "I/Os of a volume's client that were replied to, failed ones included",
    ),
    errors: Metric(
        "volume_client_errors",
        None,
        "I/Os of a volume's client that failed",
    ),
    bytes: Metric(
        "volume_client",
        Some(Unit::Bytes),
        "Bytes of the successful I/Os of a volume's client",
    ),
    latency: Metric(
        "volume_client_latency",
        Some(Unit::Seconds),
        "From submission until the reply was offered to the client, with the wait for the throttle",
    ),
};
