//! A finished I/O of a block device.

use std::fmt;

use crate::device::Number;

/// A request, or on a bio-based device a bio, that the device has finished. Moments are of
/// `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The disk, never a partition.
    pub device: Number,
    /// What it did, in the kernel's letters.
    pub rwbs: Rwbs,
    /// First sector of 512 bytes; nothing of a flush.
    pub sector: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// When it was queued, or the oldest of the bios in it, if queueing is watched and was seen.
    pub queued_ns: Option<u64>,
    /// When the driver was given it; of a bio, when it was handed to the device.
    pub issued_ns: u64,
    /// When its last part was complete.
    pub completed_ns: u64,
    /// The errno that it ended with, or 0.
    pub error: i32,
    /// Bios and requests that had joined it.
    pub merged: u32,
    /// Times that the driver gave it back.
    pub requeued: u32,
    /// Who asked for it, if that is watched and was seen.
    pub submitter: Option<Submitter>,
}

/// The task that asked for an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Submitter {
    /// Its thread id.
    pub pid: i32,
    /// Its name.
    pub comm: Comm,
}

/// The kernel's letters for what an I/O does: `R`, `WS`, `FWFS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rwbs(Text);

/// The name of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Comm(Text);

/// Text that ends with the first zero, as the kernel keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Text([u8; 16]);

impl Text {
    /// The bytes up to the first zero; what is beyond 16 is cut off.
    fn new(bytes: &[u8]) -> Text {
        let mut text = [0; 16];
        let ended = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        let length = ended.len().min(text.len());
        text[..length].copy_from_slice(&ended[..length]);
        Text(text)
    }

    fn bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|&byte| byte == 0);
        &self.0[..end.unwrap_or(self.0.len())]
    }
}

impl Rwbs {
    /// Reads the kernel's letters.
    pub fn new(bytes: &[u8]) -> Rwbs {
        Rwbs(Text::new(bytes))
    }

    /// The letters.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The letter of the operation, without those of how it is to be done: `R`, `W`, `D` for a
    /// discard, `F` for a flush, `N` for anything else. An `F` before it asks for a flush first.
    pub fn operation(&self) -> u8 {
        match self.bytes() {
            [b'F', operation, ..] | [operation, ..] => *operation,
            [] => b'N',
        }
    }
}

impl Comm {
    /// Reads a task's name.
    pub fn new(bytes: &[u8]) -> Comm {
        Comm(Text::new(bytes))
    }

    /// The name's bytes, which need not be UTF-8.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl fmt::Display for Rwbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.bytes()))
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.bytes()))
    }
}
