//! How a disk stands, seen from its shard.

use dashpot_engine::{DiskId, InFlight};

use crate::shard::Shard;
use crate::shard::connection::Conn;
use crate::snapshot::{DiskSnapshot, RuleSnapshot};

impl Shard {
    /// How a disk stands, with its `oldest` oldest zios; nothing if this shard has no such disk.
    pub(crate) fn snapshot(&self, id: DiskId, oldest: usize) -> Option<DiskSnapshot> {
        let disk = self.disks.get(id.0 as usize)?;
        let rules = self.engine.rules(id, self.now).map(|rule| {
            let overloaded = self.meter.overloaded_since(rule.id, self.now);
            RuleSnapshot::of(rule, overloaded)
        });
        let of_disk = |conn: &&Conn| conn.disk == id && conn.stalled;
        Some(DiskSnapshot {
            at: self.now,
            stats: self.engine.disk_stats(id, self.now)?,
            rules: rules.collect(),
            in_flight_total: self.engine.in_flight_total(id),
            in_flight: self.oldest(id, oldest),
            suspended: self.engine.suspended(id),
            off: disk.export.power.is_off(),
            clients: disk.clients.views(),
            stalled: self.conns.iter().flatten().filter(of_disk).count() as u32,
            stalls: disk.stalls,
            faulted: disk.store.fault().map(str::to_owned),
            loop_gap: self.meter.gaps(),
            work: self.meter.work(self.now),
            stops: self.meter.stops(self.now),
            held: self.held(),
        })
    }

    /// The `count` oldest zios of a disk, the oldest first.
    fn oldest(&self, disk: DiskId, count: usize) -> Vec<InFlight> {
        self.engine.in_flight(disk).take(count).collect()
    }
}
