//! The I/O of each client on a disk, from the events. At most 64 clients of a disk are counted
//! separately, the rest as `other`. The client that has been idle for longest makes room for a new one,
//! and counts among the others from then on: its series end, and the series of `other` rise by its
//! counts.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use dashpot_engine::Op;
use dashpot_engine::histogram::Histogram;
use dashpot_export::{DeviceId, DiskInfo};
use prometheus_client::registry::Unit;

use super::page::{Labels, Metric, Page};
use crate::collector::{Part, Tally, View};

/// One operation of a client of a disk.
#[derive(Debug)]
pub(super) struct ClientScrape {
    disk: String,
    client: Arc<str>,
    op: Op,
    tally: Tally,
}

impl ClientScrape {
    /// The operations of all clients of a disk.
    pub(super) fn of_disk(events: &View<'_>, index: usize, info: &DiskInfo) -> Vec<ClientScrape> {
        let device = DeviceId::of(index);
        let look = |(part, op, tally): (Part, Op, &Tally)| {
            let Part::Client(place) = part else {
                return None;
            };
            Some(ClientScrape {
                disk: info.name.clone(),
                client: events.collected.client(device, place),
                op,
                tally: tally.clone(),
            })
        };
        events.collected.parts(device).filter_map(look).collect()
    }

    fn labels(&self) -> Labels<'_> {
        vec![
            ("disk", Cow::from(&self.disk)),
            ("client", Cow::from(&*self.client)),
            ("op", self.op.name().into()),
        ]
    }

    fn latency(&self) -> Cow<'_, Histogram> {
        // These are dashpot's own counts, so the buckets exist.
        Cow::Owned(Histogram::from_sparse(&self.tally.disk).unwrap_or_default())
    }
}

/// Writes the metrics of some clients.
pub(super) fn write(page: &mut Page<'_>, clients: &[ClientScrape]) -> fmt::Result {
    let each = || clients.iter().map(ClientScrape::labels);
    let tallies = || clients.iter().map(|client| &client.tally);
    page.counter(
        &OPERATIONS,
        each().zip(tallies().map(|tally| tally.completed)),
    )?;
    page.counter(&ERRORS, each().zip(tallies().map(|tally| tally.failed)))?;
    page.counter(&BYTES, each().zip(tallies().map(|tally| tally.bytes)))?;
    page.histogram(
        &LATENCY,
        each().zip(clients.iter().map(ClientScrape::latency)),
    )
}

const OPERATIONS: Metric = Metric(
    "client_operations",
    None,
    "I/Os of a client that were replied to, failed ones included",
);
const ERRORS: Metric = Metric("client_errors", None, "I/Os of a client that failed");
const BYTES: Metric = Metric(
    "client",
    Some(Unit::Bytes),
    "Bytes of the I/Os of a client that did not fail",
);
const LATENCY: Metric = Metric(
    "client_latency",
    Some(Unit::Seconds),
    "From issue until the reply was offered to the client",
);
