//! Finds the medium that a table names: which store the disk has, and which name dashpot prints for the medium in
//! tables.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dashpot_rules::dm::{Extent, Medium, Table, Word};
use rustix::fs::{major, minor};

/// The store of the disk, and a table in which the medium has its canonical name.
pub(super) struct Resolved {
    pub(super) table: Table,
    pub(super) store: String,
}

/// Finds the medium of a table. The resolved table names a block device by its numbers, as dmsetup does. An
/// error names the word of the table that is at fault.
pub(super) fn resolve(table: &Table) -> anyhow::Result<Resolved> {
    let found = match table.medium() {
        None => {
            return Ok(Resolved {
                table: table.clone(),
                store: "null".to_owned(),
            });
        }
        Some(Medium::Ram(size)) => Ok(Found {
            medium: Medium::Ram(*size),
            store: RAM.to_owned(),
            extent: None,
        }),
        Some(Medium::Numbers(major, minor)) => of_numbers((*major, *minor)),
        Some(Medium::Path(path)) => of_path(path),
    };
    let found = found.map_err(|error| table.refuse(Word::Device, &format!("{error:#}")))?;
    if let Some(extent) = found.extent {
        table.check_fits(extent)?;
    }
    Ok(Resolved {
        table: table.clone().over(&found.medium),
        store: found.store,
    })
}

/// The medium that a word of a table names.
struct Found {
    medium: Medium,
    store: String,
    /// The size of the medium, and the size of its blocks; `None` if only the disk's daemon can find these
    /// out.
    extent: Option<Extent>,
}

fn of_path(path: &str) -> anyhow::Result<Found> {
    let found = fs::metadata(path).context("it cannot be used")?;
    let whole = whole(path)?;
    if found.file_type().is_block_device() {
        let numbers = (major(found.rdev()), minor(found.rdev()));
        return Ok(Found {
            medium: Medium::Numbers(numbers.0, numbers.1),
            store: format!("dev:{whole}"),
            extent: extent_of(numbers),
        });
    }
    if whole.contains(char::is_whitespace) {
        bail!("'{whole}' has a blank in it, which divides the words of a table: rename it");
    }
    let extent = found.is_file().then_some(Extent {
        sectors: found.len() / SECTOR,
        block: 1,
    });
    Ok(Found {
        medium: Medium::Path(whole.clone()),
        store: format!("file:{whole}"),
        extent,
    })
}

fn of_numbers(numbers: (u32, u32)) -> anyhow::Result<Found> {
    Ok(Found {
        medium: Medium::Numbers(numbers.0, numbers.1),
        store: node_of(numbers)?,
        extent: extent_of(numbers),
    })
}

/// The size of the block device with these numbers, and the size of its blocks. For a partition, only the
/// sysfs directory of the whole disk has the size of the blocks.
fn extent_of((major, minor): (u32, u32)) -> Option<Extent> {
    let device = Path::new("/sys/dev/block").join(format!("{major}:{minor}"));
    let number = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(device.join(name)).ok()?;
        text.trim_end().parse().ok()
    };
    let block = number("queue/logical_block_size");
    let block = block.or_else(|| number("../queue/logical_block_size"))?;
    Some(Extent {
        sectors: number("size")?,
        block: (block / SECTOR).max(1),
    })
}

/// The absolute path, without links.
fn whole(path: &str) -> anyhow::Result<String> {
    let whole = fs::canonicalize(path).context("it cannot be used")?;
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
const SECTOR: u64 = 512;
