//! Makes a file system on a block device, mounts it, and unmounts it with the device.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use dashpot_export::store::{device_file_users, device_is_on_top, device_mounts};

use super::kinds;
use super::place::{self, Record};
use super::sysfs::attribute;
use super::tool;
use crate::cli::FileSystem;

/// Makes a file system on a node. Never overwrites an existing file system.
pub(super) fn make(
    node: &str,
    kind: &FileSystem,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    if let Some(found) = found_on(node, is_stopped)? {
        bail!(
            "--mkfs: the disk has data on it already ({found}): leave --mkfs out, or remove it with 'wipefs -a {node}' after 'dashpot attach'"
        );
    }
    kinds::check_made(kind)?;
    tool::run(kinds::maker(kind).arg(node), is_stopped).map(drop)
}

/// The content of a node, in blkid's words. Fails if the content cannot be known: nothing may be written over
/// it.
pub(super) fn found_on(
    node: &str,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<Option<String>> {
    // blkid treats what it cannot read as empty. So make sure that both ends can be read; blkid then finds
    // them in the page cache.
    read_ends(node, is_stopped).context(
        "the disk cannot be read, so it may have data: clear the rules that fail its reads",
    )?;
    let tags = ["-p", "-o", "value", "-s", "TYPE", "-s", "PTTYPE", node];
    let mut command = Command::new("blkid");
    let done = tool::output(command.args(tags), is_stopped)?;
    match done.status.code() {
        Some(0) => Ok(Some(
            String::from_utf8_lossy(&done.stdout).trim().to_owned(),
        )),
        Some(NOTHING_FOUND) => Ok(None),
        _ => {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            bail!("the disk has data of several kinds, or blkid has failed: {said}")
        }
    }
}

/// Reads the beginning and the end of a node, where file systems and partition tables have their signatures.
fn read_ends(node: &str, is_stopped: &dyn Fn() -> bool) -> anyhow::Result<()> {
    let sectors = attribute(node, "size").and_then(|sectors| sectors.parse::<u64>().ok());
    let size = sectors.context("its size is unknown")? * 512;
    for start in [0, size.saturating_sub(END_BYTES)] {
        let mut command = Command::new("dd");
        command.args([
            &format!("if={node}"),
            "of=/dev/null",
            "bs=64K",
            "status=none",
        ]);
        command.args(["iflag=skip_bytes,count_bytes", &format!("skip={start}")]);
        tool::run(command.arg(format!("count={END_BYTES}")), is_stopped)?;
    }
    Ok(())
}

/// The whole path of a directory to mount at.
pub(super) fn directory(at: &Path) -> anyhow::Result<PathBuf> {
    let whole = at.canonicalize();
    let whole =
        whole.with_context(|| format!("cannot mount at {}: make it first", at.display()))?;
    match whole.is_dir() {
        true => Ok(whole),
        false => bail!("cannot mount at {}: it is not a directory", at.display()),
    }
}

/// Refuses a directory where another attached disk is mounted: unmounting removes the topmost mount,
/// whichever disk the caller means.
pub(super) fn check_free(at: &Path) -> anyhow::Result<()> {
    let whole = directory(at)?;
    for (_, record) in place::records() {
        let node = &record.node;
        if record.mounted.as_ref() == Some(&whole) && is_mounted(node, &whole) {
            bail!(
                "cannot mount at {}: {node} ({}) is mounted there: 'dashpot detach {node}' unmounts it",
                at.display(),
                record.words()
            );
        }
    }
    Ok(())
}

/// Mounts the file system of a node. From now on, `detach` unmounts the file system.
pub(super) fn mount(
    node: &str,
    at: &Path,
    kind: Option<&FileSystem>,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    let at = directory(at)?;
    // Record the mount before mounting: `detach` would miss an unrecorded mount.
    place::change(node, |record| record.mounted = Some(at.clone()))?;
    mount_noted(node, &at, kind, is_stopped)
}

/// Mounts the file system of a node at the directory in its record, which the caller may have locked.
pub(super) fn mount_noted(
    node: &str,
    at: &Path,
    kind: Option<&FileSystem>,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    let mut command = Command::new("mount");
    if let Some(kind) = kind {
        command.args(["-t", kind.name()]);
    }
    tool::run(command.arg(node).arg(at), is_stopped).map(drop)
}

/// Whether a node is mounted at a directory.
pub(super) fn is_mounted(node: &str, at: &Path) -> bool {
    let at = at.canonicalize().ok();
    at.is_some_and(|at| device_mounts(node).contains(&at))
}

/// Unmounts the file system if dashpot has mounted it.
pub(super) fn unmount(record: &Record, is_stopped: &dyn Fn() -> bool) -> anyhow::Result<()> {
    let Some(at) = &record.mounted else {
        return Ok(());
    };
    if !is_mounted(&record.node, at) {
        return Ok(());
    }
    if !device_is_on_top(&record.node, at) {
        let at = at.display();
        bail!("another file system covers it at {at}: unmount that one first");
    }
    let unmounted = tool::run(Command::new("umount").arg(at), is_stopped);
    let users = match &unmounted {
        Err(_) if !is_stopped() => device_file_users(&record.node),
        _ => Vec::new(),
    };
    if !users.is_empty() {
        let (at, users) = (at.display(), users.join(", "));
        bail!("it is mounted at {at}, and its files are in use by {users}");
    }
    unmounted.map(drop)
}

/// The exit status of blkid for a device without any signature that it knows.
const NOTHING_FOUND: i32 = 2;
/// How many bytes this module reads at each end of a disk: all common signatures lie there.
const END_BYTES: u64 = 1 << 20;
