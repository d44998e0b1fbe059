//! The devices on which the file of a call is.
//!
//! The device number of a file is not enough: each subvolume of btrfs and each layer of overlayfs has a number that
//! belongs to no device. For such files, the mount says which file system it is, and which devices that has.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use dashpot_sys::Mount;
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, statx};

use crate::device::{Number, number};

/// The place where the data of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// A file system on this block device, or the block device itself.
    Device(Number),
    /// The btrfs with this id. It may have several devices.
    Btrfs([u8; 16]),
    /// No block device of this host: memory, for example, or a server.
    Elsewhere,
}

impl Storage {
    /// The block devices, in order of their numbers. `None` if the file system is no longer mounted.
    pub fn devices(self) -> Option<Vec<Number>> {
        match self {
            Storage::Device(number) => Some(vec![number]),
            Storage::Btrfs(id) => devices_of(&Path::new(BTRFS).join(text(id))),
            Storage::Elsewhere => Some(Vec::new()),
        }
    }
}

/// The storage and the inode number of the file behind a thread's descriptor; `None` if it is not known, because it may have been closed since.
pub(super) fn file_of(pid: i32, fd: i32) -> Option<(Storage, u64)> {
    let link = PathBuf::from(format!("/proc/{pid}/fd/{fd}"));
    let status = status_of(&link)?;
    Some((storage(pid, &link, &status)?, status.stx_ino))
}

fn storage(pid: i32, path: &Path, status: &Statx) -> Option<Storage> {
    let number = |major, minor| Storage::Device(Number { major, minor });
    match FileType::from_raw_mode(status.stx_mode.into()) {
        FileType::BlockDevice => Some(number(status.stx_rdev_major, status.stx_rdev_minor)),
        FileType::RegularFile | FileType::Directory if status.stx_dev_major > 0 => {
            Some(number(status.stx_dev_major, status.stx_dev_minor))
        }
        FileType::RegularFile | FileType::Directory => of_mount(pid, path, status),
        // Pipes, sockets and terminals.
        _ => Some(Storage::Elsewhere),
    }
}

/// The storage of a file whose number belongs to no device.
fn of_mount(pid: i32, path: &Path, status: &Statx) -> Option<Storage> {
    // A file of memory without a name is in a file system that is mounted nowhere.
    let target = fs::read_link(path).unwrap_or_default();
    if target.starts_with("/memfd:") {
        return Some(Storage::Elsewhere);
    }
    let (mount, root) = mount_of(pid, status)?;
    if mount.kind != "overlay" {
        return on_mount(&mount);
    }
    // Without an upper layer, nothing is written.
    let Some(upper) = mount.option("upperdir") else {
        return Some(Storage::Elsewhere);
    };
    let upper = root.join(upper.strip_prefix("/").ok()?);
    let status = status_of(&upper)?;
    match (status.stx_dev_major, status.stx_dev_minor) {
        (0, _) => on_mount(&mount_of(pid, &status)?.0),
        (major, minor) => Some(Storage::Device(Number { major, minor })),
    }
}

/// The mount of a file, and the directory in which its paths are found. A process may see other mounts than dashpot.
fn mount_of(pid: i32, status: &Statx) -> Option<(Mount, PathBuf)> {
    let places = [
        ("/proc/self/mountinfo".to_owned(), "/".to_owned()),
        (
            format!("/proc/{pid}/mountinfo"),
            format!("/proc/{pid}/root"),
        ),
    ];
    places.into_iter().find_map(|(list, root)| {
        let mount = Mount::find(&read_some(&list)?, status.stx_mnt_id)?;
        Some((mount, root.into()))
    })
}

/// A list of mounts, if it is not longer than any host needs: any user may make mounts.
fn read_some(list: &str) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut some = fs::File::open(list).ok()?.take(MOUNTS_MAX);
    some.read_to_end(&mut text).ok()?;
    ((text.len() as u64) < MOUNTS_MAX).then_some(text)
}

/// The most bytes of a list of mounts.
const MOUNTS_MAX: u64 = 4 << 20;

fn on_mount(mount: &Mount) -> Option<Storage> {
    match &*mount.kind {
        "btrfs" => btrfs_on(&mount.source),
        // They may be on block devices, and nothing says on which.
        "aufs" | "bcachefs" | "ecryptfs" | "overlay" | "zfs" => None,
        _ => Some(Storage::Elsewhere),
    }
}

/// The btrfs that has this device.
fn btrfs_on(device: &Path) -> Option<Storage> {
    let status = status_of(device)?;
    let (major, minor) = (status.stx_rdev_major, status.stx_rdev_minor);
    let all = fs::read_dir(BTRFS).ok()?.flatten();
    let mut own = all.filter(|one| {
        let devices = devices_of(&one.path());
        devices.is_some_and(|devices| devices.contains(&Number { major, minor }))
    });
    let id = id_of(own.next()?.file_name().to_str()?)?;
    Some(Storage::Btrfs(id))
}

fn devices_of(btrfs: &Path) -> Option<Vec<Number>> {
    let devices = fs::read_dir(btrfs.join("devices")).ok()?.flatten();
    let mut numbers: Vec<Number> = devices.filter_map(|one| number(&one.path())).collect();
    numbers.sort_unstable();
    Some(numbers)
}

/// A file's status, without a question to a server that may not answer.
fn status_of(path: &Path) -> Option<Statx> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    statx(CWD, path, AtFlags::STATX_DONT_SYNC, wanted).ok()
}

/// The id of a btrfs as the kernel writes it, such as `0f6a…-….`.
fn text(id: [u8; 16]) -> String {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    parts.join("-")
}

fn id_of(text: &str) -> Option<[u8; 16]> {
    let hex: String = text.chars().filter(|letter| *letter != '-').collect();
    let id = u128::from_str_radix(&hex, 16).ok()?;
    (hex.len() == 32).then_some(id.to_be_bytes())
}

/// The directory in which the kernel lists each btrfs.
const BTRFS: &str = "/sys/fs/btrfs";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_btrfs_is_read_and_written() {
        let words = "0f6a0c5e-1db2-4a86-9e51-00ff27b7b9a1";
        let id = id_of(words).expect("an id");
        assert_eq!((id[0], id[15], text(id)), (0x0f, 0xa1, words.to_owned()));
        assert_eq!(id_of("features"), None);
        assert_eq!(id_of("0f6a"), None);
    }
}
