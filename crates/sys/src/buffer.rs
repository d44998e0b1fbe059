//! Memory for direct I/O, for which the kernel requires an address that is a multiple of the device's block
//! size.

use std::fmt;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// A buffer whose address is a multiple of 4 KiB.
#[derive(Default)]
pub struct Buffer {
    pages: Vec<Page>,
    length: usize,
}

impl Buffer {
    /// Makes the buffer this many bytes long. Each byte is zero, or left over from the buffer's last use.
    pub fn of(mut self, length: usize) -> Buffer {
        let pages = length.div_ceil(PAGE);
        if pages > self.pages.len() {
            // If there is no memory, this allocation ends the process, as any other allocation would.
            self.pages = vec![Page::new_zeroed(); pages];
        }
        self.length = length;
        self
    }

    pub fn bytes(&self) -> &[u8] {
        &self.pages.as_bytes()[..self.length]
    }

    /// The buffer's bytes, for the caller to change.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.pages.as_mut_bytes()[..self.length]
    }

    /// How many bytes of memory the buffer takes.
    pub fn capacity(&self) -> usize {
        self.pages.len() * PAGE
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, FromBytes, Immutable, IntoBytes)]
#[repr(C, align(4096))]
struct Page([u8; PAGE]);

const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::{Buffer, PAGE};

    #[test]
    fn a_buffer_is_aligned_and_as_long_as_asked_for() {
        let mut buffer = Buffer::default();
        assert!(buffer.bytes().is_empty());
        for length in [1, PAGE, PAGE + 1, 512, 3 * PAGE] {
            buffer = buffer.of(length);
            assert_eq!(buffer.bytes_mut().len(), length);
            assert_eq!(buffer.bytes().as_ptr().addr() % PAGE, 0);
        }
        assert_eq!(buffer.of(512).capacity(), 3 * PAGE);
    }
}
