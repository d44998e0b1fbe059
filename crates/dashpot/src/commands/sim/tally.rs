//! Facts about zios that only events contain: the workloads that sent them, their sizes, and the time
//! in the store.

use dashpot_engine::{Device, Event, Op};
use dashpot_observe::{By, OpInterval, Part, Sample, Tally};
use dashpot_sim::scenario::Scenario;

use super::events::Names;

/// The events of an interval, counted.
pub(in crate::commands) struct SimTally {
    by: Option<By>,
    names: Names,
    tally: Tally<Op>,
}

impl SimTally {
    pub(in crate::commands) fn new(by: Option<By>, scenario: &Scenario) -> SimTally {
        SimTally {
            by,
            names: Names::of(scenario),
            tally: Tally::default(),
        }
    }

    pub(in crate::commands) fn add(&mut self, event: &Event) {
        let part = match self.by {
            Some(By::Client) => Part::Named(self.names.client(event.client)),
            Some(By::Size) => Part::Size(event.length.into()),
            _ => Part::All,
        };
        let waits = event.waits();
        let disk = match event.device {
            Device::Disk(_) => waits.disk(),
            Device::Volume(_) => waits.volume(),
        };
        let bytes = if event.outcome.is_ok() {
            event.length
        } else {
            0
        };
        let sample = Sample {
            device: place(event.device),
            of: event.op,
            bytes: bytes.into(),
            disk_ns: disk.as_nanos(),
            total_ns: Some(waits.total().as_nanos()),
            store_ns: Some(waits.store.as_nanos()),
        };
        self.tally.add(&sample, part);
    }

    /// The I/O of a device, by operation and value.
    pub(in crate::commands) fn ops(&self, device: Device) -> Vec<OpInterval> {
        self.tally.ops(place(device))
    }

    /// Begins the next interval.
    pub(in crate::commands) fn clear(&mut self) {
        self.tally.clear();
    }
}

/// The index of a device among all: disks have even indices.
fn place(device: Device) -> usize {
    match device {
        Device::Disk(disk) => 2 * disk.0 as usize,
        Device::Volume(volume) => 2 * volume.0 as usize + 1,
    }
}
