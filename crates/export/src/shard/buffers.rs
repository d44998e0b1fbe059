//! Payload buffers, which the shard keeps and uses again.

#[derive(Debug, Default)]
pub(super) struct Buffers {
    spare: Vec<Vec<u8>>,
}

impl Buffers {
    /// Takes an empty buffer with room for `length` bytes.
    pub(super) fn take(&mut self, length: u32) -> Vec<u8> {
        let mut buffer = match length as usize <= SPARE_LENGTH {
            true => self.spare.pop().unwrap_or_default(),
            false => Vec::new(),
        };
        buffer.reserve_exact(length as usize);
        buffer
    }

    /// Takes a buffer back.
    pub(super) fn give(&mut self, mut buffer: Vec<u8>) {
        if (1..=SPARE_LENGTH).contains(&buffer.capacity()) && self.spare.len() < SPARES {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

/// The shard does not keep buffers that are longer than this, in bytes.
const SPARE_LENGTH: usize = 128 << 10;
/// How many unused buffers the shard keeps.
const SPARES: usize = 64;
