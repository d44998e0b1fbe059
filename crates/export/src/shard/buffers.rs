//! Payload buffers, which the shard keeps and uses again.

#[derive(Debug, Default)]
pub(super) struct Buffers {
    spare: Vec<Vec<u8>>,
}

impl Buffers {
    /// Takes an empty buffer with room for `length` bytes.
    pub(super) fn take(&mut self, length: u32) -> Vec<u8> {
        let mut buffer = self.spare(length);
        buffer.clear();
        buffer.reserve_exact(length as usize);
        buffer
    }

    /// Takes a buffer of `length` bytes. The caller must overwrite all of them, because they may be left over
    /// from an earlier use. Writing zeroes would take too long.
    pub(super) fn take_full(&mut self, length: u32) -> Vec<u8> {
        let mut buffer = self.spare(length);
        let length = length as usize;
        buffer.reserve_exact(length.saturating_sub(buffer.len()));
        buffer.resize(length, 0);
        buffer
    }

    /// Takes a buffer back.
    pub(super) fn give(&mut self, buffer: Vec<u8>) {
        if (1..=SPARE_LENGTH).contains(&buffer.capacity()) && self.spare.len() < SPARES {
            self.spare.push(buffer);
        }
    }

    fn spare(&mut self, length: u32) -> Vec<u8> {
        if length as usize <= SPARE_LENGTH {
            self.spare.pop().unwrap_or_default()
        } else {
            Vec::new()
        }
    }
}

/// The shard does not keep buffers that are longer than this, in bytes.
const SPARE_LENGTH: usize = 128 << 10;
/// How many unused buffers the shard keeps.
const SPARES: usize = 64;
