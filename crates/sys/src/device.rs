//! System calls on block devices that no other crate offers as safe functions.

use std::os::fd::AsFd;

use rustix::ioctl::{Setter, ioctl, opcode};

/// Tells a block device that it may forget a range of bytes. The range is a whole number of blocks.
pub fn discard(device: impl AsFd, offset: u64, length: u64) -> rustix::io::Result<()> {
    // SAFETY: BLKDISCARD reads two numbers of 64 bits, offset and length, from its argument, and writes
    // nothing there. On a descriptor that is not a block device the call fails.
    unsafe {
        let call = Setter::<BLKDISCARD, [u64; 2]>::new([offset, length]);
        ioctl(device, call)
    }
}

/// `BLKDISCARD` of `linux/fs.h`.
const BLKDISCARD: u32 = opcode::none(0x12, 119);

#[cfg(test)]
mod tests {
    use super::discard;

    #[test]
    fn a_file_is_no_device() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let refused = discard(&file, 0, 4096);
        assert_eq!(refused, Err(rustix::io::Errno::NOTTY));
    }
}
