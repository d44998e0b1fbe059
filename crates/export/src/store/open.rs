//! Opens the stores of all disks together, all or none. Opening changes no file: the server labels files
//! later, when nothing else in its start can fail any more.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use dashpot_rules::{CallFiles, DiskConfig, StoreConfig};

use super::any::Store;
use super::device::{DeviceRequest, OpenDevice, OpenDevices};
use super::error::StoreError;
use super::file::FileStore;
use super::file::open::OpenRequest;
use super::lossy::{Lossy, SECTOR};
use super::memory;

/// An open store.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Store,
    /// The disk's size in bytes.
    pub(crate) size: u64,
    /// The disk's smallest read or write, in bytes.
    pub(crate) block: u32,
    /// The smallest write, in bytes, for which the medium need not read first, if it is known.
    pub(crate) physical: Option<u32>,
    /// Whether the disk refuses writes.
    pub(crate) read_only: bool,
    /// The files that the disk follows: a program's calls on them are the disk's zios.
    pub(crate) followed: Option<CallFiles>,
}

impl Opened {
    /// An open store without a block size of its own. The disk has the block size of its configuration.
    fn new(disk: &DiskConfig, store: Store, size: u64) -> Opened {
        Opened {
            store,
            size,
            block: disk.block,
            physical: None,
            read_only: disk.read_only,
            followed: None,
        }
    }
}

/// Opens the stores of `disks`, in their order. Takes block devices from `devices`, or opens them. With
/// `overcommit`, RAM disks may be larger than the available memory.
pub(crate) fn open_all(
    disks: &[DiskConfig],
    devices: &OpenDevices,
    overcommit: bool,
) -> Result<Vec<Opened>, StoreError> {
    let opened = disks
        .iter()
        .map(|disk| open(disk, &disk.store, devices))
        .collect::<Result<Vec<_>, _>>()?;
    if !overcommit && let Some(available) = memory::available_memory() {
        memory::check_ram(ram_bytes(disks, &opened), available)?;
    }
    Ok(opened)
}

/// A file that is to be labelled with the name of its disk.
#[derive(Debug)]
pub(crate) struct Adoption {
    disk: DiskConfig,
    path: PathBuf,
    file: Arc<FileStore>,
}

impl Adoption {
    /// Prepares to label the file of a disk. `None` if the disk's store is not in a file.
    pub(crate) fn of(disk: &DiskConfig, opened: &Opened) -> Option<Adoption> {
        let (path, file) = file_of(&disk.store, &opened.store)?;
        Some(Adoption {
            disk: disk.clone(),
            path: path.to_owned(),
            file: Arc::clone(file),
        })
    }

    /// Labels the file with the name of its disk.
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

fn open(
    disk: &DiskConfig,
    store: &StoreConfig,
    devices: &OpenDevices,
) -> Result<Opened, StoreError> {
    let opened = match store {
        StoreConfig::Ram => sized(disk, store, Store::Ram(Box::default()))?,
        StoreConfig::Null => sized(disk, store, Store::Null)?,
        StoreConfig::File(path) => {
            let (file, size) = FileStore::open(request(disk, path))?;
            Opened::new(disk, Store::File(Arc::new(file)), size)
        }
        StoreConfig::Device(path) => {
            on_device(DeviceRequest::new(disk, path).open(devices.of(&disk.name))?)
        }
        StoreConfig::Path(files) => return followed(disk, files),
        StoreConfig::Lossy(inner) => {
            let inner = open(disk, inner, devices)?;
            check_sectors(disk, store, &inner)?;
            Opened {
                store: Store::Lossy(Box::new(Lossy::new(inner.store, inner.size))),
                ..inner
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

/// Opens a disk that has no bytes of its own: its zios are a program's calls on `files`.
fn followed(disk: &DiskConfig, files: &CallFiles) -> Result<Opened, StoreError> {
    let path = &files.path;
    let (base, glob) = match path.try_exists() {
        Ok(false) => split_glob(path),
        _ => (path.clone(), None),
    };
    let found = fs::canonicalize(&base).and_then(|path| Ok((fs::metadata(&path)?.is_dir(), path)));
    let why = match found {
        Ok((true, directory)) => {
            return Ok(Opened {
                followed: Some(CallFiles {
                    glob: glob.map(|glob| directory.join(glob)),
                    path: directory,
                    types: files.types,
                }),
                ..Opened::new(disk, Store::Null, 0)
            });
        }
        Ok((false, _)) => "it is no directory; name the directory that has the files".to_owned(),
        Err(error) => format!("{error}; name a directory that exists, and that dashpot may reach"),
    };
    Err(StoreError::Directory {
        disk: disk.name.clone(),
        path: base,
        why,
    })
}

/// Splits a path before its first part that contains `*`, `?` or `[` and is not itself the name of a
/// directory.
fn split_glob(path: &Path) -> (PathBuf, Option<PathBuf>) {
    let parts: Vec<Component<'_>> = path.components().collect();
    let is_glob = |at: &usize| {
        let part = parts[*at].as_os_str().as_encoded_bytes();
        let has_wildcard = part.iter().any(|byte| b"*?[".contains(byte));
        has_wildcard && !parts[..=*at].iter().collect::<PathBuf>().is_dir()
    };
    let Some(at) = (0..parts.len()).find(is_glob) else {
        return (path.to_owned(), None);
    };
    let (base, glob) = parts.split_at(at);
    let base: PathBuf = match base {
        [] => PathBuf::from("."),
        base => base.iter().collect(),
    };
    (base, Some(glob.iter().collect()))
}

fn sized(disk: &DiskConfig, config: &StoreConfig, store: Store) -> Result<Opened, StoreError> {
    match disk.size {
        Some(size) => Ok(Opened::new(disk, store, size)),
        None => Err(StoreError::NoSize {
            disk: disk.name.clone(),
            store: config.clone(),
        }),
    }
}

/// Refuses a lossy cache on a device whose blocks are larger than a sector, because direct I/O cannot write
/// single sectors to it.
fn check_sectors(disk: &DiskConfig, store: &StoreConfig, inner: &Opened) -> Result<(), StoreError> {
    if inner.store.device().is_none() || u64::from(inner.block) <= SECTOR {
        return Ok(());
    }
    Err(StoreError::LossyBlocks {
        disk: disk.name.clone(),
        store: store.clone(),
        block: inner.block,
    })
}

fn on_device(open: OpenDevice) -> Opened {
    Opened {
        store: Store::Device(Arc::new(open.store)),
        size: open.size,
        block: open.block,
        physical: Some(open.physical),
        read_only: open.read_only,
        followed: None,
    }
}

fn request<'a>(disk: &'a DiskConfig, path: &'a Path) -> OpenRequest<'a> {
    OpenRequest {
        disk: &disk.name,
        path,
        size: disk.size,
        offset: disk.offset,
        read_only: disk.read_only,
    }
}

/// How much memory all RAM disks together can take. Each disk takes memory in huge pages.
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
        StoreConfig::Null
        | StoreConfig::File(_)
        | StoreConfig::Device(_)
        | StoreConfig::Path(_) => false,
        StoreConfig::Lossy(inner) => in_ram(inner),
    }
}

/// The size of a huge page on x86-64 and most other machines. Even the smallest disk can take a whole
/// huge page.
const HUGE_PAGE: u64 = 2 << 20;

#[cfg(test)]
mod tests {
    use super::{HUGE_PAGE, OpenDevices, open, ram_bytes};
    use dashpot_rules::{DiskConfig, StoreConfig};

    #[test]
    fn a_small_ram_disk_counts_as_the_huge_page_that_it_takes() {
        let disks = [64 << 10, HUGE_PAGE, HUGE_PAGE + 1].map(|size| DiskConfig {
            name: "d".to_owned(),
            store: StoreConfig::Ram,
            size: Some(size),
            offset: 0,
            block: 1,
            read_only: false,
            rotational: false,
        });
        let opened = disks
            .each_ref()
            .map(|disk| open(disk, &disk.store, &OpenDevices::default()).unwrap());
        assert_eq!(ram_bytes(&disks, &opened), 4 * HUGE_PAGE);
    }
}
