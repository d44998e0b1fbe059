//! Questions that `/proc` answers about the threads of a program.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;

/// The content of a file in `/proc`.
pub fn content(path: &str) -> Result<Vec<u8>, Errno> {
    std::fs::read(path).map_err(|error| errno(&error))
}

/// At most `length` bytes of a file such as `/proc/PID/mem`, from an address on. They are fewer if the memory
/// ends earlier.
pub fn memory(path: &str, address: u64, length: u32) -> Result<Vec<u8>, Errno> {
    let file = File::open(path).map_err(|error| errno(&error))?;
    let mut bytes = vec![0; length.min(MEMORY_MAX) as usize];
    let read = file.read_at(&mut bytes, address);
    let read = read.map_err(|error| errno(&error))?;
    bytes.truncate(read);
    Ok(bytes)
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The most bytes of memory that one question asks for: the length of the longest list of buffers that a call
/// takes.
const MEMORY_MAX: u32 = 1024 * 16;
