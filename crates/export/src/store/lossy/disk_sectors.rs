//! The sectors of a disk.

/// The smallest piece of a torn write, in bytes.
pub(in crate::store) const SECTOR: u64 = 512;

/// The length of a sector in bytes. The last sector is shorter if the disk ends within it.
pub(super) fn length_of(index: u64, size: u64) -> usize {
    (size - index * SECTOR).min(SECTOR) as usize
}
