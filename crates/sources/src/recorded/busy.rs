//! How busy the devices of a recording were. An I/O counts from its arrival to its end, in each interval in
//! which it was in flight. The seconds for which the recording has only counts are left out.

use std::collections::BTreeMap;

use dashpot_observe::{Busy, Question, Subject};
use dashpot_recording::Query;

use super::columns::columns_of;
use super::period::Recorded;
use super::spans::Period;

/// The busy time of each device.
pub(super) struct BusyDevices {
    devices: BTreeMap<String, Busy>,
}

impl BusyDevices {
    /// Reads all I/Os that ended in a period, and those that ended soon after it, because they may have been
    /// in flight in the period. The period is divided into intervals of `interval_ns`.
    pub(super) fn of(
        recorded: &Recorded,
        period: Period,
        interval_ns: u64,
    ) -> anyhow::Result<BusyDevices> {
        let busy = Busy::new(period.from_ns, period.to_ns, interval_ns);
        let names = recorded.names.iter();
        let mut devices: BTreeMap<String, Busy> =
            names.map(|name| (name.clone(), busy.clone())).collect();
        let query = Query {
            to_ns: period.to_ns.saturating_add(LATER_NS),
            columns: columns_of(&Question::of(Subject::Averages(recorded.layer())), false),
            ..period.query()
        };
        let mut blocks = recorded.blocks(query);
        while let Some(block) = blocks.next_block()? {
            block.each(|_, one| {
                let io = &one.io;
                let own = devices.get_mut(&*io.device);
                let Some(busy) = own.filter(|_| recorded.is_named(io)) else {
                    return;
                };
                let begun_ns = io.at_ns.saturating_sub(io.total_ns());
                let whole = Period {
                    from_ns: begun_ns,
                    to_ns: io.at_ns,
                };
                for part in recorded.counted.outside(whole) {
                    if one.is_in_flight {
                        busy.cover(part.from_ns, part.to_ns);
                    } else {
                        busy.add(part.from_ns, part.to_ns);
                    }
                }
            });
        }
        Ok(BusyDevices { devices })
    }

    /// For the interval that begins at `start_ns`: how long the device was busy, and the integral of the
    /// number of I/Os in flight, both in nanoseconds.
    pub(super) fn interval(&self, device: &str, start_ns: u64) -> (u64, u128) {
        let busy = self.devices.get(device);
        busy.map_or((0, 0), |busy| busy.interval(start_ns))
    }
}

/// For this long after the period, I/Os are still read. An I/O that ends later is left out, unless a file
/// that was sealed in the meantime lists it as in flight.
const LATER_NS: u64 = 60_000_000_000;
