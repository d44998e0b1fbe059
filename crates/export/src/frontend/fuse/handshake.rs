//! The handshake: the kernel offers features, and the answer selects some of them.

use polyfuse_kernel::{
    FUSE_ASYNC_DIO, FUSE_ASYNC_READ, FUSE_BIG_WRITES, FUSE_KERNEL_VERSION, FUSE_MAX_PAGES,
    fuse_init_in, fuse_init_out,
};
use rustix::io::Errno;

use super::wire::DATA_MAX;

/// The answer to the kernel's first message.
pub(super) fn answer(init: fuse_init_in) -> Result<fuse_init_out, Errno> {
    let flags = init.flags & WANTED;
    if init.major != FUSE_KERNEL_VERSION || flags != WANTED {
        return Err(Errno::PROTO);
    }
    Ok(fuse_init_out {
        max_readahead: 0,
        flags,
        max_background: BACKGROUND,
        congestion_threshold: BACKGROUND,
        max_write: DATA_MAX,
        max_pages: (DATA_MAX / PAGE) as u16,
        time_gran: 1,
        ..fuse_init_out::default()
    })
}

/// The features without which a disk would be slower than its rules: direct I/O that does not wait for
/// earlier I/O, and requests of 1 MiB. All kernels since 4.20 have these features.
const WANTED: u32 = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_ASYNC_DIO | FUSE_MAX_PAGES;
/// How many requests the kernel may have in flight. The number is high because a low limit would act like a
/// hidden number of lanes. On hosts with little memory, the kernel may allow an unprivileged mount fewer
/// requests.
const BACKGROUND: u16 = 1024;
/// The size of the smallest page, which is the kernel's unit for the size of requests.
const PAGE: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::{DATA_MAX, WANTED, answer};
    use polyfuse_kernel::fuse_init_in;

    fn kernel(major: u32, flags: u32) -> fuse_init_in {
        fuse_init_in {
            major,
            minor: 45,
            max_readahead: 1 << 17,
            flags,
        }
    }

    #[test]
    fn a_kernel_that_would_hide_depth_is_refused() {
        let answered = answer(kernel(7, u32::MAX)).unwrap();
        assert_eq!(answered.flags, WANTED);
        assert_eq!(u32::from(answered.max_pages) * 4096, DATA_MAX);
        assert!(answered.max_background >= 512);
        assert!(answer(kernel(7, WANTED & (WANTED - 1))).is_err());
        assert!(answer(kernel(8, WANTED)).is_err());
    }
}
