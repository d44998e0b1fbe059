//! The seconds for which a recording has only counts, because the single I/Os are gone. These counts answer
//! questions that need no more than devices, operations and latencies.

use std::collections::BTreeMap;
use std::sync::Arc;

use dashpot_engine::histogram::{Histogram, Moments};
use dashpot_observe::{Dimension, FinishedIo, IoWaits, Kind, Layer, Question, Subject, Tally};
use dashpot_recording::{Count, Second};

use super::period::Recorded;
use super::spans::{Period, SECOND_NS};

/// Adds to the tally the I/Os of all counted seconds that begin in a period.
pub(super) fn count(
    recorded: &Recorded,
    period: Period,
    question: &Question,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let mut sums: BTreeMap<[Arc<str>; 3], Sums> = BTreeMap::new();
    let (from, to) = period.seconds();
    recorded.each_second(from, to, |row| {
        if recorded.counted.has(row.second * SECOND_NS) {
            let key = [&row.device, &row.layer, &row.op].map(Arc::clone);
            sums.entry(key).or_default().add(&row);
        }
    })?;
    for ([device, layer, op], sums) in &sums {
        let like = FinishedIo::bare(Layer::of_word(layer), Arc::clone(device), Kind::of_word(op));
        if recorded.is_named(&like) {
            add(&like, sums, question, tally);
        }
    }
    Ok(())
}

/// Adds the counts of one operation of a device. For a breakdown by latency, adds the counts bucket by
/// bucket.
fn add(like: &FinishedIo, sums: &Sums, question: &Question, tally: &mut Tally) {
    if question.by != Some(Dimension::Latency) {
        return tally.add_counted(like, sums.bytes, &sums.latencies());
    }
    // The counts do not say how many bytes belong to each bucket, so each I/O gets the same share.
    let (mut bytes, mut left) = (sums.bytes, sums.buckets.values().sum::<u64>());
    for (ns, n) in sums.rounded() {
        let share = u128::from(bytes) * u128::from(n) / u128::from(left.max(1));
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        (bytes, left) = (bytes - share, left - n);
        tally.add_counted(&that_took(like, ns), share, &Histogram::of(ns, n));
    }
}

fn that_took(like: &FinishedIo, ns: u64) -> FinishedIo {
    FinishedIo {
        ended_ns: ns,
        waits: IoWaits::Kernel {
            queue_ns: None,
            device_ns: ns,
        },
        ..like.clone()
    }
}

/// Whether the per-second counts can answer a question.
pub(super) fn answer(question: &Question) -> bool {
    let is_counted = |by| matches!(by, Dimension::Device | Dimension::Op);
    let is_known = |by| is_counted(by) || by == Dimension::Latency;
    let is_latencies = match &question.subject {
        Subject::Latencies(layers) => !layers.contains(&Layer::Store),
        _ => false,
    };
    is_latencies
        && !question.queued
        && question.measure.is_none()
        && question.by.is_none_or(is_known)
        && question.predicates.dimensions().all(is_counted)
}

/// The counts of one operation of a device.
#[derive(Default)]
struct Sums {
    buckets: BTreeMap<u64, u64>,
    sum_ns: u128,
    max_ns: u64,
    bytes: u64,
}

impl Sums {
    fn add(&mut self, row: &Second) {
        match row.count {
            Count::Bucket { le_ns, n } => {
                *self.buckets.entry(le_ns.unsigned_abs()).or_default() += n;
            }
            Count::Sums {
                sum_ns,
                bytes,
                max_ns,
                ..
            } => {
                self.sum_ns += u128::from(sum_ns);
                self.max_ns = self.max_ns.max(max_ns);
                self.bytes = self.bytes.saturating_add(bytes);
            }
        }
    }

    /// For each bucket, its highest latency, limited to the highest latency of all I/Os, and the number of
    /// its I/Os.
    fn rounded(&self) -> impl Iterator<Item = (u64, u64)> {
        let each = self.buckets.iter();
        each.map(|(le_ns, n)| ((*le_ns).min(self.max_ns), *n))
    }

    /// The rounded latencies, with the sum that they had before rounding.
    fn latencies(&self) -> Histogram {
        let rounded: Histogram = self.rounded().collect();
        let mut sparse = rounded.to_sparse();
        sparse.nanos = Moments {
            sum: self.sum_ns,
            ..sparse.nanos
        };
        Histogram::from_sparse(&sparse).unwrap_or(rounded)
    }
}
