//! Samples of disks and of volumes, which count their I/O in the same way.

use std::borrow::Cow;

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{LatencyKind, Op, OpStats};
use dashpot_export::DiskSnapshot;

use super::page::{Labels, seconds_of};

/// A disk or a volume at a scrape.
pub(super) trait Scraped {
    /// The labels of all samples of the device.
    fn labels(&self) -> Labels<'_>;

    /// The state of the device; `None` if its shard has failed.
    fn snapshot(&self) -> Option<&DiskSnapshot>;
}

/// A sample for each device that is served.
pub(super) fn each<'a, S: Scraped, V>(
    devices: &'a [S],
    value: impl Fn(&'a DiskSnapshot) -> V + 'a,
) -> impl Iterator<Item = (Labels<'a>, V)> {
    let served = devices
        .iter()
        .filter_map(|device| Some((device, device.snapshot()?)));
    served.map(move |(device, snapshot)| (device.labels(), value(snapshot)))
}

/// A sample for each operation of each device.
pub(super) fn each_op<'a, S: Scraped, V>(
    devices: &'a [S],
    value: impl Fn(&'a OpStats) -> V + 'a,
) -> impl Iterator<Item = (Labels<'a>, V)> {
    each(devices, |device| device).flat_map(move |(labels, device)| {
        let shown = |op: &Op| op.is_of_blocks() || device.stats.op(*op).completed > 0;
        let ops = Op::ALL.into_iter().filter(shown);
        let samples = ops.map(|op| (op_labels(&labels, op), value(device.stats.op(op))));
        samples.collect::<Vec<_>>()
    })
}

/// Histograms of reads and writes are always present, so that the first I/Os show as a rise from zero.
/// Histograms of rarer operations, and of held zios, appear with the first zio of their kind.
pub(super) fn each_histogram<S: Scraped>(
    devices: &[S],
    kind: LatencyKind,
) -> impl Iterator<Item = (Labels<'_>, Cow<'_, Histogram>)> {
    each(devices, |device| device).flat_map(move |(labels, device)| {
        let sample = move |op: Op| {
            let recorded = device.stats.op(op).latency(kind).map(|boxed| *boxed);
            let always = matches!(op, Op::Read | Op::Write);
            let histogram = recorded.or_else(|| always.then(Histogram::default))?;
            Some((op_labels(&labels, op), Cow::Owned(histogram)))
        };
        Op::ALL.into_iter().filter_map(sample)
    })
}

/// The time since the arrival of the oldest I/O in flight, or 0.
pub(super) fn oldest_seconds(device: &DiskSnapshot) -> f64 {
    let age = |arrived| device.at.since(arrived).as_nanos();
    let oldest = device.in_flight.first();
    seconds_of(oldest.map_or(0, |zio| age(zio.arrived)).into())
}

fn op_labels<'a>(device: &Labels<'a>, op: Op) -> Labels<'a> {
    let mut labels = device.clone();
    labels.push(("op", op.name().into()));
    labels
}
