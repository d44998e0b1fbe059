//! GUIDs of disks. ZFS draws GUIDs at random and writes them to labels. A dashpot disk is identified by its
//! name, so its GUID is a hash of the name, and is the same in every daemon.

use std::fmt;

use serde::{Serialize, Serializer};

/// A GUID, as in `vdev:` and in the tables: sixteen hexadecimal digits without `0x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guid(pub(crate) u64);

/// The argument of `-d`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    Guid(Guid),
    Name(String),
}

impl Guid {
    /// The GUID of the disk with this name, by FNV-1a.
    pub fn of(name: &str) -> Guid {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        // The top bit is set in every GUID, so that all GUIDs have the same width: zinject prints them
        // without padding.
        const TOP: u64 = 1 << 63;
        let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        Guid(name.bytes().fold(OFFSET, step) | TOP)
    }
}

impl Device {
    /// Parses a GUID in decimal or, after `0x`, in hexadecimal. Any other text is a name.
    pub fn parse(text: &str) -> Device {
        let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        match number {
            Some(number) => Device::Guid(Guid(number)),
            None => Device::Name(text.to_owned()),
        }
    }

    /// The disk among `names` that this argument stands for.
    pub fn resolve<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        names.into_iter().find(|name| match self {
            Device::Guid(guid) => Guid::of(name) == *guid,
            Device::Name(wanted) => name == wanted,
        })
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Guid(guid) => write!(f, "0x{guid}"),
            Device::Name(name) => f.write_str(name),
        }
    }
}

impl Serialize for Guid {
    /// Serialises to a string, because a large number in JSON can lose its low digits.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{Device, Guid};

    #[test]
    fn a_name_has_one_guid_of_sixteen_digits() {
        assert_eq!(Guid::of("c1t1d0").to_string(), "ca6d5e4e118590d6");
        for name in ["a", "c1t2d0", "tank/foo"] {
            assert_eq!(Guid::of(name).to_string().len(), 16, "{name}");
        }
    }

    #[test]
    fn a_device_is_a_name_or_a_guid_in_either_base() {
        let guid = Guid::of("c1t1d0").0;
        let names = ["c1t2d0", "c1t1d0"];
        for text in ["c1t1d0", &format!("0x{guid:x}"), &guid.to_string()] {
            assert_eq!(Device::parse(text).resolve(names), Some("c1t1d0"), "{text}");
        }
        for text in ["c1t3d0", "17", &format!("{guid:x}")] {
            assert_eq!(Device::parse(text).resolve(names), None, "{text}");
        }
    }
}
