//! The kinds of file systems that this host can make and mount.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::bail;
use dashpot_cli::FileSystem;
use dashpot_doctor::installed;

use crate::tool;

/// Refuses a kind that the kernel cannot mount from a disk. With a kind that needs no disk, such as tmpfs,
/// mount would ignore the disk.
pub(crate) fn check_mounted(kind: &FileSystem) -> anyhow::Result<()> {
    let (name, list) = (kind.name(), fs::read_to_string("/proc/filesystems"));
    let list = list.unwrap_or_default();
    match known(&list, name) {
        Known::OnDisks => Ok(()),
        Known::Elsewhere => bail!("--fs {name}: its files are not on a disk: choose another"),
        Known::Not if installed(&format!("mount.{name}")) || has_module(name) => Ok(()),
        Known::Not => {
            let others: Vec<&str> = list
                .lines()
                .filter_map(|line| line.strip_prefix('\t'))
                .collect();
            let others = others.join(", ");
            bail!(
                "--fs {name}: this kernel does not know it: install its module, or choose another ({others})"
            )
        }
    }
}

/// Refuses a kind whose program is missing.
pub(crate) fn check_made(kind: &FileSystem) -> anyhow::Result<()> {
    let program = program(kind);
    if installed(&program) {
        return Ok(());
    }
    match package(kind) {
        Some(package) => {
            bail!("{program} is missing: install the package that has it (Debian: {package})")
        }
        None => bail!("{program} is missing: install the package that has it, or leave --mkfs out"),
    }
}

/// The command that makes a file system, to which the caller adds the node.
pub(crate) fn maker(kind: &FileSystem) -> Command {
    let mut command = tool::program(&program(kind));
    command.args(match kind.name() {
        "ext2" | "ext3" | "ext4" | "xfs" => &["-q"][..],
        // `-I` allows a file system on the whole disk, without partitions.
        "vfat" | "msdos" => &["-I"][..],
        _ => &[],
    });
    command
}

fn program(kind: &FileSystem) -> String {
    format!("mkfs.{}", kind.name())
}

/// Looks up a kind in a list that has the format of `/proc/filesystems`.
fn known(list: &str, name: &str) -> Known {
    let mut lines = list.lines().filter_map(|line| line.split_once('\t'));
    match lines.find(|(_, known)| *known == name) {
        Some(("", _)) => Known::OnDisks,
        Some(_) => Known::Elsewhere,
        None => Known::Not,
    }
}

/// Whether file systems of a kind are stored on disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    OnDisks,
    Elsewhere,
    /// The kernel does not know this kind, perhaps because its module is not loaded yet.
    Not,
}

/// Whether the kernel would load a module for a kind.
fn has_module(name: &str) -> bool {
    let mut command = tool::program("modprobe");
    let command = command.args(["--dry-run", "--quiet", &format!("fs-{name}")]);
    let streams = command.stdin(Stdio::null()).stdout(Stdio::null());
    let found = streams.stderr(Stdio::null()).status();
    found.is_ok_and(|found| found.success())
}

/// Debian's package with the tools of a kind, as far as we know it.
fn package(kind: &FileSystem) -> Option<&'static str> {
    Some(match kind.name() {
        "bcachefs" => "bcachefs-tools",
        "btrfs" => "btrfs-progs",
        "exfat" => "exfatprogs",
        "ext2" | "ext3" | "ext4" => "e2fsprogs",
        "f2fs" => "f2fs-tools",
        "jfs" => "jfsutils",
        "nilfs2" => "nilfs-tools",
        "ntfs" => "ntfs-3g",
        "udf" => "udftools",
        "vfat" | "msdos" => "dosfstools",
        "xfs" => "xfsprogs",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Known, known};

    #[test]
    fn a_kind_is_on_disks_elsewhere_or_not_known() {
        let list = "nodev\tsysfs\nnodev\ttmpfs\n\text4\n\tbtrfs\n";
        for (name, is) in [
            ("ext4", Known::OnDisks),
            ("btrfs", Known::OnDisks),
            ("tmpfs", Known::Elsewhere),
            ("xfs", Known::Not),
            ("ext", Known::Not),
        ] {
            assert_eq!(known(list, name), is, "{name}");
        }
    }
}
