//! Takes from a simulation's events what a report needs.

use dashpot_engine::Event;
use dashpot_observe::{FinishedIo, OpInterval, Predicates, Tally, Wanted};
use dashpot_sources::simulated::Names;

/// The facts about an interval that can only be found in events.
pub(super) enum Tap {
    /// Counts, by operation and value.
    Tally(Tally),
    /// A record of each zio.
    Zios(Zios),
}

/// Finished zios.
pub(super) struct Zios {
    wanted: Wanted,
    predicates: Predicates,
    /// The names of the zios' devices; empty for all.
    devices: Vec<String>,
    zios: Vec<FinishedIo>,
    /// How many zios came after the first [`ZIOS_MAX`] and were left out.
    left_out: u64,
}

impl Tap {
    /// A tap for the zios of these devices, or of all devices if none is named.
    pub(super) fn zios(wanted: Wanted, predicates: &Predicates, devices: &[String]) -> Tap {
        Tap::Zios(Zios {
            wanted,
            predicates: predicates.clone(),
            devices: devices.to_vec(),
            zios: Vec::new(),
            left_out: 0,
        })
    }

    /// Takes the event of a zio that has finished.
    pub(super) fn take(&mut self, event: &Event, names: &Names) {
        let io = names.finished(event);
        match self {
            Tap::Tally(tally) => tally.add(&io),
            Tap::Zios(zios) if zios.are_wanted(&io) => zios.take(io),
            Tap::Zios(_) => {}
        }
    }

    /// The counts of a device, if this is a tally.
    pub(super) fn ops(&self, device: &str) -> Option<Vec<OpInterval>> {
        match self {
            Tap::Tally(tally) => Some(tally.ops(device)),
            Tap::Zios(_) => None,
        }
    }

    /// The zios of the interval that ends, and the number of zios beyond [`ZIOS_MAX`].
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
    fn are_wanted(&self, io: &FinishedIo) -> bool {
        self.wanted.takes(io)
            && (self.devices.is_empty() || self.devices.iter().any(|chosen| **chosen == *io.device))
            && self.predicates.select(io)
    }

    fn take(&mut self, io: FinishedIo) {
        match (self.zios.len() as u64, self.wanted.count) {
            (taken, Some(count)) if taken >= count => {}
            (ZIOS_MAX.., None) => self.left_out += 1,
            _ => self.zios.push(io),
        }
    }
}

/// How many zios of an interval are kept, if the user gives no count. This many zios fit into memory, and no
/// user reads more.
const ZIOS_MAX: u64 = 100_000;
