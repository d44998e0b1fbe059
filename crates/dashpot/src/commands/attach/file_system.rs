//! Makes a file system on a block device, mounts it, and unmounts it with the device.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::in_use::mounts_of;
use super::place::{Place, Record};
use crate::cli::FileSystem;
use crate::doctor::installed;

/// Makes a file system on a node. Never overwrites an existing one.
pub(super) fn make(node: &str, kind: FileSystem) -> anyhow::Result<()> {
    if let Some(found) = found_on(node) {
        bail!(
            "--mkfs: the disk has data on it already ({found}): leave --mkfs out, or remove it with 'wipefs -a {node}' after 'dashpot attach'"
        );
    }
    let program = format!("mkfs.{}", kind.name());
    if !installed(&program) {
        bail!(
            "{program} is missing: install the package that has it (Debian: {})",
            kind.package()
        );
    }
    run(Command::new(program).args(["-q", node]))
}

/// The content of a node, in blkid's words.
pub(super) fn found_on(node: &str) -> Option<String> {
    let tags = ["-p", "-o", "value", "-s", "TYPE", "-s", "PTTYPE", node];
    let looked = Command::new("blkid")
        .args(tags)
        .stdin(Stdio::null())
        .output();
    let found = String::from_utf8_lossy(&looked.ok()?.stdout)
        .trim()
        .to_owned();
    (!found.is_empty()).then_some(found)
}

/// Mounts the file system of a node. From now on, `detach` unmounts it.
pub(super) fn mount(node: &str, at: &Path, kind: Option<FileSystem>) -> anyhow::Result<PathBuf> {
    let at = at.canonicalize();
    let at = at.context("the directory to mount at cannot be used: make it first")?;
    // Recorded before mounting: `detach` would miss an unrecorded mount.
    note(node, Some(&at))?;
    let mut command = Command::new("mount");
    if let Some(kind) = kind {
        command.args(["-t", kind.name()]);
    }
    match run(command.arg(node).arg(&at)) {
        Ok(()) => Ok(at),
        Err(error) => {
            note(node, None)?;
            Err(error)
        }
    }
}

/// Unmounts the file system if dashpot has mounted it.
pub(super) fn unmount(record: &Record) -> anyhow::Result<()> {
    let Some(at) = &record.mounted else {
        return Ok(());
    };
    let mounts = mounts_of(&record.node);
    if !mounts.iter().any(|mounted| Path::new(mounted) == at) {
        return Ok(());
    }
    run(Command::new("umount").arg(at))
}

/// Records where the file system of a node is mounted.
fn note(node: &str, at: Option<&Path>) -> anyhow::Result<()> {
    for (place, record) in Place::all() {
        if let Some(record) = record.filter(|record| record.node == node) {
            return place.write(&Record {
                mounted: at.map(Path::to_owned),
                ..record
            });
        }
    }
    bail!("{node} is not attached by dashpot any more");
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output();
    let done = done.with_context(|| format!("{program} cannot be run"))?;
    if !done.status.success() {
        bail!(
            "{program}: {}",
            String::from_utf8_lossy(&done.stderr).trim_end()
        );
    }
    Ok(())
}
