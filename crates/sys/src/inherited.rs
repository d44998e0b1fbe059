//! Descriptors that this process has inherited from the process that started it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

/// A new descriptor for the file that this process has inherited as `number`. Programs that this
/// process starts inherit neither of the two descriptors.
pub fn duplicate_inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number is not -1. The borrow is used for two calls, which fail with EBADF if no file
    // is open under this number. The calls close nothing, so the owner of that descriptor keeps it.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    let own = fcntl_dupfd_cloexec(inherited, FIRST_FREE)?;
    fcntl_setfd(inherited, FdFlags::CLOEXEC)?;
    Ok(own)
}

/// The lowest descriptor number after those of the standard streams.
const FIRST_FREE: RawFd = 3;

#[cfg(test)]
mod tests {
    use super::duplicate_inherited;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn it_is_the_same_file() {
        let (left, mut right) = UnixStream::pair().unwrap();
        let mut own = UnixStream::from(duplicate_inherited(left.as_raw_fd()).unwrap());
        drop(left);
        own.write_all(b"x").unwrap();
        let mut read = [0];
        right.read_exact(&mut read).unwrap();
        assert_eq!(read, *b"x");
    }

    #[test]
    fn a_number_without_a_file_is_refused() {
        assert!(duplicate_inherited(-1).is_err());
        assert!(duplicate_inherited(1_000_000).is_err());
    }
}
