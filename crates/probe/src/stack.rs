//! The disks beneath a disk. The device mapper and md pass I/Os on to disks, and a loop device reads and writes
//! a file, which may be on a disk. So one I/O may happen on two disks.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use dashpot_sys::Mount;

use crate::device::{Device, Number, SYS, list, number, stat_number};

/// The devices beneath a device on all levels. A partition is over what its disk is over.
pub fn all_beneath(device: &Device) -> Vec<Device> {
    let sys = Path::new(SYS);
    let all = list(sys).unwrap_or_default();
    let find = |number: Number| all.iter().find(|one| one.number == number);
    let mut found: Vec<Device> = Vec::new();
    let mut above = vec![device.disk];
    while let Some(upper) = above.pop() {
        for below in numbers_beneath(sys, upper).filter_map(find) {
            if !found.iter().any(|known| known.number == below.number) {
                above.push(below.disk);
                found.push(below.clone());
            }
        }
    }
    found
}

/// The devices directly beneath a device, to which it passes its I/Os on. A partition passes them on as its disk
/// does. The disk of a loop device's file is not among them.
pub fn devices_beneath(above: Number) -> Vec<Number> {
    slaves(&home(Path::new(SYS), above)).collect()
}

/// The directory of a disk, or of a partition's disk.
fn home(sys: &Path, number: Number) -> PathBuf {
    let home = sys.join(format!("dev/block/{}:{}", number.major, number.minor));
    if home.join("partition").exists() {
        home.join("..")
    } else {
        home
    }
}

fn slaves(home: &Path) -> impl Iterator<Item = Number> + use<> {
    let slaves = fs::read_dir(home.join("slaves")).into_iter().flatten();
    let slaves = slaves.flatten();
    slaves.filter_map(|entry| number(&entry.path()))
}

/// The known devices directly beneath a disk, with the disk of a loop device's file.
fn numbers_beneath(sys: &Path, above: Number) -> impl Iterator<Item = Number> + use<> {
    let home = home(sys, above);
    let held = match holder(&home) {
        Holder::Disk(number) => Some(number),
        Holder::None | Holder::Unknown => None,
    };
    slaves(&home).chain(held)
}

/// The names of the whole disks directly beneath a device, sorted; empty if there are none. If a loop device has
/// a file of which the disk is not known, [`UNKNOWN`] stands for the disk.
pub(crate) fn beneath(sys: &Path, device: &Device, all: &[Device]) -> Vec<String> {
    let whole = |number: Number| {
        let own = all.iter().find(|one| one.number == number)?;
        let disk = all.iter().find(|one| one.number == own.disk)?;
        Some(disk.name.clone())
    };
    let home = home(sys, device.disk);
    let mut names: Vec<String> = slaves(&home).filter_map(whole).collect();
    names.extend(match holder(&home) {
        Holder::None => None,
        Holder::Disk(number) => whole(number).or(Some(UNKNOWN.to_owned())),
        Holder::Unknown => Some(UNKNOWN.to_owned()),
    });
    names.sort_unstable();
    names.dedup();
    names
}

/// The disk that has a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Disk(Number),
    /// The file is in memory or on another host.
    None,
    Unknown,
}

/// What has the file of a loop device; nothing has one of another device.
fn holder(home: &Path) -> Holder {
    file_of(home).map_or(Holder::None, |file| holder_of(&file))
}

/// The file of a loop device.
fn file_of(home: &Path) -> Option<PathBuf> {
    let text = fs::read(home.join("loop/backing_file")).ok()?;
    let path = text.strip_suffix(b"\n").unwrap_or(&text);
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// The disk of a file. The kernel's path is one of the mount namespace in which the file was opened, so a path
/// that leads nowhere here says nothing.
fn holder_of(file: &Path) -> Holder {
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mount = mount_of(&mounts, file);
    let is_on = |kinds: &[&str]| {
        let kind = mount.as_ref().map(|mount| &*mount.kind);
        kind.is_some_and(|kind| kinds.contains(&kind))
    };
    if is_on(&REMOTE) {
        return Holder::None;
    }
    // The program that serves the file system may never answer.
    if mount
        .as_ref()
        .is_some_and(|mount| mount.kind.starts_with("fuse"))
    {
        return source_of(mount.as_ref());
    }
    let Ok(found) = fs::metadata(file) else {
        return Holder::Unknown;
    };
    if found.file_type().is_block_device() {
        return Holder::Disk(stat_number(found.rdev()));
    }
    if is_on(&IN_MEMORY) {
        return Holder::None;
    }
    let number = stat_number(found.dev());
    if number.major != 0 {
        return Holder::Disk(number);
    }
    // btrfs has a number of its own for each subvolume. The mount names its disk.
    source_of(mount.as_ref())
}

/// The disk that a file system was mounted from.
fn source_of(mount: Option<&Mount>) -> Holder {
    let source = mount.filter(|mount| mount.source.starts_with("/dev"));
    let source = source.and_then(|mount| fs::metadata(&mount.source).ok());
    match source.filter(|source| source.file_type().is_block_device()) {
        Some(source) => Holder::Disk(stat_number(source.rdev())),
        None => Holder::Unknown,
    }
}

/// The mount that has a file: the last of those with the longest place.
fn mount_of(mounts: &[u8], file: &Path) -> Option<Mount> {
    let own = Mount::all(mounts).filter(|mount| file.starts_with(&mount.point));
    own.max_by_key(|mount| mount.point.components().count())
}

/// Stands for the disk of a file that cannot be placed.
pub const UNKNOWN: &str = "an unknown disk";
/// File systems that keep files in memory.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// File systems that keep files on another host. To ask them for a file could take for ever.
const REMOTE: [&str; 9] = [
    "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "virtiofs", "lustre", "afs",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_a_file_is_the_last_one_of_the_longest_place() {
        let mounts = "1 0 253:1 / / rw shared:1 - ext4 /dev/vda1 rw\n\
                      2 1 0:30 / /data rw - tmpfs none rw\n\
                      3 1 0:31 / /data rw - btrfs /dev/vdb rw\n\
                      4 1 0:32 / /database rw - tmpfs none rw\n\
                      5 1 0:33 / /data/a\\040b rw - fuse.sshfs host: rw\n";
        let source = |file: &str| {
            let mount = mount_of(mounts.as_bytes(), Path::new(file));
            mount.map(|mount| mount.source.display().to_string())
        };
        let is_on = |file: &str, place: &str| assert_eq!(source(file).as_deref(), Some(place));
        is_on("/data/disk.img", "/dev/vdb");
        is_on("/database/disk.img", "none");
        is_on("/disk.img", "/dev/vda1");
        is_on("/data/a b/disk.img", "host:");
    }

    #[test]
    fn the_devices_beneath_a_disk_and_its_partitions_are_found() {
        let sys = tempfile::tempdir().expect("a directory");
        let disk = sys.path().join("dev/block/9:0");
        for (name, text) in [
            ("slaves/sda1/dev", "8:1\n"),
            ("slaves/sdb/dev", "8:16\n"),
            ("md0p1/partition", "1\n"),
        ] {
            let file = disk.join(name);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            fs::write(file, text).expect("a file");
        }
        let part = sys.path().join("dev/block/259:0");
        std::os::unix::fs::symlink(disk.join("md0p1"), part).expect("a link");
        let beneath = |major, minor| {
            let numbers = numbers_beneath(sys.path(), Number { major, minor });
            let mut numbers: Vec<Number> = numbers.collect();
            numbers.sort_unstable();
            numbers
        };
        let [first, second] = [1, 16].map(|minor| Number { major: 8, minor });
        assert_eq!(beneath(9, 0), [first, second]);
        assert_eq!(beneath(259, 0), [first, second]);
        assert_eq!(beneath(8, 1), []);
    }

    #[test]
    fn the_disk_of_a_file_is_known_or_said_to_be_unknown() {
        assert_eq!(holder_of(Path::new("/nowhere/disk.img")), Holder::Unknown);
        assert_eq!(holder_of(Path::new("/dev/null")), Holder::None);
    }
}
