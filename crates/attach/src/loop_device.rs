//! A loop device over the file of a disk.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::sysfs::{self, Before, attribute};
use crate::tool;

/// The properties of a new loop device.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) file: &'a Path,
    pub(crate) sector: u32,
    pub(crate) read_only: bool,
}

/// The node of a free loop device.
pub(crate) fn free_node() -> anyhow::Result<String> {
    let found = losetup(&["--find"], || {});
    let found = found.context("no loop device is free; 'losetup --list' lists those in use")?;
    let node = found.trim().to_owned();
    if Path::new(&node).exists() {
        return Ok(node);
    }
    let numbers = attribute(&node, "dev").unwrap_or_default();
    bail!(
        "{node} is free, but has no node here: start the container with the host's /dev (docker run --privileged -v /dev:/dev), or make the node: mknod {node} b {}",
        numbers.replace(':', " ")
    )
}

/// Makes a device from a file. Returns false if another program has taken the node. The kernel flushes the
/// file; until it has done so, this function keeps calling `waits`.
pub(crate) fn make(node: &str, wanted: &Wanted<'_>, waits: impl FnMut()) -> anyhow::Result<bool> {
    // Kernels such as 6.12 take the size of the device from the cached attributes of the file.
    // Without this call, the kernel would not have asked the daemon for any attributes yet, and the device
    // would have 0 bytes.
    fs::metadata(wanted.file).context("the daemon does not say the size of the disk")?;
    let (file, sector) = (wanted.file.to_string_lossy(), wanted.sector.to_string());
    let mut words = vec!["--direct-io=on", "--sector-size", &sector];
    if wanted.read_only {
        words.push("--read-only");
    }
    words.extend([node, &file]);
    let made = losetup(&words, waits);
    match (backing_file(node), made) {
        (Some(found), Ok(_)) if found == wanted.file => Ok(true),
        (Some(found), Err(error)) if found == wanted.file => {
            // If this fails, too, `detach --stale` finds the device.
            let _ = free(node);
            Err(error)
        }
        (Some(_), _) => Ok(false),
        (None, Err(error)) => Err(error),
        (None, Ok(_)) => {
            free(node)?;
            bail!(
                "{node}: this process cannot see the file of the loop device in /sys: mount sysfs there"
            )
        }
    }
}

/// Changes the settings of a new device. First gives the former values to `note`.
pub(crate) fn configure(
    node: &str,
    note: impl FnOnce(Before) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    // Without direct I/O, requests would arrive one at a time.
    if attribute(node, "loop/dio").as_deref() != Some("1") {
        bail!(
            "{node}: the kernel does no direct I/O for this loop device, so one request at a time would arrive: nothing is attached"
        );
    }
    sysfs::change(node, &[&[REQUEST], &sysfs::QUEUE[..]].concat(), note)
}

/// Frees a loop device. If another program has opened the node since the caller checked, the device stays
/// until that program closes it.
pub(crate) fn free(node: &str) -> anyhow::Result<()> {
    losetup(&["--detach", node], || {}).map(drop)
}

/// The file behind a node, if the node is a loop device with a file.
pub(crate) fn backing_file(node: &str) -> Option<PathBuf> {
    attribute(node, "loop/backing_file").map(PathBuf::from)
}

/// Runs util-linux's `losetup`, and calls `waits` again and again until losetup has ended.
fn losetup(words: &[&str], mut waits: impl FnMut()) -> anyhow::Result<String> {
    // Never kill losetup, because a loop device that it has made would have no owner. `waits` can end the I/O
    // that losetup waits for.
    let never_gives_up = || {
        waits();
        false
    };
    tool::run(tool::program("losetup").args(words), never_gives_up)
}

/// The setting that limits a request to the size of one FUSE message, so that each request becomes one I/O of
/// the disk.
const REQUEST: (&str, &str) = ("queue/max_sectors_kb", "1024");
