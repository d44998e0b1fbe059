//! Opens the stores of all disks together: all of them or none. This changes no file: the server
//! labels files last, when nothing else in its start can fail any more.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dashpot_rules::{DiskConfig, StoreConfig};

use super::any::Store;
use super::error::StoreError;
use super::file::FileStore;
use super::file::open::OpenRequest;
use super::lossy::Lossy;
use super::memory;
use super::ram::Ram;

/// An open store.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Store,
    /// The disk's size in bytes.
    pub(crate) size: u64,
}

/// Opens the stores of `disks`, in their order. With `overcommit`, RAM disks may be larger than the
/// available memory.
pub(crate) fn open_all(disks: &[DiskConfig], overcommit: bool) -> Result<Vec<Opened>, StoreError> {
    let opened = disks
        .iter()
        .map(|disk| open(disk, &disk.store))
        .collect::<Result<Vec<_>, _>>()?;
    if !overcommit && let Some(available) = memory::available_memory() {
        memory::check_ram(ram_bytes(disks, &opened), available)?;
    }
    Ok(opened)
}

/// A file to be labelled as its disk's.
#[derive(Debug)]
pub(crate) struct Adoption {
    disk: DiskConfig,
    path: PathBuf,
    file: Arc<FileStore>,
}

impl Adoption {
    /// The file of a disk to label, if its store is a file.
    pub(crate) fn of(disk: &DiskConfig, opened: &Opened) -> Option<Adoption> {
        let (path, file) = file_of(&disk.store, &opened.store)?;
        Some(Adoption {
            disk: disk.clone(),
            path: path.to_owned(),
            file: Arc::clone(file),
        })
    }

    /// Labels the file as this disk's.
    pub(crate) fn adopt(&self) -> Result<(), StoreError> {
        self.file.adopt(request(&self.disk, &self.path))
    }
}

fn file_of<'a>(
    config: &'a StoreConfig,
    store: &'a Store,
) -> Option<(&'a Path, &'a Arc<FileStore>)> {
    match (config, store) {
        (StoreConfig::File(path), Store::File(file)) => Some((path, file)),
        (StoreConfig::Lossy(inner), Store::Lossy(lossy)) => file_of(inner, lossy.inner()),
        _ => None,
    }
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

fn request<'a>(disk: &'a DiskConfig, path: &'a Path) -> OpenRequest<'a> {
    OpenRequest {
        disk: &disk.name,
        path,
        size: disk.size,
        read_only: disk.read_only,
    }
}

/// The most memory that all RAM disks together can take. Each takes memory in huge pages.
fn ram_bytes(disks: &[DiskConfig], opened: &[Opened]) -> u64 {
    let sizes = disks
        .iter()
        .zip(opened)
        .filter(|(disk, _)| in_ram(&disk.store));
    sizes.fold(0, |sum: u64, (_, opened)| {
        let pages = opened.size.div_ceil(HUGE_PAGE);
        sum.saturating_add(pages.saturating_mul(HUGE_PAGE))
    })
}

fn in_ram(store: &StoreConfig) -> bool {
    match store {
        StoreConfig::Ram => true,
        StoreConfig::Null | StoreConfig::File(_) => false,
        StoreConfig::Lossy(inner) => in_ram(inner),
    }
}

/// The smallest disk can take a whole huge page. This is the size on x86-64 and most others.
const HUGE_PAGE: u64 = 2 << 20;

#[cfg(test)]
mod tests {
    use super::{HUGE_PAGE, open, ram_bytes};
    use dashpot_rules::{DiskConfig, StoreConfig};

    #[test]
    fn a_small_ram_disk_counts_as_the_huge_page_that_it_takes() {
        let disks = [64 << 10, HUGE_PAGE, HUGE_PAGE + 1].map(|size| DiskConfig {
            name: "d".to_owned(),
            store: StoreConfig::Ram,
            size: Some(size),
            block: 1,
            read_only: false,
        });
        let opened = disks
            .each_ref()
            .map(|disk| open(disk, &disk.store).unwrap());
        assert_eq!(ram_bytes(&disks, &opened), 4 * HUGE_PAGE);
    }
}
