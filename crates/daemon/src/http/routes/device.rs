//! The parts that answers about disks and volumes share.

use dashpot_api::{By, DiskLatency, InFlightZio, OpLatency};
use dashpot_engine::Op;
use dashpot_engine::histogram::Sparse;
use dashpot_export::{DeviceId, DiskSnapshot};
use dashpot_rules::format_size;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::answers::AnswerBuilder;
use crate::collector::{self, Collected, Part};
use crate::http::charged::{HeapSize, JsonAnswer};
use crate::wire::{DeviceView, interrupted, part_latency, unheld};
use crate::{Daemon, Refusal};

/// How many zios in flight the answer lists for a disk or a volume.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Detail {
    #[allow(rustdoc::broken_intra_doc_links)] // `[1]` is a default, and no link.
    /// The maximum number of zios in flight that the answer lists, the oldest first [1].
    #[serde(default = "one")]
    pub(super) oldest: usize,
}

fn one() -> usize {
    1
}

/// The breakdown of the latencies of a disk or a volume.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Breakdown {
    /// By client, or by size in powers of two [no breakdown].
    pub(super) by: Option<By>,
}

/// How much of a disk's damage the answer lists.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    #[allow(rustdoc::broken_intra_doc_links)] // `[100]` is a default, and no link.
    /// The maximum number of places with wrong bytes, and of damaged I/Os, that the answer lists [100].
    #[serde(default = "hundred")]
    pub(super) list: usize,
}

fn hundred() -> usize {
    100
}

/// The histograms of a disk or a volume, as an answer.
pub(super) async fn latency_of(
    daemon: &Daemon,
    device: DeviceId,
    snapshot: &DiskSnapshot,
    breakdown: &Breakdown,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let view = DeviceView(snapshot);
    let look = |events: &collector::View<'_>| {
        let ops = match breakdown.by {
            Some(by) => parts(events.collected, device, by),
            None => view.ops(|op| stores(events.collected, device, op)),
        };
        let (name, dropped) = (daemon.name_of(device), events.dropped(Some(device)));
        DiskLatency {
            unheld: daemon.disk_of(device).and_then(unheld),
            interrupted: daemon.disk_of(device).and_then(interrupted),
            ..view.latency(name, daemon.started(), ops, dropped)
        }
    };
    let latency = daemon.events(Some(device), look).await;
    making.charge(latency.ops.iter().map(HeapSize::bytes).sum())?;
    making.json(&latency).map(JsonAnswer)
}

/// The I/O of each client, or of each size.
fn parts(collected: &Collected, device: DeviceId, by: By) -> Vec<OpLatency> {
    let name = |part| match part {
        Part::Client(place) if by == By::Client => {
            Some(collected.client(device, place).to_string())
        }
        Part::Size(None) if by == By::Size => Some("0".to_owned()),
        Part::Size(Some(power)) if by == By::Size => Some(format_size(1 << power)),
        _ => None,
    };
    let parts = collected.parts(device);
    let op = |(part, op, tally)| Some(part_latency(name(part)?, op, tally));
    parts.filter_map(op).collect()
}

/// The store's latencies of an operation.
fn stores(collected: &Collected, device: DeviceId, op: Op) -> Sparse {
    let mut all = Sparse::default();
    for (part, of, tally) in collected.parts(device) {
        if of == op && matches!(part, Part::Size(_)) {
            all.merge(&tally.store);
        }
    }
    all
}

/// The snapshot of a device. If the device's shard has failed, this is a snapshot without I/O, and the second
/// value is the reason.
pub(super) fn or_nothing(
    daemon: &Daemon,
    snapshot: Result<DiskSnapshot, Refusal>,
) -> (DiskSnapshot, Option<String>) {
    let nothing = || DiskSnapshot {
        at: daemon.started(),
        ..DiskSnapshot::default()
    };
    match snapshot {
        Ok(snapshot) => (snapshot, None),
        Err(refusal) => (nothing(), Some(refusal.error)),
    }
}

/// Roughly how many bytes a zio in flight takes in an answer.
pub(super) const ZIO: usize = size_of::<InFlightZio>() + 96;
/// More bytes than an answer about a disk's damage takes, with all that is kept of it.
pub(super) const FAULTS_MAX: usize = 16 << 20;
/// More bytes than an answer about a disk's power cut takes, even with the longest list of lost writes.
pub(super) const CRASHED_MAX: usize = 4 << 20;
