//! Writes metrics into the text that Prometheus scrapes: for each metric a name, a help line, and a sample
//! for each set of labels.

use std::borrow::Cow;
use std::fmt;

use dashpot_engine::histogram::Histogram;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::bounds::buckets;

/// The labels of a sample.
pub(super) type Labels<'a> = Vec<(&'static str, Cow<'a, str>)>;

/// The name of a metric, without prefix, unit and `_total`; its unit; and its help text.
pub(super) struct Metric(
    pub(super) &'static str,
    pub(super) Option<Unit>,
    pub(super) &'static str,
);

/// The text that metrics are written to.
pub(super) struct Page<'a>(pub(super) DescriptorEncoder<'a>);

impl Page<'_> {
    /// Writes a value that only grows.
    pub(super) fn counter<'l, V: EncodeCounterValue>(
        &mut self,
        metric: &Metric,
        samples: impl IntoIterator<Item = (Labels<'l>, V)>,
    ) -> fmt::Result {
        self.write(
            metric,
            MetricType::Counter,
            samples,
            |encoder, labels, value| {
                let mut encoder = encoder.encode_family(labels)?;
                encoder.encode_counter::<NoLabelSet, _, f64>(value, None)
            },
        )
    }

    /// Writes a value that can rise and fall.
    pub(super) fn gauge<'l, V: EncodeGaugeValue>(
        &mut self,
        metric: &Metric,
        samples: impl IntoIterator<Item = (Labels<'l>, V)>,
    ) -> fmt::Result {
        self.write(
            metric,
            MetricType::Gauge,
            samples,
            |encoder, labels, value| encoder.encode_family(labels)?.encode_gauge(value),
        )
    }

    /// Writes histograms of latencies.
    pub(super) fn histogram<'l>(
        &mut self,
        metric: &Metric,
        samples: impl IntoIterator<Item = (Labels<'l>, Cow<'l, Histogram>)>,
    ) -> fmt::Result {
        self.write(
            metric,
            MetricType::Histogram,
            samples,
            |encoder, labels, value| {
                let mut encoder = encoder.encode_family(labels)?;
                let sum = seconds_of(value.sum());
                encoder.encode_histogram::<NoLabelSet>(sum, value.count(), &buckets(value), None)
            },
        )
    }

    /// Writes facts as labels.
    pub(super) fn info<'l>(
        &mut self,
        metric: &Metric,
        samples: impl IntoIterator<Item = Labels<'l>>,
    ) -> fmt::Result {
        let samples = samples.into_iter().map(|labels| (labels, ()));
        self.write(metric, MetricType::Info, samples, |encoder, labels, ()| {
            encoder.encode_info(labels)
        })
    }

    /// Writes a metric, unless it has no samples.
    fn write<'l, V>(
        &mut self,
        Metric(name, unit, help): &Metric,
        kind: MetricType,
        samples: impl IntoIterator<Item = (Labels<'l>, V)>,
        encode: impl Fn(&mut MetricEncoder<'_>, &Labels<'l>, &V) -> fmt::Result,
    ) -> fmt::Result {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return Ok(());
        }
        let mut encoder = self.0.encode_descriptor(name, help, unit.as_ref(), kind)?;
        samples.try_for_each(|(labels, value)| encode(&mut encoder, &labels, &value))
    }
}

/// Converts nanoseconds to seconds.
pub(super) fn seconds_of(nanos: u128) -> f64 {
    nanos as f64 / 1e9
}
