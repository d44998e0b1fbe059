//! The disks beneath a disk. The device mapper and md pass I/Os on to disks, and a loop device reads and writes
//! a file, which may be on a disk. So one I/O may happen on two disks.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::device::{Device, Number, SYS, list, number, stat_number};

/// The names of the whole disks directly beneath a device.
pub fn disks_beneath(device: &Device) -> Vec<String> {
    let sys = Path::new(SYS);
    beneath(sys, device, &list(sys).unwrap_or_default())
}

/// The devices directly beneath a device, to which it passes its I/Os on. A partition passes them on as its disk
/// does. The disk of a loop device's file is not among them.
pub fn devices_beneath(above: Number) -> Vec<Number> {
    directly_beneath(Path::new(SYS), above)
}

fn directly_beneath(sys: &Path, above: Number) -> Vec<Number> {
    let home = sys.join(format!("dev/block/{}:{}", above.major, above.minor));
    let disk = if home.join("partition").exists() {
        home.join("..")
    } else {
        home
    };
    let slaves = fs::read_dir(disk.join("slaves")).into_iter().flatten();
    let slaves = slaves.flatten();
    slaves.filter_map(|entry| number(&entry.path())).collect()
}

/// The names of the whole disks directly beneath a device, sorted; empty if there are none. If a loop device has
/// a file of which the disk is not known, [`UNKNOWN`] stands for the disk.
pub(crate) fn beneath(sys: &Path, device: &Device, all: &[Device]) -> Vec<String> {
    let home = sys.join("class/block").join(&device.name);
    let whole = |number: Number| {
        let own = all.iter().find(|one| one.number == number)?;
        let disk = all.iter().find(|one| one.number == own.disk)?;
        Some(disk.name.clone())
    };
    let slaves = fs::read_dir(home.join("slaves")).into_iter().flatten();
    let slaves = slaves.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let slave = all.iter().find(|one| *one.name == *name)?;
        whole(slave.number)
    });
    let mut names: Vec<String> = slaves.collect();
    names.extend(
        match file_of(&home).map_or(Holder::None, |file| holder(&file)) {
            Holder::None => None,
            Holder::Disk(number) => whole(number).or(Some(UNKNOWN.to_owned())),
            Holder::Unknown => Some(UNKNOWN.to_owned()),
        },
    );
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

/// The file of a loop device.
fn file_of(home: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(home.join("loop/backing_file")).ok()?;
    Some(PathBuf::from(text.strip_suffix('\n').unwrap_or(&text)))
}

/// The disk of a file. The kernel's path is one of the mount namespace in which the file was opened, so a path
/// that leads nowhere here says nothing.
fn holder(file: &Path) -> Holder {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = mount_of(&mounts, file);
    let is_on = |kinds: &[&str]| mount.is_some_and(|mount| kinds.contains(&mount.kind));
    // To ask a server for the file could take for ever.
    if is_on(&REMOTE) {
        return Holder::None;
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
    let source = mount.and_then(|mount| fs::metadata(mount.source).ok());
    match source.filter(|source| source.file_type().is_block_device()) {
        Some(source) => Holder::Disk(stat_number(source.rdev())),
        None => Holder::Unknown,
    }
}

/// A line of the list of mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mount<'a> {
    kind: &'a str,
    source: &'a str,
}

/// The mount that has a file: the last of those with the longest place.
fn mount_of<'a>(mounts: &'a str, file: &Path) -> Option<Mount<'a>> {
    let each = mounts.lines().filter_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        // A place with a space has it as \040; the files of loop devices are rarely there, and their own
        // number then still tells their disk.
        let place = Path::new(front.split(' ').nth(4)?);
        let mut back = back.split(' ');
        let mount = Mount {
            kind: back.next()?,
            source: back.next()?,
        };
        file.starts_with(place)
            .then(|| (place.components().count(), mount))
    });
    each.max_by_key(|(depth, _)| *depth).map(|(_, mount)| mount)
}

/// Stands for the disk of a file that cannot be placed.
pub const UNKNOWN: &str = "an unknown disk";
/// File systems that keep files in memory.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// File systems that keep files on another host.
const REMOTE: [&str; 7] = ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "virtiofs"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_a_file_is_the_last_one_of_the_longest_place() {
        let mounts = "1 0 253:1 / / rw shared:1 - ext4 /dev/vda1 rw\n\
                      2 1 0:30 / /data rw - tmpfs none rw\n\
                      3 1 0:31 / /data rw - btrfs /dev/vdb rw\n\
                      4 1 0:32 / /database rw - tmpfs none rw\n";
        let source = |file: &str| mount_of(mounts, Path::new(file)).map(|mount| mount.source);
        assert_eq!(source("/data/disk.img"), Some("/dev/vdb"));
        assert_eq!(source("/database/disk.img"), Some("none"));
        assert_eq!(source("/disk.img"), Some("/dev/vda1"));
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
            let mut numbers = directly_beneath(sys.path(), Number { major, minor });
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
        assert_eq!(holder(Path::new("/nowhere/disk.img")), Holder::Unknown);
        assert_eq!(holder(Path::new("/dev/null")), Holder::None);
    }
}
