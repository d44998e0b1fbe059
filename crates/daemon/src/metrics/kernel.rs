//! The metrics of `observe`, which count the I/O of the kernel's disks from the start of `observe` until the
//! end of its last interval.
//!
//! These metrics have names of their own. A dashpot disk that is attached to the kernel appears in the
//! metrics of its daemon and in these metrics, and users must not add up the two.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use dashpot_observe::{Counts, DeviceInterval};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;

use super::format::open_metrics;
use super::host;
use super::listener::Metrics;
use super::page::{Labels, Metric, Page, seconds_of};

/// The kernel's disks, to be scraped.
pub struct KernelMetrics(pub Arc<Mutex<KernelTotals>>);

/// The I/O of disks since the watch began.
#[derive(Clone, Debug, Default)]
pub struct KernelTotals {
    /// The I/O, by device and operation.
    ops: BTreeMap<(String, String), Counts>,
    /// For each device, the number of I/Os in flight, and the age of the oldest of them in nanoseconds.
    in_flight: BTreeMap<String, (u64, u64)>,
    /// Whether each device that the watch has seen still exists.
    present: BTreeMap<String, bool>,
    lost: u64,
}

impl Metrics for KernelMetrics {
    async fn text(&self) -> Result<String, fmt::Error> {
        let totals = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        open_metrics(totals)
    }
}

impl KernelTotals {
    /// Adds an interval. The I/Os in flight at the end of the new interval replace those of the interval
    /// before.
    pub fn add(&mut self, intervals: &[DeviceInterval], gone: &[String], lost: u64) {
        self.in_flight.clear();
        for interval in intervals {
            let is_present = !gone.contains(&interval.device);
            self.present.insert(interval.device.clone(), is_present);
            let in_flight = &interval.in_flight;
            if let Some(zios) = in_flight.zios {
                let now = (zios, in_flight.oldest_ns.unwrap_or_default());
                self.in_flight.insert(interval.device.clone(), now);
            }
            for op in ["read", "write"] {
                self.total(interval, op);
            }
            for op in &interval.ops {
                self.total(interval, op.kind.word()).merge(&op.counts);
            }
        }
        // The watch forgets disks that vanished long ago, so that a host may make disks all day.
        self.present.retain(|device, is_present| {
            let is_told = intervals.iter().any(|interval| interval.device == *device);
            *is_present &= is_told;
            is_told || gone.contains(device)
        });
        let present = &self.present;
        self.ops
            .retain(|(device, _), _| present.contains_key(device));
        self.lost += lost;
    }

    fn total(&mut self, interval: &DeviceInterval, op: &str) -> &mut Counts {
        let key = (interval.device.clone(), op.to_owned());
        self.ops.entry(key).or_default()
    }

    fn each_op<'a, V>(
        &'a self,
        value: impl Fn(&'a Counts) -> V + 'a,
    ) -> impl Iterator<Item = (Labels<'a>, V)> {
        self.ops.iter().map(move |((device, op), total)| {
            let labels = vec![("device", Cow::from(device)), ("op", Cow::from(op))];
            (labels, value(total))
        })
    }

    fn each_device<'a, V>(
        &'a self,
        value: impl Fn((u64, u64)) -> V + 'a,
    ) -> impl Iterator<Item = (Labels<'a>, V)> {
        let devices = self.in_flight.iter();
        devices.map(move |(device, now)| (vec![("device", Cow::from(device))], value(*now)))
    }
}

impl Collector for KernelTotals {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let page = &mut Page(encoder);
        page.counter(&OPERATIONS, self.each_op(|total| total.completed))?;
        page.counter(&BYTES, self.each_op(|total| total.bytes))?;
        let latency = self.each_op(|total| {
            let known = total.disk.as_deref().map(Cow::Borrowed);
            known.unwrap_or_default()
        });
        page.histogram(&LATENCY, latency)?;
        page.gauge(&IN_FLIGHT, self.each_device(|(number, _)| number))?;
        page.gauge(&OLDEST, self.each_device(|(_, age)| seconds_of(age.into())))?;
        let present = self.present.iter();
        let present =
            present.map(|(device, is)| (vec![("device", Cow::from(device))], u64::from(*is)));
        page.gauge(&PRESENT, present)?;
        page.counter(&LOST, [(Labels::new(), self.lost)])?;
        host::write_build(page)
    }
}

const OPERATIONS: Metric = Metric(
    "kernel_disk_operations",
    None,
    "I/Os that the device has finished",
);
const BYTES: Metric = Metric(
    "kernel_disk",
    Some(Unit::Bytes),
    "Bytes of the I/Os that the device has finished",
);
const LATENCY: Metric = Metric(
    "kernel_disk_latency",
    Some(Unit::Seconds),
    "From issue to completion",
);
const IN_FLIGHT: Metric = Metric(
    "kernel_disk_in_flight",
    None,
    "I/Os that have begun, also before the watch, and have not ended; absent if the kernel does not count them",
);
const OLDEST: Metric = Metric(
    "kernel_disk_oldest_in_flight",
    Some(Unit::Seconds),
    "Time since the oldest I/O in flight began, or 0; the time since the watch began if the I/O is older",
);
const PRESENT: Metric = Metric(
    "kernel_disk_present",
    None,
    "1 while the device exists, 0 when it has vanished",
);
const LOST: Metric = Metric(
    "kernel_events_lost",
    None,
    "Events that the kernel had no room for; their I/Os are in no histogram",
);
