//! The users of a block device: mounts, swap, devices that are built on it, and processes that have it open.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dashpot_sys::Mount;
use rustix::fs::{AtFlags, CWD, FileType, OFlags, Statx, StatxFlags, major, minor, statx};

/// The mount points at which this process sees the file system of a node.
pub fn device_mounts(node: &str) -> Vec<PathBuf> {
    let list = mount_list();
    let own = Mount::all(&list).filter(|mount| is_of(mount, node));
    own.map(|mount| mount.point).collect()
}

/// Whether the node's file system is the topmost mount at a mount point. Programs that look there then reach
/// this file system.
pub fn device_is_on_top(node: &str, at: &Path) -> bool {
    let list = mount_list();
    let top = Mount::all(&list).rfind(|mount| mount.point == at);
    top.is_some_and(|top| is_of(&top, node))
}

/// Whether a mount shows the file system of the node. A mount remains when its node is gone, but then its
/// file system fails.
fn is_of(mount: &Mount, node: &str) -> bool {
    match device_numbers(node) {
        // File systems such as btrfs show a device number other than that of their block device.
        Some(numbers) if mount.device.0 == 0 && mount.source.is_absolute() => {
            device_numbers(&mount.source.to_string_lossy()) == Some(numbers)
        }
        Some(numbers) => mount.device == numbers,
        None => mount.source == Path::new(node),
    }
}

/// All users of the node, in words.
pub fn device_users(node: &str) -> Vec<String> {
    device_users_beside(node, None)
}

/// All users of the node, in words, except its mount at `own`.
pub fn device_users_beside(node: &str, own: Option<&Path>) -> Vec<String> {
    let mut users = visible_users(node, own);
    if users.is_empty() && device_mounts(node).is_empty() && has_hidden_user(node) {
        users.push("claimed by the kernel, such as for a mount of another namespace".to_owned());
    }
    users
}

/// The users of the node that this process can see, in words, except its mount at `own`.
pub(super) fn visible_users(node: &str, own: Option<&Path>) -> Vec<String> {
    let mounts = device_mounts(node).into_iter();
    let others = mounts.filter(|at| Some(at.as_path()) != own);
    let mut users: Vec<String> = others.map(|at| mounted_at(&at)).collect();
    if let Some(numbers) = device_numbers(node) {
        users.extend(swap(numbers));
        users.extend(holders(numbers));
        users.extend(mounted_partitions(numbers));
        users.extend(openers(numbers));
    }
    users
}

/// Whether the kernel refuses an exclusive open of the node. The caller has found no user that this process
/// can see, so a refusal means that there is a hidden user. Does not try to open a device with I/O in flight:
/// a device of the kernel's NBD client reads its partition table when it is first opened, and until this read
/// ends, any other open would hang.
fn has_hidden_user(node: &str) -> bool {
    device_numbers(node).is_some_and(|numbers| !has_io(numbers)) && is_claimed(node)
}

fn mounted_at(at: &Path) -> String {
    format!("mounted at {}", at.display())
}

fn mount_list() -> Vec<u8> {
    fs::read("/proc/self/mountinfo").unwrap_or_default()
}

fn swap(device: (u32, u32)) -> Option<String> {
    let table = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let mut names = table
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names
        .any(|name| device_numbers(name) == Some(device))
        .then(|| "swap".to_owned())
}

/// The devices that are built on top of this device.
fn holders(device: (u32, u32)) -> Vec<String> {
    let names = names_in(&sysfs(device).join("holders"));
    names.map(|name| format!("part of /dev/{name}")).collect()
}

/// The device's partitions that are mounted.
fn mounted_partitions(device: (u32, u32)) -> Vec<String> {
    let folder = sysfs(device);
    let partitions = names_in(&folder).filter(|name| folder.join(name).join("partition").exists());
    let users = partitions.flat_map(|name| {
        let mounts = device_mounts(&format!("/dev/{name}")).into_iter();
        mounts.map(move |at| format!("its partition {name} is {}", mounted_at(&at)))
    });
    users.collect()
}

fn names_in(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// The processes that have the device open.
fn openers(numbers: (u32, u32)) -> Vec<String> {
    let is_it = |file: &Statx| {
        FileType::from_raw_mode(file.stx_mode.into()) == FileType::BlockDevice
            && (file.stx_rdev_major, file.stx_rdev_minor) == numbers
    };
    let openers = processes_with(&["fd"], is_it).into_iter();
    openers.map(|name| format!("open by {name}")).collect()
}

/// The processes that use files of a node's file system, for example as their working directory.
pub fn device_file_users(node: &str) -> Vec<String> {
    let Some(numbers) = device_numbers(node) else {
        return Vec::new();
    };
    let is_on_it = |file: &Statx| (file.stx_dev_major, file.stx_dev_minor) == numbers;
    processes_with(&["fd", "cwd", "root", "exe"], is_on_it)
}

/// The processes that use a file which `is_meant` accepts, as far as these entries in `/proc/PID` show.
fn processes_with(entries: &[&str], is_meant: impl Fn(&Statx) -> bool) -> Vec<String> {
    let pids = names_in(Path::new("/proc")).filter_map(|name| name.parse::<u32>().ok());
    let uses = |pid: &u32| {
        let places = entries.iter().flat_map(|entry| {
            let place = Path::new("/proc").join(pid.to_string()).join(entry);
            match *entry {
                "fd" => names_in(&place).map(|name| place.join(name)).collect(),
                _ => vec![place],
            }
        });
        places
            .filter_map(|place| looked_at(&place))
            .any(|file| is_meant(&file))
    };
    let name = |pid: u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("{} (pid {pid})", name.trim_end())
    };
    pids.filter(uses).map(name).collect()
}

/// The facts about a file that the kernel itself knows. The file system is not asked, because if it hangs,
/// the call would hang, too.
fn looked_at(file: &Path) -> Option<Statx> {
    statx(CWD, file, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()
}

/// Whether the device has I/O in flight.
fn has_io(device: (u32, u32)) -> bool {
    let counts = attribute(device, "inflight").unwrap_or_default();
    counts.split_whitespace().any(|count| count != "0")
}

/// Whether another user holds the device exclusively.
fn is_claimed(node: &str) -> bool {
    let mut options = fs::OpenOptions::new();
    let options = options
        .read(true)
        .custom_flags(OFlags::EXCL.bits().cast_signed());
    let opened = options.open(node);
    opened.is_err_and(|error| error.kind() == std::io::ErrorKind::ResourceBusy)
}

/// The major and minor number of a block device.
pub fn device_numbers(node: &str) -> Option<(u32, u32)> {
    let found = fs::metadata(node).ok()?;
    let number = found.rdev();
    let is_block = found.file_type().is_block_device();
    is_block.then(|| (major(number), minor(number)))
}

/// An attribute of a device in sysfs.
pub(super) fn attribute(device: (u32, u32), name: &str) -> Option<String> {
    let text = fs::read_to_string(sysfs(device).join(name)).ok()?;
    Some(text.trim_end().to_owned())
}

fn sysfs((major, minor): (u32, u32)) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}
