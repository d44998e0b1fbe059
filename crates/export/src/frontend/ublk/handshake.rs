//! The properties of a device. A privileged process gives them to the driver before it hands the device
//! over.

use dashpot_sys::ublk::{Access, Geometry};

pub use super::wire::DATA_MAX;

/// The depth of the queue of a device. A lower depth would act like a hidden lane count.
pub const DEPTH: u16 = 256;

/// The geometry of a device: its size, its sector, and the smallest write that needs no read before it, in bytes.
pub fn geometry(size: u64, (sector, block): (u32, u32), read_only: bool) -> Geometry {
    Geometry {
        size,
        sector,
        block: block.max(sector),
        access: match read_only {
            true => Access::ReadOnly,
            false => Access::ReadWrite,
        },
        longest_io: DATA_MAX,
        longest_range: RANGE_MAX,
    }
}

/// The longest range of a discard: the length of a request has 32 bits.
const RANGE_MAX: u64 = 1 << 31;
