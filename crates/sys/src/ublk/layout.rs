//! The structures that the driver and its users exchange.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A request, as the driver describes it (`ublksrv_io_desc`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Descriptor {
    /// The [operation](op) in the lowest byte, and [flags](flag) above it.
    pub op_flags: u32,
    /// The request's length, in sectors of 512 bytes.
    pub sectors: u32,
    /// The request's first sector of 512 bytes.
    pub first_sector: u64,
    /// The address of the request's data, which only other modes of the driver use.
    pub address: u64,
}

impl Descriptor {
    /// The operation.
    #[inline]
    pub fn op(&self) -> u8 {
        (self.op_flags & 0xff) as u8
    }

    /// Whether the request has a flag.
    #[inline]
    pub fn has(&self, flag: u32) -> bool {
        self.op_flags & flag != 0
    }
}

/// The operations of a [`Descriptor`].
pub mod op {
    /// Reads.
    pub const READ: u8 = 0;
    pub const WRITE: u8 = 1;
    /// Makes completed writes durable.
    pub const FLUSH: u8 = 2;
    /// Lets the device free the space of a range.
    pub const DISCARD: u8 = 3;
    /// Makes a range read as zeroes.
    pub const WRITE_ZEROES: u8 = 5;
}

/// The flags of a [`Descriptor`].
pub mod flag {
    /// The written data must be durable before the operation ends.
    pub const FUA: u32 = 1 << 13;
    /// The range that [`WRITE_ZEROES`](super::op::WRITE_ZEROES) fills must stay allocated.
    pub const NO_UNMAP: u32 = 1 << 15;
}

/// The offset on the character device at which the data of the request with this tag begins.
#[inline]
pub(super) fn data_offset(tag: u16) -> u64 {
    DATA + (u64::from(tag) << TAG_SHIFT)
}

/// The facts about a device (`ublksrv_ctrl_dev_info`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct DeviceInfo {
    pub(super) queues: u16,
    /// How many requests can be in flight.
    pub depth: u16,
    pub(super) state: u16,
    pub(super) _pad0: u16,
    /// The largest read or write, in bytes.
    pub longest_io: u32,
    /// The number of the device, as in `/dev/ublkc0`.
    pub number: u32,
    pub(super) server: i32,
    pub(super) _pad1: u32,
    pub(super) flags: u64,
    /// A number that the driver keeps for the process that made the device.
    pub mark: u64,
    pub(super) owner: [u32; 2],
    pub(super) _reserved: [u64; 2],
}

/// How programs may use a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Programs may read and write.
    ReadWrite,
    /// Programs may only read.
    ReadOnly,
}

/// The size of a device, and the properties that the driver reports to the block layer.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// The device's size, in bytes.
    pub size: u64,
    /// The device's sector size, in bytes: a power of two from 512 to 4096.
    pub sector: u32,
    /// The smallest write that needs no read before it, in bytes: a power of two, not less than `sector`.
    pub block: u32,
    /// How programs may use the device.
    pub access: Access,
    /// The largest read or write, in bytes.
    pub longest_io: u32,
    /// The longest range of a discard or of a command that writes zeroes, in bytes.
    pub longest_range: u64,
}

/// `ublk_params`, up to the last parameter that this crate uses.
#[derive(Debug, Default, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Params {
    length: u32,
    types: u32,
    attributes: u32,
    logical_shift: u8,
    physical_shift: u8,
    best_io_shift: u8,
    least_io_shift: u8,
    most_sectors: u32,
    chunk_sectors: u32,
    sectors: u64,
    virtual_boundary: u64,
    discard_alignment: u32,
    discard_granularity: u32,
    most_discard_sectors: u32,
    most_zero_sectors: u32,
    discard_segments: u16,
    _reserved: u16,
    // The kernel's structure is padded to a multiple of 8 bytes here.
    _pad: u32,
}

impl Params {
    pub(super) fn of(geometry: &Geometry) -> Params {
        let block_shift = geometry.block.trailing_zeros() as u8;
        let range = u32::try_from(geometry.longest_range / SECTOR).unwrap_or(u32::MAX);
        let mut params = Params {
            length: size_of::<Params>() as u32,
            types: TYPE_BASIC,
            attributes: ATTRIBUTE_VOLATILE_CACHE | ATTRIBUTE_FUA,
            logical_shift: geometry.sector.trailing_zeros() as u8,
            physical_shift: block_shift,
            best_io_shift: block_shift,
            least_io_shift: block_shift,
            most_sectors: geometry.longest_io / SECTOR as u32,
            sectors: geometry.size / SECTOR,
            ..Params::default()
        };
        match geometry.access {
            Access::ReadOnly => params.attributes |= ATTRIBUTE_READ_ONLY,
            Access::ReadWrite => {
                params.types |= TYPE_DISCARD;
                params.discard_granularity = geometry.block;
                params.most_discard_sectors = range;
                params.most_zero_sectors = range;
                params.discard_segments = 1;
            }
        }
        params
    }
}

/// A command for `/dev/ublk-control` (`ublksrv_ctrl_cmd`).
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct ControlCommand {
    pub(super) number: u32,
    pub(super) queue: u16,
    pub(super) length: u16,
    pub(super) address: u64,
    pub(super) data: u64,
    pub(super) path_length: u16,
    pub(super) _pad: u16,
    pub(super) _reserved: u32,
}

/// A command for a queue (`ublksrv_io_cmd`). The address is zero, because the driver itself copies no data.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct QueueCommand {
    pub(super) queue: u16,
    pub(super) tag: u16,
    pub(super) result: i32,
    pub(super) address: u64,
}

/// `UBLKSRV_IO_BUF_OFFSET`: where the data of requests begins on the character device.
const DATA: u64 = 0x8000_0000;
/// `UBLK_TAG_OFF`: the lowest bit of the tag in an offset. The queue's number, which has the bits above the
/// tag, is always 0.
const TAG_SHIFT: u32 = 25;
/// The driver's unit of length.
const SECTOR: u64 = 512;
const TYPE_BASIC: u32 = 1;
const TYPE_DISCARD: u32 = 1 << 1;
const ATTRIBUTE_READ_ONLY: u32 = 1;
const ATTRIBUTE_VOLATILE_CACHE: u32 = 1 << 2;
const ATTRIBUTE_FUA: u32 = 1 << 3;

#[cfg(test)]
mod tests {
    use super::{
        Access, ControlCommand, Descriptor, DeviceInfo, Geometry, Params, QueueCommand, flag, op,
    };
    use zerocopy::IntoBytes;

    #[test]
    fn the_structures_are_as_long_as_the_drivers() {
        assert_eq!(size_of::<Descriptor>(), 24);
        assert_eq!(size_of::<DeviceInfo>(), 64);
        assert_eq!(size_of::<ControlCommand>(), 32);
        assert_eq!(size_of::<QueueCommand>(), 16);
        // The length up to the field `ublk_param_devt`.
        assert_eq!(size_of::<Params>(), 64);
    }

    #[test]
    fn a_descriptor_has_an_operation_and_flags() {
        let descriptor = Descriptor {
            op_flags: u32::from(op::WRITE) | flag::FUA,
            ..Descriptor::default()
        };
        assert_eq!(descriptor.op(), op::WRITE);
        assert!(descriptor.has(flag::FUA) && !descriptor.has(flag::NO_UNMAP));
    }

    #[test]
    fn parameters_are_in_sectors_and_a_disk_for_reading_cannot_discard() {
        let mut geometry = Geometry {
            size: 1 << 20,
            sector: 4096,
            block: 8192,
            access: Access::ReadWrite,
            longest_io: 1 << 20,
            longest_range: 1 << 31,
        };
        let params = Params::of(&geometry);
        assert_eq!(params.as_bytes().len() as u32, params.length);
        assert_eq!((params.sectors, params.most_sectors), (2048, 2048));
        assert_eq!((params.logical_shift, params.physical_shift), (12, 13));
        assert_eq!(params.discard_granularity, 8192);
        assert_eq!((params.types, params.most_discard_sectors), (3, 1 << 22));
        geometry.access = Access::ReadOnly;
        let params = Params::of(&geometry);
        assert_eq!((params.types, params.attributes & 1), (1, 1));
    }
}
