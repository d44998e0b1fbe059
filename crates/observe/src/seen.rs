//! One interval, as a source saw it.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::finished::FinishedIo;
use super::in_flight::Mention;
use super::interval::{DeviceInterval, elapsed_of_all};
use super::intervals::Span;
use super::layer::Layer;
use super::length::Length;
use super::pool::PoolInterval;

/// The I/O that a source saw in an interval, and counts of the events that the source missed.
#[derive(Default)]
pub struct Seen {
    /// When the interval began and ended, on the clock of the source.
    pub span: Span,
    /// When the interval ended, in nanoseconds since 1970; in a simulation, since the simulation's
    /// beginning.
    pub at_ns: u64,
    /// The watched disks, in the same order each time. A disk that has vanished is left out.
    pub disks: Vec<DeviceInterval>,
    /// The volumes that are watched.
    pub volumes: Vec<DeviceInterval>,
    /// The calls that sync files, by the device of the file system.
    pub calls: Vec<DeviceInterval>,
    /// The kernel's disks, if a recording has a daemon's disks, too.
    pub kernels: Vec<DeviceInterval>,
    /// The pools that are watched.
    pub pools: Vec<PoolInterval>,
    /// Each finished I/O, if the question wants more than totals.
    pub ios: Vec<FinishedIo>,
    /// How many other finished I/Os the source left out of `ios` because it had no room.
    pub left_out: u64,
    /// How many events are missing because a buffer was full.
    pub lost: u64,
    /// How many completions had no visible beginning, because the beginning was lost or came before the
    /// source began to watch. `None` if the source sees every beginning.
    pub unmatched: Option<u64>,
    /// How many sync calls were on unknown devices. Only the device `elsewhere` counts them. `None` if the source
    /// watches no sync calls.
    pub unplaced: Option<u64>,
    /// How long the host kept the source's daemon from running. Zero for the kernel and for a simulation:
    /// they set the times of their events themselves, so such stops do not matter.
    pub stopped: Duration,
    /// The watched devices that no longer exist, including those that vanished in earlier intervals.
    pub gone: Vec<String>,
    /// The devices that appeared in this interval, and are watched from their first I/O.
    pub appeared: Vec<String>,
    /// The devices whose I/Os would count twice in a sum of all devices, because they are also I/Os of the devices
    /// beneath; none if the question names devices.
    pub stacked: Vec<Stacked>,
    /// The I/Os of each device that began before the watch and are in flight, if the source gives I/Os one by one.
    pub earlier: Vec<EarlierIos>,
    /// The devices in `gone` that still existed when the interval began.
    pub vanished: Vec<VanishedDevice>,
}

/// The words for sync calls on unknown devices.
pub fn unplaced_calls(calls: u64) -> String {
    let noun = if calls == 1 {
        "sync call"
    } else {
        "sync calls"
    };
    let calls = dashpot_rules::thousands(calls);
    format!("{calls} {noun} on unknown devices")
}

/// A device that passes its I/Os on to other devices of the same watch. JSON: `{"device": "loop0", "over":
/// ["vda"]}`.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Stacked {
    /// The layer of the device.
    #[serde(skip)]
    pub layer: Layer,
    /// The device's name.
    pub device: String,
    /// The names of the devices directly beneath.
    pub over: Vec<String>,
}

impl Stacked {
    /// Whether this is the device of a layer.
    pub fn is_of(&self, layer: Layer, device: &str) -> bool {
        self.layer == layer && self.device == device
    }
}

impl fmt::Display for Stacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (over {})", self.device, self.over.join(", "))
    }
}

/// The I/Os of a device that began before the watch and have not ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EarlierIos {
    /// The device's name.
    pub device: String,
    /// How many there are; `None` if the kernel does not count the device's I/Os.
    pub number: Option<u64>,
    /// How old each of them is at least, in nanoseconds: how long the watch has lasted.
    pub age_ns: u64,
}

/// A device that no longer exists.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VanishedDevice {
    pub name: String,
    /// Whether another disk has the device's number now.
    pub is_replaced: bool,
    /// The name of that other disk in this watch, if the watch reports it.
    pub now: Option<String>,
}

impl VanishedDevice {
    /// The news of the disk that has replaced this one, if one has.
    pub fn warning(&self) -> Option<String> {
        let news = match &self.now {
            Some(now) => format!("another disk has its number now, and is '{now}' here"),
            None => "another disk has its number now, whose I/Os do not count".to_owned(),
        };
        self.is_replaced.then_some(news)
    }
}

impl Seen {
    /// The I/O of disks and volumes from their start until `at_ns`. The interval has no intended length. No
    /// I/O in flight can be older than this interval, so the report mentions all I/Os in flight.
    pub fn since_start(
        disks: Vec<DeviceInterval>,
        volumes: Vec<DeviceInterval>,
        at_ns: u64,
    ) -> Seen {
        let elapsed = elapsed_of_all(&disks).max(elapsed_of_all(&volumes));
        let elapsed_ns = elapsed.as_nanos() as u64;
        Seen {
            span: Span {
                end_ns: elapsed_ns,
                is_last: true,
                ..Span::default()
            },
            at_ns,
            disks,
            volumes,
            ..Seen::default()
        }
    }

    /// The devices of a layer. The figures of a store are part of its disk's figures.
    pub fn at(&self, layer: Layer) -> &[DeviceInterval] {
        match layer {
            Layer::Volume => &self.volumes,
            Layer::Disk | Layer::Store => &self.disks,
            Layer::Fs => &self.calls,
            Layer::Kernel => &self.kernels,
        }
    }

    /// The devices of a layer whose I/Os a sum of all devices counts.
    pub fn summed(&self, layer: Layer) -> impl Iterator<Item = &DeviceInterval> {
        let devices = self.at(layer).iter();
        devices.filter(move |interval| {
            let mut stacked = self.stacked.iter();
            !stacked.any(|one| one.is_of(layer, &interval.device))
        })
    }

    /// Adds the devices of a layer.
    pub fn add(&mut self, layer: Layer, devices: Vec<DeviceInterval>) {
        let own = match layer {
            Layer::Volume => &mut self.volumes,
            Layer::Disk | Layer::Store => &mut self.disks,
            Layer::Fs => &mut self.calls,
            Layer::Kernel => &mut self.kernels,
        };
        own.extend(devices);
    }

    /// The length of the interval. A source reads the devices one after another, so the longest time between
    /// two readings of a device counts.
    pub fn length(&self) -> Length {
        let length = Length {
            stopped: self.stopped,
            ..self.span.length()
        };
        let devices = [&self.disks, &self.volumes, &self.calls, &self.kernels];
        let elapsed = devices.map(|devices| elapsed_of_all(devices.iter()));
        match elapsed
            .into_iter()
            .max()
            .filter(|elapsed| !elapsed.is_zero())
        {
            Some(elapsed) => length.seen(elapsed),
            None => length,
        }
    }

    /// The I/Os in flight that a report's text mentions.
    pub fn mention(&self) -> Mention {
        self.span.mention()
    }
}
