//! Makes a file system on a block device, mounts it, and unmounts it before the device is detached.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use dashpot_api::Client;
use dashpot_cli::FileSystem;
use dashpot_export::store::{device_file_users, device_is_on_top, device_mounts};

use crate::kinds;
use crate::place::{self, Record};
use crate::sysfs::attribute;
use crate::tool;

/// Makes a file system on a node. Never overwrites an existing file system.
pub(crate) fn make(
    client: &Client,
    node: &str,
    kind: &FileSystem,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    if let Some(found) = found_on(client, node, is_stopped)? {
        bail!(
            "--mkfs: the disk has data on it already ({found}): leave --mkfs out, or remove the data with 'wipefs -a {node}' after 'dashpot attach'"
        );
    }
    kinds::check_made(kind)?;
    tool::run(kinds::maker(kind).arg(node), is_stopped).map(drop)
}

/// The content of a node, as blkid names it. Fails if dashpot cannot find out the content, because it must
/// not overwrite unknown data.
pub(crate) fn found_on(
    client: &Client,
    node: &str,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<Option<String>> {
    let failed_before = failed_reads(client, node)?;
    // After this, most of the bytes that blkid reads are in the page cache, where they stay while the node is
    // open.
    let _open = read_ends(node, is_stopped).map_err(|error| {
        if is_stopped() {
            anyhow!("interrupted: nothing is attached")
        } else {
            error.context(UNREADABLE)
        }
    })?;
    let tags = ["-p", "-o", "value", "-s", "TYPE", "-s", "PTTYPE", node];
    let mut command = tool::program("blkid");
    let done = tool::output(command.args(tags), is_stopped)?;
    match done.status.code() {
        Some(0) => {
            let kinds = String::from_utf8_lossy(&done.stdout);
            Ok(Some(kinds.lines().collect::<Vec<_>>().join(", ")))
        }
        // If blkid cannot read a part of the disk, it treats that part as empty. So the disk counts as empty
        // only if no read has failed.
        Some(NOTHING_FOUND) if failed_reads(client, node)? > failed_before => bail!(UNREADABLE),
        Some(NOTHING_FOUND) => Ok(None),
        _ => {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            bail!("the disk has data of several kinds, or blkid has failed: {said}")
        }
    }
}

/// How many reads of an attached disk or volume have failed.
fn failed_reads(client: &Client, node: &str) -> anyhow::Result<u64> {
    let api = client.address();
    let mut records = place::records().into_iter().map(|(_, record)| record);
    let record = records.find(|record| record.node == node && record.api == api);
    let record = record.with_context(|| format!("{node} is not attached by dashpot any more"))?;
    let (layer, name) = record.key();
    let ops = client.io(layer, name)?.ops.into_iter();
    Ok(ops.filter(|op| op.op == READ).map(|op| op.failed).sum())
}

/// Opens a node, and reads its beginning and its end, where file systems and partition tables have their
/// signatures.
fn read_ends(node: &str, is_stopped: &dyn Fn() -> bool) -> anyhow::Result<File> {
    let sectors = attribute(node, "size").and_then(|sectors| sectors.parse::<u64>().ok());
    let size = sectors.context("its size is unknown")? * SECTOR;
    // The first program that opens a node may wait for I/O. dashpot can give up waiting for another process,
    // but not for its own call, so another process opens the node first.
    read_part(node, (0, SECTOR), is_stopped)?;
    let open = File::open(node).with_context(|| format!("{node} cannot be opened"))?;
    for start in [0, size.saturating_sub(END_BYTES)] {
        read_part(node, (start, END_BYTES), is_stopped)?;
    }
    Ok(open)
}

/// Reads `length` bytes of a node, starting at byte `start`, into the page cache.
fn read_part(
    node: &str,
    (start, length): (u64, u64),
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    let mut command = tool::program("dd");
    command.args([&format!("if={node}"), "of=/dev/null", "bs=1M"]);
    command.args(["iflag=skip_bytes,count_bytes", "status=none"]);
    command.args([format!("skip={start}"), format!("count={length}")]);
    tool::run(&mut command, is_stopped).map(drop)
}

/// The absolute path of the directory where a file system will be mounted.
pub(crate) fn directory(at: &Path) -> anyhow::Result<PathBuf> {
    let whole = at.canonicalize();
    let whole =
        whole.with_context(|| format!("cannot mount at {}: make it first", at.display()))?;
    if whole.is_dir() {
        Ok(whole)
    } else {
        bail!("cannot mount at {}: it is not a directory", at.display())
    }
}

/// Refuses a directory where another attached disk is mounted, because unmounting would remove the topmost
/// mount, whichever disk the caller means.
pub(crate) fn check_free(at: &Path) -> anyhow::Result<()> {
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

/// How a file system is mounted.
#[derive(Clone, Copy, Default)]
pub(crate) struct Manner<'a> {
    pub(crate) kind: Option<&'a FileSystem>,
    /// The user's options, as for mount(8).
    pub(crate) options: Option<&'a str>,
}

/// Mounts the file system of a node, and records that `detach` must unmount it.
pub(crate) fn mount(
    node: &str,
    at: &Path,
    manner: Manner<'_>,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    let at = directory(at)?;
    // Record the mount before mounting: `detach` would miss an unrecorded mount.
    place::change(node, |record| {
        record.mounted = Some(at.clone());
        record.options = manner.options.map(str::to_owned);
    })?;
    mount_noted(node, &at, manner, is_stopped)
}

/// Mounts the file system of a node at a directory that the attachment's record already names. This function
/// does not lock the attachment, so the caller may have locked it.
pub(crate) fn mount_noted(
    node: &str,
    at: &Path,
    manner: Manner<'_>,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    let mut command = tool::program("mount");
    if let Some(kind) = manner.kind {
        command.args(["-t", kind.name()]);
    }
    command.args(["-o", SAFE]);
    command.args(
        manner
            .options
            .map(|options| ["-o", options])
            .into_iter()
            .flatten(),
    );
    tool::run(command.arg(node).arg(at), is_stopped).map(drop)
}

/// Whether a node is mounted at a directory.
pub(crate) fn is_mounted(node: &str, at: &Path) -> bool {
    let at = at.canonicalize().ok();
    at.is_some_and(|at| device_mounts(node).contains(&at))
}

/// Unmounts the file system if dashpot has mounted it.
pub(crate) fn unmount(record: &Record, is_stopped: &dyn Fn() -> bool) -> anyhow::Result<()> {
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
    let unmounted = tool::run(tool::program("umount").arg(at), is_stopped);
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

/// blkid's exit status for a device on which it recognizes nothing.
const NOTHING_FOUND: i32 = 2;
/// How many bytes this module reads at each end of a disk. All common signatures lie in these bytes.
const END_BYTES: u64 = 1 << 20;
/// The daemon's user decides what is on a disk: a program with set-user-ID of root, or a device node.
const SAFE: &str = "nosuid,nodev";
/// The API's name for reads.
const READ: &str = "read";
const UNREADABLE: &str =
    "the disk cannot be read, so it may have data: clear the rules that fail its reads";
/// The unit of sizes in sysfs.
const SECTOR: u64 = 512;
