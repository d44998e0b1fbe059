//! The states of the served pools and volumes, and changes to them.

use std::sync::Arc;

use dashpot_engine::pool::{Tunable, TunableError, Tunables};
use dashpot_engine::{Command, CommandError};
use dashpot_export::{
    Cut, DeviceId, DiskInfo, DiskSnapshot, PoolInfo, PoolLoss, PoolSnapshot, ServedDevice,
    VolumeInfo,
};
use dashpot_rules::format_tunable;

use super::{Daemon, asked, index_of, refusal_of_cut};
use crate::refusal::{Refusal, RefusalKind};

impl Daemon {
    /// The daemon's pools, each with its index.
    pub fn pools(&self) -> impl Iterator<Item = (usize, &PoolInfo)> {
        self.handle.pools().iter().enumerate()
    }

    /// The daemon's volumes, each with its index.
    pub fn volumes(&self) -> impl Iterator<Item = (usize, &VolumeInfo)> {
        self.handle.volumes().iter().enumerate()
    }

    /// The facts about the pool at an index that [`Daemon::pools`] or [`Daemon::pool`] gave.
    pub fn info_of_pool(&self, pool: usize) -> &PoolInfo {
        &self.handle.pools()[pool]
    }

    /// The index of the pool with this name.
    pub fn pool(&self, name: &str) -> Result<usize, Refusal> {
        let known = self.handle.pools().iter();
        index_of("pool", name, known.map(|info| info.name.as_str()))
    }

    /// The index of the volume with this name.
    pub fn volume(&self, name: &str) -> Result<usize, Refusal> {
        let known = self.handle.volumes().iter();
        index_of("volume", name, known.map(|info| info.name.as_str()))
    }

    /// The addresses at which clients reach a volume.
    pub fn uris_of_volume(&self, volume: usize) -> &[String] {
        let export = self.info_of_volume(volume).export;
        self.uris.get(export).map_or(&[], Vec::as_slice)
    }

    /// The facts about the volume at an index that [`Daemon::volumes`] or [`Daemon::volume`] gave.
    pub fn info_of_volume(&self, volume: usize) -> &VolumeInfo {
        &self.handle.volumes()[volume]
    }

    pub fn pool_of(&self, volume: &VolumeInfo) -> &PoolInfo {
        self.info_of_pool(volume.pool)
    }

    /// The id of the disk or the volume with this name.
    pub fn device(&self, name: &str) -> Result<DeviceId, Refusal> {
        if let Ok(volume) = self.volume(name) {
            return Ok(self.handle.device_of_volume(volume));
        }
        if let Ok(disk) = self.disk(name) {
            return Ok(DeviceId::of(disk));
        }
        let disks = self.disks().map(|(_, info)| info.name.as_str());
        let volumes = self.volumes().map(|(_, info)| info.name.as_str());
        Err(Refusal::not_found(
            "disk or volume",
            name,
            disks.chain(volumes),
        ))
    }

    /// The id of a volume among all devices.
    pub fn device_of_volume(&self, volume: usize) -> DeviceId {
        self.handle.device_of_volume(volume)
    }

    /// The name of a disk or a volume.
    pub fn name_of(&self, device: DeviceId) -> &str {
        self.handle.device(device).name()
    }

    /// The facts about a device that is a disk.
    pub(crate) fn disk_of(&self, device: DeviceId) -> Option<&DiskInfo> {
        match self.handle.device(device) {
            ServedDevice::Disk(info) => Some(info),
            ServedDevice::Volume(_) => None,
        }
    }

    pub(crate) fn is_volume(&self, device: DeviceId) -> bool {
        matches!(self.handle.device(device), ServedDevice::Volume(_))
    }

    /// The names of all disks and volumes, by index of the device.
    pub(crate) fn device_names(&self) -> Vec<Arc<str>> {
        let count = self.handle.disks().len() + self.handle.volumes().len();
        let each = (0..count).map(|index| self.name_of(DeviceId::of(index)).into());
        each.collect()
    }

    /// The reason that a disk or a volume is no longer served; `None` if it is served.
    pub fn failure_of(&self, device: DeviceId) -> Option<String> {
        self.disk_beside(device).and_then(|disk| self.failure(disk))
    }

    /// The index of a disk on the same shard as a device. Callers reach the shard by this index.
    pub(super) fn disk_beside(&self, device: DeviceId) -> Option<usize> {
        match self.handle.device(device) {
            ServedDevice::Disk(_) => Some(device.index()),
            ServedDevice::Volume(volume) => {
                let members = self.pool_of(volume).members.first()?;
                members.first().copied()
            }
        }
    }

    /// The state of a volume now, with at most `oldest` zios in flight, the oldest first.
    pub async fn snapshot_volume(
        &self,
        volume: usize,
        oldest: usize,
    ) -> Result<DiskSnapshot, Refusal> {
        Ok(asked(|answer| self.handle.snapshot_volume(volume, oldest, answer)).await?)
    }

    /// The state of a pool now.
    pub async fn snapshot_pool(&self, pool: usize) -> Result<PoolSnapshot, Refusal> {
        Ok(asked(|answer| self.handle.snapshot_pool(pool, answer)).await?)
    }

    /// Sets tunables of a pool, all or none. Returns all tunables after the change.
    pub async fn tune(
        &self,
        pool: usize,
        changes: Vec<(Tunable, u64)>,
    ) -> Result<Tunables, Refusal> {
        let tune = |pool| Command::Tune { pool, changes };
        let tuned = asked(|answer| self.handle.command_pool(pool, tune, answer)).await?;
        tuned.map_err(|error| match error {
            CommandError::Tunable(error) => refusal_of(&error),
            other => other.into(),
        })?;
        Ok(self.snapshot_pool(pool).await?.tunables)
    }
    /// Cuts the power of a pool, or restores it.
    pub async fn cut_pool(&self, pool: usize, cut: Cut) -> Result<PoolLoss, Refusal> {
        let loss = asked(|answer| self.handle.cut_pool(pool, cut, answer)).await?;
        let name = &self.info_of_pool(pool).name;
        loss.map_err(|error| refusal_of_cut(error, "pool", name, || self.loses_nothing(pool)))
    }

    /// The refusal to cut the power of a pool that has disks which cannot lose writes. Names these disks.
    fn loses_nothing(&self, pool: usize) -> Refusal {
        let pool = self.info_of_pool(pool);
        let disks = pool.members.iter().flatten().map(|disk| self.info(*disk));
        let durable = disks.filter(|disk| !disk.store.starts_with("lossy:"));
        let durable: Vec<&str> = durable.map(|disk| disk.name.as_str()).collect();
        let (name, durable) = (&pool.name, durable.join(", "));
        Refusal::conflict(format!(
            "pool '{name}' has disks that lose nothing in a power cut: {durable}"
        ))
        .remedy("give all of its disks a store lossy:ram or lossy:file:PATH")
    }
}

/// The refusal of a tunable, with the values in the words of a lab file.
fn refusal_of(error: &TunableError) -> Refusal {
    let refusal = |error: String| Refusal::new(RefusalKind::Unprocessable, error);
    match error {
        TunableError::Crossed { low, high } => {
            let words = |(tunable, value): (Tunable, u64)| {
                let info = tunable.info();
                (info.name, format_tunable(value, info.unit))
            };
            let ((low, less), (high, more)) = (words(*low), words(*high));
            refusal(format!(
                "{low} would be {less}, above {high}, which would be {more}"
            ))
            .remedy("set both at once")
        }
        other => refusal(other.to_string()),
    }
}
