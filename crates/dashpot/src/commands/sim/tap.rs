//! The part of a simulation's events that a report takes.

use dashpot_engine::{Device, Event, OpSet};
use dashpot_observe::{FinishedIo, Layer, OpInterval, Wanted};

use super::events::Names;
use super::tally::SimTally;

/// The facts of an interval that only events carry.
pub(super) enum Tap {
    /// Counts, by operation and value.
    Tally(SimTally),
    /// The zios one by one.
    Zios(Zios),
}

/// Finished zios.
pub(super) struct Zios {
    wanted: Wanted,
    /// The names of their devices; empty for all.
    devices: Vec<String>,
    zios: Vec<FinishedIo>,
    /// The number of zios that came after these.
    left_out: u64,
}

impl Tap {
    /// Zios of these devices; of all, if none is named.
    pub(super) fn zios(wanted: Wanted, devices: &[String]) -> Tap {
        Tap::Zios(Zios {
            wanted,
            devices: devices.to_vec(),
            zios: Vec::new(),
            left_out: 0,
        })
    }

    /// Takes the event of a zio that has finished.
    pub(super) fn take(&mut self, event: &Event, names: &Names) {
        match self {
            Tap::Tally(tally) => tally.add(event),
            Tap::Zios(zios) if zios.are_wanted(event, names) => zios.take(event, names),
            Tap::Zios(_) => {}
        }
    }

    /// The counts of a device, if this is a tally.
    pub(super) fn ops(&self, device: Device) -> Option<Vec<OpInterval>> {
        match self {
            Tap::Tally(tally) => Some(tally.ops(device)),
            Tap::Zios(_) => None,
        }
    }

    /// The zios of the interval that ends, and the number of zios beyond the bound.
    pub(super) fn end_interval(&mut self) -> (Vec<FinishedIo>, u64) {
        match self {
            Tap::Tally(tally) => {
                tally.clear();
                (Vec::new(), 0)
            }
            Tap::Zios(zios) => (
                std::mem::take(&mut zios.zios),
                std::mem::take(&mut zios.left_out),
            ),
        }
    }
}

impl Zios {
    fn are_wanted(&self, event: &Event, names: &Names) -> bool {
        let layer = match event.device {
            Device::Disk(_) => Layer::Disk,
            Device::Volume(_) => Layer::Volume,
        };
        let device = names.device(event.device);
        let ops = OpSet::of(event.op).union(if event.fua { OpSet::FUA } else { OpSet::EMPTY });
        self.wanted.layer == layer
            && event.ended.since(event.arrived).as_nanos() >= self.wanted.min_ns
            && self.wanted.ops.is_none_or(|asked| asked.meets(ops))
            && (self.devices.is_empty() || self.devices.iter().any(|chosen| chosen == device))
    }

    fn take(&mut self, event: &Event, names: &Names) {
        match (self.zios.len() as u64, self.wanted.count) {
            (taken, Some(count)) if taken >= count => {}
            (ZIOS_MAX.., None) => self.left_out += 1,
            _ => self.zios.push(names.finished(event)),
        }
    }
}

/// The most zios of an interval without a count. They fit into memory, and no reader needs more.
const ZIOS_MAX: u64 = 100_000;
