//! Opens block devices before the rest of a server starts, while the process still has root's rights.

use std::fs::File;
use std::sync::Arc;

use dashpot_rules::{DiskConfig, StoreConfig};

use super::open::DeviceRequest;
use crate::store::error::StoreError;

/// Open block devices, by the names of their disks.
#[derive(Clone, Debug, Default)]
pub struct OpenDevices(Vec<(String, Arc<File>)>);

impl OpenDevices {
    /// Opens the block devices of disks for this process alone. Changes nothing.
    pub fn open(disks: &[DiskConfig]) -> Result<OpenDevices, StoreError> {
        let open = |disk| {
            let request = DeviceRequest::of(disk, &disk.store)?;
            let opened = request.open_file();
            Some(opened.map(|device| (disk.name.clone(), Arc::new(device))))
        };
        let opened: Result<_, _> = disks.iter().filter_map(open).collect();
        opened.map(OpenDevices)
    }

    /// The device of a disk, if it is open.
    pub(in crate::store) fn of(&self, disk: &str) -> Option<Arc<File>> {
        let (_, device) = self.0.iter().find(|(name, _)| name == disk)?;
        Some(Arc::clone(device))
    }
}

impl<'a> DeviceRequest<'a> {
    /// The request to open a disk's block device; `None` for a disk whose bytes are not on one.
    fn of(disk: &'a DiskConfig, store: &'a StoreConfig) -> Option<DeviceRequest<'a>> {
        match store {
            StoreConfig::Device(path) => Some(DeviceRequest::new(disk, path)),
            StoreConfig::Lossy(inner) => DeviceRequest::of(disk, inner),
            StoreConfig::Ram | StoreConfig::Null | StoreConfig::File(_) | StoreConfig::Path(_) => {
                None
            }
        }
    }
}
