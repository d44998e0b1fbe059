//! The users of a block device: mounts, swap, devices above it, and processes that have it open.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, major, minor};

use super::loop_device::numbers;
use super::sysfs::attribute;

/// The mount points of a node, as this process sees them.
pub(super) fn mounts_of(node: &str) -> Vec<String> {
    let Some(numbers) = numbers(node) else {
        return Vec::new();
    };
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts(&table, numbers)
}

/// All users of the node, in words.
pub(super) fn users_of(node: &str) -> Vec<String> {
    let Some(numbers) = numbers(node) else {
        return Vec::new();
    };
    let mounts = mounts_of(node).into_iter();
    let mut users: Vec<String> = mounts.map(|at| format!("mounted at {at}")).collect();
    users.extend(swap(node));
    users.extend(holders(node));
    users.extend(openers(numbers));
    // A device of the kernel's NBD client reads its partition table when it is opened for the first time.
    // While it waits for that, an open would wait as well.
    if users.is_empty() && !has_io(node) && is_claimed(node) {
        users.push("claimed by the kernel, such as for a mount of another namespace".to_owned());
    }
    users
}

/// The mount points of a device in the text of `/proc/PID/mountinfo`.
fn mounts(table: &str, (major, minor): (u32, u32)) -> Vec<String> {
    let wanted = format!("{major}:{minor}");
    let rows = table
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let of_device = rows.filter(|fields| fields.get(2) == Some(&wanted.as_str()));
    let at = |fields: Vec<&str>| fields.get(4).map(|at| unescaped(at));
    of_device.filter_map(at).collect()
}

/// The kernel writes blanks and some other characters as octal numbers.
fn unescaped(text: &str) -> String {
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let unescape = |text: String, (from, to): (&str, &str)| text.replace(from, to);
    escapes.into_iter().fold(text.to_owned(), unescape)
}

fn swap(node: &str) -> Option<String> {
    let table = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let mut names = table
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names.any(|name| name == node).then(|| "swap".to_owned())
}

/// The devices that are built on this one.
fn holders(node: &str) -> Vec<String> {
    let name = Path::new(node).file_name().unwrap_or_default();
    let folder = Path::new("/sys/block").join(name).join("holders");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.map(|name| format!("part of /dev/{name}")).collect()
}

/// The processes that have it open.
fn openers(numbers: (u32, u32)) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let opens = |pid: &u32| {
        let folder = format!("/proc/{pid}/fd");
        let descriptors = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files = descriptors.filter_map(|descriptor| fs::metadata(descriptor.path()).ok());
        files.any(|file| {
            file.file_type().is_block_device()
                && (major(file.rdev()), minor(file.rdev())) == numbers
        })
    };
    let name = |pid: u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("open by {} (pid {pid})", name.trim_end())
    };
    pids.filter(opens).map(name).collect()
}

/// Whether I/O is in flight.
fn has_io(node: &str) -> bool {
    let counts = attribute(node, "inflight").unwrap_or_default();
    counts.split_whitespace().any(|count| count != "0")
}

/// Whether the kernel holds it exclusively.
fn is_claimed(node: &str) -> bool {
    let mut options = fs::OpenOptions::new();
    let options = options
        .read(true)
        .custom_flags(OFlags::EXCL.bits().cast_signed());
    let opened = options.open(node);
    opened.is_err_and(|error| error.kind() == std::io::ErrorKind::ResourceBusy)
}

#[cfg(test)]
mod tests {
    use super::mounts;

    #[test]
    fn mounts_are_found_by_the_numbers_of_their_device() {
        let table = "\
            36 35 7:0 / /mnt/a\\040b rw shared:1 - ext4 /dev/loop0 rw\n\
            37 35 7:10 / /mnt/c rw - ext4 /dev/loop10 rw\n\
            38 35 7:0 /sub /mnt/d rw - ext4 /dev/loop0 rw\n";
        assert_eq!(mounts(table, (7, 0)), ["/mnt/a b", "/mnt/d"]);
        assert!(mounts(table, (7, 1)).is_empty());
    }
}
