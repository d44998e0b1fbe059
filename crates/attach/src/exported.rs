//! A disk or a volume that becomes a block device, as its daemon describes it.

use anyhow::{anyhow, bail};
use dashpot_api::{Client, Disk, LayerWord, Pool, Status, Volume};
use dashpot_rules::{format_size, remedy_for};

use crate::place::{Served, words};

/// A disk or a volume that the daemon can serve to the kernel.
pub(crate) struct Exported {
    pub(crate) layer: LayerWord,
    pub(crate) name: String,
    pub(crate) served: Served,
    /// The block size, as far as the daemon knows it: for a smaller write, the rest of the block must be read
    /// first. Only a ublk device passes this size on to the kernel.
    #[cfg_attr(not(feature = "ublk"), expect(dead_code))]
    pub(crate) block: u32,
    /// Whether reads may now wait for a long time, because of rules or because a disk is suspended.
    pub(crate) may_hold_reads: bool,
}

impl Exported {
    /// Asks the daemon for the disk or the volume with this name.
    pub(crate) fn find(client: &Client, name: &str) -> anyhow::Result<Exported> {
        let status = client.status(0)?;
        if let Some(volume) = status.volumes.iter().find(|volume| volume.name == name) {
            return Exported::of_volume(volume, &status);
        }
        match status.disks.iter().find(|disk| disk.name == name) {
            Some(disk) => Exported::of_disk(disk, &status),
            None => Err(unknown(name, &status)),
        }
    }

    fn of_disk(disk: &Disk, status: &Status) -> anyhow::Result<Exported> {
        let name = &disk.name;
        if let Some(pool) = status
            .pools
            .iter()
            .find(|it| Some(&it.name) == disk.pool.as_ref())
        {
            bail!(
                "disk '{name}' belongs to pool '{}': {}",
                pool.name,
                volumes_of(pool)
            );
        }
        if disk.store.starts_with(FILES) {
            bail!("disk '{name}' is the files of a program, and cannot be a block device");
        }
        Ok(Exported {
            layer: LayerWord::Disk,
            name: name.clone(),
            served: Served {
                store_id: disk.store_id.clone(),
                size: disk.size_bytes,
                sector: sector(disk)?,
                read_only: disk.read_only,
            },
            block: disk.block_bytes,
            may_hold_reads: holds(disk),
        })
    }

    fn of_volume(volume: &Volume, status: &Status) -> anyhow::Result<Exported> {
        let pool = status.pools.iter().find(|pool| pool.name == volume.pool);
        let members: Vec<&String> = pool
            .iter()
            .flat_map(|pool| pool.members.iter().flatten())
            .collect();
        let mut disks = status.disks.iter();
        Ok(Exported {
            layer: LayerWord::Volume,
            name: volume.name.clone(),
            served: Served {
                store_id: volume.store_id.clone(),
                size: volume.size_bytes,
                // A volume accepts writes that are smaller than its blocks, as a zvol of ZFS does.
                sector: SECTOR_MIN,
                read_only: false,
            },
            block: volume.block_bytes,
            may_hold_reads: disks.any(|disk| members.contains(&&disk.name) && holds(disk)),
        })
    }

    /// The layer and the name by which the daemon finds this disk or volume.
    pub(crate) fn key(&self) -> (LayerWord, &str) {
        (self.layer, &self.name)
    }

    /// How a message names this disk or volume: `disk 'd'` or `volume 'tank/v'`.
    pub(crate) fn words(&self) -> String {
        words(self.layer, &self.name)
    }
}

/// Whether rules or a suspension may hold reads of a disk.
fn holds(disk: &Disk) -> bool {
    disk.rules > 0 || disk.suspended.is_some()
}

/// The sector size of a disk's block device.
fn sector(disk: &Disk) -> anyhow::Result<u32> {
    let (name, size) = (&disk.name, disk.size_bytes);
    let sector = disk.block_bytes.max(SECTOR_MIN);
    if sector > SECTOR_MAX {
        let block = format_size(disk.block_bytes.into());
        bail!(
            "disk '{name}' has blocks of {block}, and the blocks of a Linux block device have at most 4K: give the disk block=4K"
        );
    }
    if size == 0 || !size.is_multiple_of(sector.into()) {
        bail!(
            "disk '{name}' has {size} bytes, and a block device has whole sectors of {sector}: give it another size"
        );
    }
    Ok(sector)
}

/// The error for a name that is neither a disk nor a volume, with the remedy.
fn unknown(name: &str, status: &Status) -> anyhow::Error {
    if let Some(pool) = status.pools.iter().find(|pool| pool.name == name) {
        return anyhow!("'{name}' is a pool: {}", volumes_of(pool));
    }
    let lone = status.disks.iter().filter(|disk| disk.pool.is_none());
    let volumes = status.volumes.iter().map(|volume| volume.name.as_str());
    let known: Vec<&str> = lone.map(|disk| disk.name.as_str()).chain(volumes).collect();
    let remedy = remedy_for(name, &known);
    anyhow!("no disk or volume '{}': {remedy}", name.escape_debug())
}

/// The remedy if the user has named a pool instead of a disk or a volume.
fn volumes_of(pool: &Pool) -> String {
    match pool.volumes.as_slice() {
        [] => "give it a volume, and name that".to_owned(),
        volumes => format!("name a volume of the pool ({})", volumes.join(", ")),
    }
}

/// The beginning of the description of a store that serves a program's calls on files.
const FILES: &str = "path:";
/// The smallest sector size that all kinds of devices can have, in bytes.
const SECTOR_MIN: u32 = 512;
/// The largest sector size that all kinds of devices can have, in bytes.
const SECTOR_MAX: u32 = 4096;
