//! The exports of a shard, and the stores behind them.
//!
//! Today an export is a disk. Later a volume will be one, too: then several exports share the disks
//! of a pool. Therefore stores have a table of their own.

use std::sync::Arc;

use dashpot_engine::{ClientId, DiskId};

use super::clients::ClientTable;
use crate::export::{ExportId, ExportInfo, Served};
use crate::snapshot::ClientView;
use crate::store::Store;

/// The exports of a shard. The last one is the prober's.
pub(super) struct Exports {
    exports: Vec<Export>,
}

struct Export {
    info: ExportInfo,
    disk: DiskId,
    clients: ClientTable,
}

impl Exports {
    /// The exports, and the stores of their disks, which are in the order of the engine's disks.
    pub(super) fn new(served: Vec<Served>) -> (Exports, Stores) {
        let part = |served: Served| {
            let export = Export {
                info: served.info,
                disk: served.disk,
                clients: ClientTable::default(),
            };
            (export, served.store)
        };
        let (exports, stores) = served.into_iter().map(part).unzip();
        (Exports { exports }, Stores(stores))
    }

    pub(super) fn len(&self) -> usize {
        self.exports.len()
    }

    /// The prober's export. No client sees it.
    pub(super) fn probed(&self) -> ExportId {
        ExportId(self.exports.len() as u32 - 1)
    }

    /// The disks that clients can reach.
    pub(super) fn client_disks(&self) -> impl Iterator<Item = DiskId> {
        let (_, of_clients) = self.exports.split_last().unzip();
        let of_clients: &[Export] = of_clients.unwrap_or_default();
        of_clients.iter().map(|export| export.disk)
    }

    /// The export with this id, as clients see it, if there is one.
    pub(super) fn find(&self, id: ExportId) -> Option<&ExportInfo> {
        self.exports.get(id.0 as usize).map(|export| &export.info)
    }

    #[inline]
    pub(super) fn info(&self, id: ExportId) -> &ExportInfo {
        &self.exports[id.0 as usize].info
    }

    /// The disk behind an export.
    #[inline]
    pub(super) fn disk(&self, id: ExportId) -> DiskId {
        self.exports[id.0 as usize].disk
    }

    /// The exports of a disk.
    pub(super) fn of_disk(&self, disk: DiskId) -> impl Iterator<Item = ExportId> {
        let numbered = (0..).zip(&self.exports);
        let of_disk = numbered.filter(move |(_, export)| export.disk == disk);
        of_disk.map(|(at, _)| ExportId(at))
    }

    /// Whether the export of a disk refuses writes.
    pub(super) fn is_read_only(&self, disk: DiskId) -> bool {
        let mut exports = self.exports.iter();
        exports.any(|export| export.disk == disk && export.info.read_only)
    }

    /// Counts a connection. Answers its client, and whether that client is new.
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

/// The stores of a shard's disks.
pub(super) struct Stores(Vec<Store>);

impl Stores {
    #[inline]
    pub(super) fn of(&self, disk: DiskId) -> &Store {
        &self.0[disk.0 as usize]
    }

    #[inline]
    pub(super) fn of_mut(&mut self, disk: DiskId) -> &mut Store {
        &mut self.0[disk.0 as usize]
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (DiskId, &mut Store)> {
        let numbered = (0..).zip(&mut self.0);
        numbered.map(|(disk, store)| (DiskId(disk), store))
    }
}
