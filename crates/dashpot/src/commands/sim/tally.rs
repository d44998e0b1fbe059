//! What only events tell of zios: who sent them, how large they were, and what the store took.

use std::collections::BTreeMap;

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{ClientId, Device, Event, Op};
use dashpot_observe::{By, OpInterval, size_class, size_name};
use dashpot_sim::scenario::Scenario;

use super::events::Names;

/// The events of an interval, counted.
pub(in crate::commands) struct Tally {
    by: Option<By>,
    names: Names,
    counted: BTreeMap<(Device, Op, Value), Counted>,
}

/// A value of what is broken down by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    All,
    Client(ClientId),
    Size(u32),
}

#[derive(Default)]
struct Counted {
    completed: u64,
    bytes: u64,
    total: Histogram,
    disk: Histogram,
    store: Histogram,
}

impl Tally {
    pub(in crate::commands) fn new(by: Option<By>, scenario: &Scenario) -> Tally {
        Tally {
            by,
            names: Names::of(scenario),
            counted: BTreeMap::new(),
        }
    }

    pub(in crate::commands) fn add(&mut self, event: &Event) {
        let value = match self.by {
            Some(By::Client) => Value::Client(event.client),
            Some(By::Size) => Value::Size(size_class(event.length.into())),
            _ => Value::All,
        };
        let key = (event.device, event.op, value);
        let counted = self.counted.entry(key).or_default();
        counted.completed += 1;
        if event.outcome.is_ok() {
            counted.bytes += u64::from(event.length);
        }
        let waits = event.waits();
        counted.total.record(waits.total().as_nanos());
        // As on the data path: what a volume's writes wait for above its disks is the volume's own.
        let disk = match event.device {
            Device::Disk(_) => waits.disk(),
            Device::Volume(_) => event.offered.since(event.submitted),
        };
        counted.disk.record(disk.as_nanos());
        counted.store.record(waits.store.as_nanos());
    }

    /// What a device did, by operation and value.
    pub(in crate::commands) fn ops(&self, device: Device) -> Vec<OpInterval> {
        let own = self.counted.iter().filter(|(key, _)| key.0 == device);
        own.map(|((_, op, value), counted)| OpInterval {
            op: op.name().to_owned(),
            rwbs: None,
            by: self.name(*value),
            completed: counted.completed,
            bytes: counted.bytes,
            total: counted.total.clone(),
            disk: counted.disk.clone(),
            store: Some(counted.store.clone()),
        })
        .collect()
    }

    fn name(&self, value: Value) -> Option<String> {
        match value {
            Value::All => None,
            Value::Client(client) => Some(self.names.client(client).to_owned()),
            Value::Size(class) => Some(size_name(class)),
        }
    }

    /// Begins the next interval.
    pub(in crate::commands) fn clear(&mut self) {
        self.counted.clear();
    }
}
