//! Which block device is meant, and how it can be watched.

use std::fmt;
use std::io;
use std::ops::Range;

/// A device's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    /// The driver's.
    pub major: u32,
    /// The device's.
    pub minor: u32,
}

/// A block device of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name: `vda`, `loop0`, `vda1`.
    pub name: String,
    /// Its own number.
    pub number: Number,
    /// The number of the disk that it is, or is a part of: the one that events carry.
    pub disk: Number,
    /// Its sectors of that disk, if it is a partition.
    pub part: Option<Range<u64>>,
    /// Where its I/O can be seen.
    pub layer: Layer,
}

/// Which events show a device's I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Those of requests.
    Request,
    /// Those of bios: dm, md, zram and others have no requests.
    Bio,
}

/// Why no device was found.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The kernel has no block device of these words.
    #[error("'{words}' is no block device: {remedy}")]
    Unknown {
        /// What was asked for.
        words: String,
        /// What there is instead.
        remedy: String,
    },
    /// The kernel does not say what it has.
    #[error("/sys/class/block cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

impl Device {
    /// The device of a name (`loop0`), a path (`/dev/loop0`) or a number (`7,0`).
    pub fn find(words: &str) -> Result<Device, DeviceError> {
        let _ = words;
        unimplemented!()
    }

    /// Every whole disk that has a size, by name.
    pub fn all() -> Result<Vec<Device>, DeviceError> {
        unimplemented!()
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.major, self.minor)
    }
}
