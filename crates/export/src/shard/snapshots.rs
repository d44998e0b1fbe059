//! Snapshots: the state of a disk, a volume or a pool at one moment, for other threads.

use dashpot_engine::inject::RuleId;
use dashpot_engine::{Device, DiskId, PoolId};

use super::Shard;
use crate::export::ExportId;
use crate::snapshot::{Counted, DiskSnapshot, PoolSnapshot, RuleSnapshot};

impl Shard {
    /// Marks the present counts for these rules. The counts that `list` shows next to a rule begin
    /// here.
    pub(super) fn mark(&mut self, disk: DiskId, rules: impl Iterator<Item = RuleId>) {
        let now = self.timers.now();
        self.timers.meter_mut().mark(now);
        let counted = self.counted(disk);
        self.rule_marks.set(disk, rules, counted);
    }

    /// The shard's counts since its start. `list` shows these counts next to the rules of a disk.
    fn counted(&self, disk: DiskId) -> Counted {
        let now = self.timers.now();
        let export = self.exports.of(Device::Disk(disk));
        Counted {
            overloaded_seconds: self.timers.meter().work(now).overloaded_seconds,
            stalls: export.map_or(0, |export| self.zios.budget.stalls(export)),
            depths: self.engine.depths(disk, now).unwrap_or_default(),
        }
    }

    /// The state of a device and of its export, with its `oldest` oldest zios. `None` if this shard has
    /// no such device.
    pub(super) fn snapshot(&self, device: Device, oldest: usize) -> Option<DiskSnapshot> {
        let common = self.snapshot_of_export(self.exports.of(device));
        match device {
            Device::Disk(disk) => self.with_disk(disk, oldest, common),
            Device::Volume(volume) => {
                let mut in_flight = self.engine.in_flight_at_volume(volume);
                let in_flight_total = in_flight.len() as u32;
                in_flight.truncate(oldest);
                Some(DiskSnapshot {
                    stats: self.engine.volume_stats(volume, common.at)?,
                    in_flight_total,
                    in_flight,
                    ..common
                })
            }
        }
    }

    fn with_disk(&self, disk: DiskId, oldest: usize, common: DiskSnapshot) -> Option<DiskSnapshot> {
        let store = self.storage.stores.of(Device::Disk(disk))?;
        let is_pooled = self.exports.of(Device::Disk(disk)).is_none();
        let counted = self.counted(disk);
        let rules = self.engine.rules(disk, common.at).map(|rule| {
            let since = self.rule_marks.since(rule.id, &counted);
            RuleSnapshot::of(rule, since)
        });
        let volumes = self.engine.clients(disk).filter(|_| is_pooled);
        let volumes = volumes.map(|(client, name)| (client, name.to_owned()));
        Some(DiskSnapshot {
            volumes: volumes.collect(),
            stats: self.engine.disk_stats(disk, common.at)?,
            rules: rules.collect(),
            in_flight_total: self.engine.in_flight_total(disk),
            in_flight: self.engine.in_flight(disk).take(oldest).collect(),
            suspended: self.engine.suspended(disk),
            faulted: store.fault().map(str::to_owned),
            damaged: self.storage.damages.of(disk),
            ..common
        })
    }

    /// The state of the shard and of an export, but not of the export's device.
    fn snapshot_of_export(&self, export: Option<ExportId>) -> DiskSnapshot {
        let (now, meter) = (self.timers.now(), self.timers.meter());
        let mut snapshot = DiskSnapshot {
            at: now,
            loop_gap: meter.gaps(),
            work: meter.work(now),
            stops: meter.stops(now),
            held: self.zios.budget.held(self.connections.taken()),
            ..DiskSnapshot::default()
        };
        if let Some(export) = export {
            snapshot.off = self.exports.info(export).power.is_off();
            snapshot.clients = self.exports.clients(export);
            snapshot.attachments = self.attachments(export);
            snapshot.stalled = self.zios.budget.stalled(export);
            snapshot.stalls = self.zios.budget.stalls(export);
        }
        snapshot
    }

    /// The state of a pool. `None` if this shard has no such pool.
    pub(super) fn snapshot_pool(&self, pool: PoolId) -> Option<PoolSnapshot> {
        let now = self.timers.now();
        Some(PoolSnapshot {
            at: now,
            stats: self.engine.pool_stats(pool, now)?,
            tunables: self.engine.tunables(pool)?.clone(),
            memory: self.storage.blocks().held(),
        })
    }
}
