//! Payload bytes that clients make a shard hold: counted, bounded, and used again.
//!
//! The bound is checked before a connection is read, never in the middle of a request. So what is
//! held can pass it by what one pass over one connection brings: the largest payload.

/// The most payload bytes that a shard holds before it stops reading.
pub(crate) const PAYLOAD_MAX: u64 = 256 << 20;

#[derive(Debug, Default)]
pub(crate) struct Buffers {
    spare: Vec<Vec<u8>>,
    /// Bytes handed out.
    pub(crate) held: u64,
}

impl Buffers {
    /// An empty buffer for `length` bytes.
    pub(crate) fn take(&mut self, length: u32) -> Vec<u8> {
        let mut buffer = match length as usize <= SPARE_LENGTH {
            true => self.spare.pop().unwrap_or_default(),
            false => Vec::new(),
        };
        buffer.reserve_exact(length as usize);
        self.held += buffer.capacity() as u64;
        buffer
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        self.held = self.held.saturating_sub(buffer.capacity() as u64);
        if (1..=SPARE_LENGTH).contains(&buffer.capacity()) && self.spare.len() < SPARES {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

/// Buffers above this length are not kept.
const SPARE_LENGTH: usize = 128 << 10;
/// How many are kept.
const SPARES: usize = 64;
