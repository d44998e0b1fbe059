//! Finds block devices, and the layer at which each can be watched.

use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A device's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    /// The number of the driver.
    pub major: u32,
    /// The number of the device.
    pub minor: u32,
}

/// A block device of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The device's name, such as `vda`, `loop0` or `vda1`.
    pub name: String,
    pub number: Number,
    /// The number of the whole disk, which is the device itself or, for a partition, the disk that contains
    /// it. Events carry this number.
    pub disk: Number,
    /// The kernel's count of disks when this disk appeared, which differs from the count of a later disk with
    /// the same name. Only Linux 5.15 and later have this count.
    pub sequence: Option<u64>,
    /// The inode number of the disk's directory in sysfs. The kernel makes a new directory for each disk that it
    /// makes, even if the disk gets the number of an earlier one.
    pub home: u64,
    /// The sectors of the disk that the device covers, if the device is a partition.
    pub part: Option<Range<u64>>,
    /// The layer at which the device's I/O can be seen.
    pub layer: Layer,
}

/// The events that show a device's I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Events of requests, for devices that have requests.
    Request,
    /// Events of bios, for devices without requests: dm, md, zram and some others.
    Bio,
}

/// The reason that no device was found.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The kernel has no block device with this name, path or number.
    #[error("'{words}' is not a block device: {remedy}")]
    Unknown {
        /// The name, path or number.
        words: String,
        remedy: String,
    },
    /// sysfs cannot be read.
    #[error("/sys/class/block cannot be read; sysfs has to be mounted")]
    Unreadable(#[from] io::Error),
}

impl Device {
    /// Finds the device with a name (`loop0`), a path (`/dev/loop0`, also through links) or a
    /// number (`7,0`).
    pub fn find(words: &str) -> Result<Device, DeviceError> {
        find_in(Path::new(SYS), words)
    }

    /// Every whole disk that has a size, sorted by name.
    pub fn all() -> Result<Vec<Device>, DeviceError> {
        let mut all = list(Path::new(SYS))?;
        all.retain(|device| device.part.is_none() && device.is_there());
        Ok(all)
    }

    /// Whether the device still exists, and no other disk has taken its name. A loop device without a
    /// file has no size, and does not count as existing.
    pub fn is_there(&self) -> bool {
        self.is_there_in(Path::new(SYS))
    }

    /// Whether another device has the number of this one, and is on the same disk.
    pub fn is_same(&self, other: &Device) -> bool {
        let identity = |device: &Device| (device.number, device.sequence, device.home);
        identity(self) == identity(other)
    }

    /// Whether the kernel counts the I/Os of this device's disk: in flight, completed, and the time for which
    /// the disk is busy. The switch is `queue/iostats`, and some drivers have it off.
    pub fn is_counted(&self) -> bool {
        self.is_counted_in(Path::new(SYS))
    }

    /// How many I/Os are in flight by the kernel's count; `None` if the kernel does not count them.
    pub fn counted_in_flight(&self) -> Option<u64> {
        self.is_counted()
            .then(|| in_flight_in(Path::new(SYS), self.number))
    }

    /// Whether an I/O that begins at this sector of a disk belongs to this device. Only some of a disk's I/Os
    /// belong to a given partition.
    pub fn has(&self, disk: Number, sector: u64) -> bool {
        self.disk == disk && self.part.as_ref().is_none_or(|part| part.contains(&sector))
    }

    /// Whether the kernel's count of I/Os in flight on this device's disk is zero. Returns false if the
    /// kernel does not count them.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle_in(Path::new(SYS))
    }

    fn is_idle_in(&self, sys: &Path) -> bool {
        self.is_counted_in(sys) && in_flight_in(sys, self.disk) == 0
    }

    /// The switch of [`Device::is_counted`], for a remedy.
    pub fn counting_switch(&self) -> String {
        let switch = home_of(Path::new(SYS), self.disk).join(SWITCH);
        switch.display().to_string()
    }

    fn is_counted_in(&self, sys: &Path) -> bool {
        let switch = home_of(sys, self.disk).join(SWITCH);
        parsed::<u8>(&switch) != Some(0)
    }

    pub(crate) fn is_there_in(&self, sys: &Path) -> bool {
        self.namesake(sys).is_some_and(|now| now.is_same(self))
    }

    /// The device that has this name and number now, unless that device has no size.
    fn namesake(&self, sys: &Path) -> Option<Device> {
        let entry = sys.join(CLASS).join(&self.name);
        let has_size = parsed::<u64>(&entry.join("size")).is_some_and(|sectors| sectors > 0);
        read(&entry).filter(|now| has_size && now.number == self.number)
    }
}

pub(crate) const SYS: &str = "/sys";
const CLASS: &str = "class/block";
const SWITCH: &str = "queue/iostats";

fn home_of(sys: &Path, number: Number) -> PathBuf {
    let Number { major, minor } = number;
    sys.join(format!("dev/block/{major}:{minor}"))
}

/// Whether a device has this number, be it one without a size.
pub(crate) fn exists(sys: &Path, number: Number) -> bool {
    home_of(sys, number).exists()
}

/// A device's reads and writes in flight. A device that no longer exists has none.
fn in_flight_in(sys: &Path, number: Number) -> u64 {
    let counts = fs::read_to_string(home_of(sys, number).join("inflight")).unwrap_or_default();
    let counts = counts.split_whitespace();
    counts.filter_map(|count| count.parse::<u64>().ok()).sum()
}

fn find_in(sys: &Path, words: &str) -> Result<Device, DeviceError> {
    let known = list(sys)?;
    let unknown = |why: &str| {
        let remedy = [why, &hint(sys, &known, words)].join("; ");
        DeviceError::Unknown {
            words: words.to_owned(),
            remedy: remedy.trim_start_matches("; ").to_owned(),
        }
    };
    if let Some(named) = known.iter().find(|device| device.name == words) {
        return Ok(named.clone());
    }
    let number = if words.contains('/') {
        number_of_file(Path::new(words), &known).map_err(|why| unknown(&why))?
    } else {
        parse_number(words).ok_or_else(|| unknown(""))?
    };
    let numbered = known.iter().find(|device| device.number == number);
    let missing = || unknown(&format!("the kernel has none with the number {number}"));
    numbered.cloned().ok_or_else(missing)
}

/// The number of a path's block device. If the path is not a block device, the error says which kind of file
/// it is.
fn number_of_file(path: &Path, known: &[Device]) -> Result<Number, String> {
    let file = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    })?;
    if file.file_type().is_block_device() {
        return Ok(stat_number(file.rdev()));
    }
    if file.file_type().is_char_device() {
        return Err("it is a character device".to_owned());
    }
    let what = if file.is_dir() {
        "a directory"
    } else {
        "a file"
    };
    let holder = known
        .iter()
        .find(|device| device.number == stat_number(file.dev()));
    Err(match holder {
        Some(device) => format!("it is {what} on '{}'", device.name),
        None => format!("it is {what}"),
    })
}

pub(crate) fn stat_number(dev: u64) -> Number {
    Number {
        major: rustix::fs::major(dev),
        minor: rustix::fs::minor(dev),
    }
}

/// Lists the devices that exist, and names the one that the user probably meant.
fn hint(sys: &Path, known: &[Device], words: &str) -> String {
    let last = words.rsplit('/').next().unwrap_or_default();
    let names = known.iter().map(|device| device.name.as_str());
    let near = names.min_by_key(|name| strsim::damerau_levenshtein(last, name));
    let is_near = |name: &&str| strsim::damerau_levenshtein(last, name) <= TYPOS_MAX;
    let present = known.iter().filter(|device| device.is_there_in(sys));
    let present: Vec<_> = present.map(|device| device.name.as_str()).collect();
    let there_are = if present.is_empty() {
        "there is none on this machine".to_owned()
    } else {
        format!("there are {}", present.join(", "))
    };
    match near.filter(is_near) {
        Some(name) if !last.is_empty() => format!("did you mean '{name}'? {there_are}"),
        _ => there_are,
    }
}

/// The most letters by which a mistyped name may differ from a device's name. Names of devices are short, so
/// a name in which more letters differ is not the one that the user meant.
const TYPOS_MAX: usize = 1;

/// Every block device of the kernel, sorted by name.
pub(crate) fn list(sys: &Path) -> Result<Vec<Device>, DeviceError> {
    let entries = fs::read_dir(sys.join(CLASS))?.flatten();
    // If a device cannot be read, it has just been removed, or its driver hides it.
    let mut devices: Vec<_> = entries.filter_map(|entry| read(&entry.path())).collect();
    devices.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(devices)
}

/// Reads a device from its directory. A partition's directory is inside the directory of its disk.
fn read(entry: &Path) -> Option<Device> {
    let home = fs::canonicalize(entry).ok()?;
    let is_part = home.join("partition").exists();
    let disk = if is_part { home.parent()? } else { &home };
    let part = is_part.then(|| sectors(&home));
    Some(Device {
        name: entry.file_name()?.to_str()?.to_owned(),
        number: number(&home)?,
        disk: number(disk)?,
        sequence: parsed(&disk.join("diskseq")),
        home: fs::metadata(disk).ok()?.ino(),
        part: match part {
            Some(sectors) => Some(sectors?),
            None => None,
        },
        layer: if disk.join("mq").is_dir() {
            Layer::Request
        } else {
            Layer::Bio
        },
    })
}

fn sectors(part: &Path) -> Option<Range<u64>> {
    let start: u64 = parsed(&part.join("start"))?;
    let size: u64 = parsed(&part.join("size"))?;
    Some(start..start.checked_add(size)?)
}

/// The number of the device in this directory of sysfs.
pub(crate) fn number(home: &Path) -> Option<Number> {
    parse_number(fs::read_to_string(home.join("dev")).ok()?.trim())
}

pub(crate) fn parsed<T: FromStr>(file: &Path) -> Option<T> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Parses `7,0`, or `7:0` as the kernel writes it.
fn parse_number(words: &str) -> Option<Number> {
    let (major, minor) = words.split_once([',', ':'])?;
    Some(Number {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests;
