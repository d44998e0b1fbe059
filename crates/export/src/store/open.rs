//! Opening the stores of all disks together: all of them or none, and nothing is changed before
//! the last of them is known to be sound.

use std::path::Path;
use std::sync::Arc;

use super::file::Request;
use super::{FileStore, Lossy, Ram, Store, StoreConfig, StoreError, memory};
use crate::config::DiskConfig;

/// An open store.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Store,
    /// The disk's size in bytes.
    pub(crate) size: u64,
}

/// Opens the stores of `disks`, in their order. With `overcommit`, RAM disks may be larger than
/// the memory there is.
pub(crate) fn open_all(disks: &[DiskConfig], overcommit: bool) -> Result<Vec<Opened>, StoreError> {
    let opened = disks
        .iter()
        .map(|disk| open(disk, &disk.store))
        .collect::<Result<Vec<_>, _>>()?;
    if !overcommit && let Some(available) = memory::available_memory() {
        memory::check_ram(ram_bytes(disks, &opened), available)?;
    }
    for (disk, opened) in disks.iter().zip(&opened) {
        adopt(disk, &disk.store, &opened.store)?;
    }
    Ok(opened)
}

fn open(disk: &DiskConfig, store: &StoreConfig) -> Result<Opened, StoreError> {
    let opened = match store {
        StoreConfig::Ram => sized(disk, store, Store::Ram(Ram::default()))?,
        StoreConfig::Null => sized(disk, store, Store::Null)?,
        StoreConfig::File(path) => {
            let (file, size) = FileStore::open(request(disk, path))?;
            Opened {
                store: Store::File(Arc::new(file)),
                size,
            }
        }
        StoreConfig::Lossy(inner) => {
            let Opened { store, size } = open(disk, inner)?;
            Opened {
                store: Store::Lossy(Box::new(Lossy::new(store, size))),
                size,
            }
        }
    };
    if opened.size == 0 {
        return Err(StoreError::Empty {
            disk: disk.name.clone(),
            store: store.clone(),
        });
    }
    Ok(opened)
}

fn sized(disk: &DiskConfig, config: &StoreConfig, store: Store) -> Result<Opened, StoreError> {
    match disk.size {
        Some(size) => Ok(Opened { store, size }),
        None => Err(StoreError::NoSize {
            disk: disk.name.clone(),
            store: config.clone(),
        }),
    }
}

fn adopt(disk: &DiskConfig, config: &StoreConfig, store: &Store) -> Result<(), StoreError> {
    match (config, store) {
        (StoreConfig::File(path), Store::File(file)) => file.adopt(request(disk, path)),
        (StoreConfig::Lossy(inner), Store::Lossy(lossy)) => adopt(disk, inner, lossy.inner()),
        _ => Ok(()),
    }
}

fn request<'a>(disk: &'a DiskConfig, path: &'a Path) -> Request<'a> {
    Request {
        disk: &disk.name,
        path,
        size: disk.size,
        read_only: disk.read_only,
    }
}

/// What all RAM disks together can come to take.
fn ram_bytes(disks: &[DiskConfig], opened: &[Opened]) -> u64 {
    let sizes = disks
        .iter()
        .zip(opened)
        .filter(|(disk, _)| in_ram(&disk.store));
    sizes.fold(0, |sum, (_, opened)| sum.saturating_add(opened.size))
}

fn in_ram(store: &StoreConfig) -> bool {
    match store {
        StoreConfig::Ram => true,
        StoreConfig::Null | StoreConfig::File(_) => false,
        StoreConfig::Lossy(inner) => in_ram(inner),
    }
}
