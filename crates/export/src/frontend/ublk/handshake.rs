//! The properties of a ublk device. A privileged process gives them to the driver before it hands the device
//! over to the daemon.

use dashpot_sys::ublk::{Access, Geometry};

pub use super::wire::DATA_MAX;

/// The depth of a device's queue. A smaller depth would act like a hidden number of lanes.
pub const DEPTH: u16 = 256;

/// The geometry of a device, from its size, its sector, and the smallest write that needs no
/// read-modify-write, all in bytes.
pub fn geometry(size: u64, (sector, block): (u32, u32), read_only: bool) -> Geometry {
    Geometry {
        size,
        sector,
        block: block.max(sector),
        access: if read_only {
            Access::ReadOnly
        } else {
            Access::ReadWrite
        },
        longest_io: DATA_MAX,
        longest_range: RANGE_MAX,
    }
}

/// The longest range of a discard, in bytes. The length of a request must fit into 32 bits.
const RANGE_MAX: u64 = 1 << 31;
