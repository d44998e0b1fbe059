//! A loop device over the file of a disk.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use rustix::fs::{major, minor};

use super::sysfs::{self, Before, attribute};

/// A loop device. Dropping it frees the device, unless it was [kept](LoopDevice::keep).
#[derive(Debug)]
pub(super) struct LoopDevice {
    node: String,
    /// The changed settings, with their former values.
    before: Before,
    kept: bool,
}

/// The properties of a new loop device.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) file: &'a Path,
    pub(super) sector: u32,
    pub(super) read_only: bool,
}

/// The node of a free loop device.
pub(super) fn free_node() -> anyhow::Result<String> {
    let node = losetup(&["--find"])?;
    Ok(node.trim().to_owned())
}

impl LoopDevice {
    /// Makes a device from a file. `None` if another program has taken the node.
    pub(super) fn new(node: &str, wanted: &Wanted<'_>) -> anyhow::Result<Option<LoopDevice>> {
        // Kernels such as 6.12 take the size of the device from what they remember of the file, and
        // have asked for nothing yet. The device would have 0 bytes.
        fs::metadata(wanted.file).context("the daemon does not say the size of the disk")?;
        let (file, sector) = (wanted.file.to_string_lossy(), wanted.sector.to_string());
        let mut words = vec!["--direct-io=on", "--sector-size", &sector];
        if wanted.read_only {
            words.push("--read-only");
        }
        words.extend([node, &file]);
        let made = losetup(&words);
        if backing_file(node).as_deref() != Some(wanted.file) {
            // Another program has taken it, or there is an error to report.
            return match backing_file(node) {
                Some(_) => Ok(None),
                None => made.and_then(|_| bail!("{node} did not become a loop device")),
            };
        }
        let mut device = LoopDevice {
            node: node.to_owned(),
            before: Vec::new(),
            kept: false,
        };
        made?;
        device.require_direct_io()?;
        sysfs::change(&device.node, &SETTINGS, &mut device.before)?;
        Ok(Some(device))
    }

    /// Without direct I/O, requests would arrive one at a time.
    fn require_direct_io(&self) -> anyhow::Result<()> {
        let dio = attribute(&self.node, "loop/dio");
        if dio.as_deref() != Some("1") {
            bail!(
                "{}: the kernel does no direct I/O for this loop device, so one request at a time would arrive: nothing is attached",
                self.node
            );
        }
        Ok(())
    }

    /// The changed settings, with their former values.
    pub(super) fn before(&self) -> &[(String, String)] {
        &self.before
    }

    /// Leaves it in place.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if !self.kept {
            // `detach --stale` finds whatever fails here.
            let _ = free(&self.node, &self.before);
        }
    }
}

/// Frees a loop device, and restores its settings. If another program has opened the node since the
/// caller looked, the device stays until that program closes it.
pub(super) fn free(node: &str, before: &[(String, String)]) -> anyhow::Result<()> {
    losetup(&["--detach", node])?;
    sysfs::restore(node, before);
    Ok(())
}

/// The file behind a node, if it is a loop device that has one.
pub(super) fn backing_file(node: &str) -> Option<PathBuf> {
    attribute(node, "loop/backing_file").map(PathBuf::from)
}

/// The numbers of a block device.
pub(super) fn numbers(node: &str) -> Option<(u32, u32)> {
    let found = fs::metadata(node).ok()?;
    let number = found.rdev();
    let is_block = found.file_type().is_block_device();
    is_block.then(|| (major(number), minor(number)))
}

/// Runs `losetup`, of util-linux.
fn losetup(words: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("losetup");
    let done = command.args(words).stdin(Stdio::null()).output();
    let done =
        done.context("losetup cannot be run: install the package that has it (Debian: mount)")?;
    if !done.status.success() {
        bail!("{}", String::from_utf8_lossy(&done.stderr).trim_end());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// A request is at most one FUSE message, so that it becomes one I/O of the disk. No scheduler
/// changes the order, and the disk does not rotate.
const SETTINGS: [(&str, &str); 4] = [
    ("queue/max_sectors_kb", "1024"),
    ("queue/scheduler", "none"),
    ("queue/rotational", "0"),
    // The most requests that a loop device can have. A former user may have lowered the number.
    ("queue/nr_requests", "128"),
];
