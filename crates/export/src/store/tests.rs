//! Tests every store against a naive store, which is a vector of bytes, and tests that unsuitable files are
//! refused.

mod bad_files;
mod cuts;
mod model;
mod told;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use dashpot_rules::{DiskConfig, StoreConfig};
use tempfile::TempDir;

use super::{FileStore, OpenDevices, Opened, Store, StoreError, open_all};

fn disk(name: &str, store: StoreConfig, size: Option<u64>) -> DiskConfig {
    DiskConfig {
        name: name.to_owned(),
        store,
        size,
        offset: 0,
        block: 1,
        read_only: false,
        rotational: false,
    }
}

fn file(name: &str, path: &Path) -> DiskConfig {
    disk(name, StoreConfig::File(path.to_path_buf()), None)
}

fn open_one(disk: DiskConfig) -> Result<Opened, StoreError> {
    let mut all = open_all(&[disk], &OpenDevices::default(), false)?;
    Ok(all.remove(0))
}

/// A directory with a file `d0.img` of this many zeroes.
fn directory_of(length: u64) -> (TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d0.img");
    File::create(&path).unwrap().set_len(length).unwrap();
    (directory, path)
}

pub(super) fn file_of(length: u64) -> (TempDir, Arc<FileStore>) {
    let (directory, path) = directory_of(length);
    let opened = open_one(file("d0", &path)).unwrap();
    match opened.store {
        Store::File(file) => (directory, file),
        other => panic!("{other:?} is not a file"),
    }
}
