//! The exports of a shard, and the stores of its disks.
//!
//! Behind each export is a device of the engine. A disk has a store that does its work. A volume has no
//! store: the disks of its pool do its work, and other volumes may use the same pool. Therefore the stores
//! have their own table, which has a row for each disk and not for each export.

use std::sync::Arc;

use dashpot_engine::{ClientId, Device, DiskId};

use super::clients::ClientTable;
use crate::export::{ExportId, ExportInfo, Served};
use crate::snapshot::ClientView;
use crate::store::{Attempt, Lossy, Store};

/// The exports of a shard. The last export is the prober's.
pub(super) struct Exports {
    exports: Vec<Export>,
}

struct Export {
    info: ExportInfo,
    device: Device,
    clients: ClientTable,
}

impl Exports {
    pub(super) fn new(served: Vec<Served>) -> Exports {
        let export = |served: Served| Export {
            info: served.info,
            device: served.device,
            clients: ClientTable::default(),
        };
        Exports {
            exports: served.into_iter().map(export).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.exports.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ExportId> + use<> {
        (0..self.exports.len() as u32).map(ExportId)
    }

    /// The prober's export. No client sees it.
    pub(super) fn probed(&self) -> ExportId {
        ExportId(self.exports.len() as u32 - 1)
    }

    /// The export with this id, as clients see it. `None` if there is no such export.
    pub(super) fn find(&self, id: ExportId) -> Option<&ExportInfo> {
        self.exports.get(id.0 as usize).map(|export| &export.info)
    }

    #[inline]
    pub(super) fn info(&self, id: ExportId) -> &ExportInfo {
        &self.exports[id.0 as usize].info
    }

    /// The device behind an export.
    #[inline]
    pub(super) fn device(&self, id: ExportId) -> Device {
        self.exports[id.0 as usize].device
    }

    /// The export of a device. `None` for a disk of a pool.
    pub(super) fn of(&self, device: Device) -> Option<ExportId> {
        let mut devices = self.exports.iter().map(|export| export.device);
        let at = devices.position(|other| other == device)?;
        Some(ExportId(at as u32))
    }

    /// Whether the export of a disk refuses writes.
    pub(super) fn is_read_only(&self, disk: DiskId) -> bool {
        let export = self.of(Device::Disk(disk));
        export.is_some_and(|export| self.info(export).read_only)
    }

    /// Counts a new connection. Returns its client, and whether that client is new.
    pub(super) fn connect(&mut self, id: ExportId, peer: &str) -> (ClientId, bool) {
        self.exports[id.0 as usize].clients.connect(peer)
    }

    pub(super) fn disconnect(&mut self, id: ExportId, client: ClientId) {
        self.exports[id.0 as usize].clients.disconnect(client);
    }

    pub(super) fn client_name(&self, id: ExportId, client: ClientId) -> Arc<str> {
        self.exports[id.0 as usize].clients.name(client)
    }

    pub(super) fn clients(&self, id: ExportId) -> Vec<ClientView> {
        self.exports[id.0 as usize].clients.views()
    }
}

/// The stores of a shard's disks, in the engine's order. The last is the prober's.
#[derive(Debug)]
pub(super) struct Stores(Vec<Store>);

impl Stores {
    pub(super) fn new(stores: Vec<Store>) -> Stores {
        Stores(stores)
    }

    /// The store that does the work of a disk. `None` for a volume.
    #[inline]
    pub(super) fn of(&self, device: Device) -> Option<&Store> {
        match device {
            Device::Disk(disk) => self.0.get(disk.0 as usize),
            Device::Volume(_) => None,
        }
    }

    #[inline]
    pub(super) fn of_mut(&mut self, device: Device) -> Option<&mut Store> {
        match device {
            Device::Disk(disk) => self.0.get_mut(disk.0 as usize),
            Device::Volume(_) => None,
        }
    }

    /// The store of a disk that can lose writes. `None` for other stores.
    #[inline]
    pub(super) fn lossy(&mut self, device: Device) -> Option<(DiskId, &mut Lossy<Store>)> {
        let Device::Disk(disk) = device else {
            return None;
        };
        let lossy = self.0.get_mut(disk.0 as usize)?.lossy_mut()?;
        Some((disk, lossy))
    }

    /// Whether the power of a device's store can be cut.
    pub(super) fn lose(&self, device: Device) -> bool {
        self.of(device).is_some_and(Store::loses)
    }

    /// Whether worker threads work for a lossy store.
    pub(super) fn are_at_medium(&mut self) -> bool {
        let mut lossy = self.0.iter_mut().filter_map(Store::lossy_mut);
        lossy.any(|lossy| lossy.is_at_medium())
    }

    /// Reads from a store in memory. This never fails.
    pub(super) fn read_in_memory(&self, disk: DiskId, offset: u64, into: &mut [u8]) {
        if let Some(store) = self.of(Device::Disk(disk)) {
            let attempt = store.read(offset, into);
            debug_assert_eq!(attempt, Attempt::Done(Ok(())));
        }
    }

    /// Writes to a store in memory. This never fails.
    pub(super) fn write_in_memory(&mut self, disk: DiskId, offset: u64, from: &[u8]) {
        if let Some(store) = self.of_mut(Device::Disk(disk)) {
            let attempt = store.write(offset, from, false);
            debug_assert_eq!(attempt, Attempt::Done(Ok(())));
        }
    }

    /// The disks, without the prober's disk.
    pub(super) fn disks(&self) -> impl Iterator<Item = DiskId> + use<> {
        let probed = self.0.len().saturating_sub(1) as u32;
        (0..probed).map(DiskId)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (DiskId, &mut Store)> {
        let numbered = (0..).zip(&mut self.0);
        numbered.map(|(disk, store)| (DiskId(disk), store))
    }
}
