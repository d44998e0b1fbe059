//! The medium behind a table: the store of the disk, and the name that tables print for it.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

use anyhow::{Context, bail};
use dashpot_rules::dm::{Medium, Table};
use rustix::fs::{major, minor};

/// A table whose medium has one name, and the store of its disk.
pub(super) struct Resolved {
    pub(super) table: Table,
    pub(super) store: String,
}

/// Finds the medium of a table. As in dmsetup, a block device is then known by its numbers.
pub(super) fn resolve(table: &Table) -> anyhow::Result<Resolved> {
    let table = table.clone();
    let (medium, store) = match table.medium() {
        None => {
            return Ok(Resolved {
                table,
                store: "null".to_owned(),
            });
        }
        Some(Medium::Ram(size)) => (Medium::Ram(*size), RAM.to_owned()),
        Some(Medium::Numbers(major, minor)) => {
            let numbers = (*major, *minor);
            (Medium::Numbers(numbers.0, numbers.1), node_of(numbers)?)
        }
        Some(Medium::Path(path)) => of_path(path)?,
    };
    Ok(Resolved {
        table: table.over(&medium),
        store,
    })
}

fn of_path(path: &str) -> anyhow::Result<(Medium, String)> {
    let found = fs::metadata(path).with_context(|| format!("{path} cannot be used"))?;
    if found.file_type().is_block_device() {
        let number = found.rdev();
        let medium = Medium::Numbers(major(number), minor(number));
        return Ok((medium, format!("dev:{}", whole(path)?)));
    }
    let path = whole(path)?;
    if path.contains(char::is_whitespace) {
        bail!("'{path}' has a blank in it, which divides the words of a table: rename it");
    }
    Ok((Medium::Path(path.clone()), format!("file:{path}")))
}

/// The path without links, from the root.
fn whole(path: &str) -> anyhow::Result<String> {
    let whole = fs::canonicalize(path).with_context(|| format!("{path} cannot be used"))?;
    let whole = whole.into_os_string().into_string();
    whole.map_err(|path| {
        anyhow::anyhow!("{} is not UTF-8: rename it", PathBuf::from(path).display())
    })
}

/// The store on the block device with these numbers.
fn node_of((major, minor): (u32, u32)) -> anyhow::Result<String> {
    let attributes = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/uevent"));
    let attributes = attributes.unwrap_or_default();
    let name = attributes
        .lines()
        .find_map(|line| line.strip_prefix("DEVNAME="));
    match name {
        Some(name) => Ok(format!("dev:/dev/{name}")),
        None => bail!("there is no block device {major}:{minor}: `lsblk` shows numbers and names"),
    }
}

/// The store of a disk in memory.
pub(super) const RAM: &str = "ram";
