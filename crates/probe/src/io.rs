//! A finished I/O of a block device.

use std::fmt;
use std::sync::Arc;

use crate::device::Number;

/// A request that the device has finished; on a bio-based device, a bio. All times are on `CLOCK_MONOTONIC`,
/// in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Io {
    /// The disk, never a partition.
    pub device: Number,
    /// The operation, in the kernel's letters.
    pub rwbs: Rwbs,
    /// The first sector of 512 bytes; 0 for a flush.
    pub sector: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// When the I/O or, if it has several bios, its oldest bio was queued. `None` if the probe does not watch
    /// queueing or has not seen the I/O's queueing.
    pub queued_ns: Option<u64>,
    /// When the driver received the request or, for a bio, when the device received it.
    pub issued_ns: u64,
    /// When the I/O's last part was complete.
    pub completed_ns: u64,
    /// The errno with which the I/O ended, or 0.
    pub error: i32,
    /// How many bios and requests have joined this I/O.
    pub merged: u32,
    /// How often the driver has returned the I/O to the queue.
    pub requeued: u32,
    /// The thread that asked for the I/O, if the probe watches submitters and has seen the thread.
    pub submitter: Option<Submitter>,
}

impl Io {
    /// When the I/O was queued, or, if that is not known, when the driver received it.
    pub fn begun_ns(&self) -> u64 {
        self.queued_ns.unwrap_or(self.issued_ns)
    }
}

/// The thread that asked for an I/O.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Submitter {
    /// The thread's id.
    pub tid: i32,
    /// The thread's name.
    pub thread: Comm,
    /// The owner of the thread.
    pub owner: Owner,
}

/// The process and the cgroup of a thread, at the time when the thread asked for an I/O.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The process, if the probe watches processes. `None` also if no event has shown the thread and the
    /// thread has ended.
    pub process: Option<Process>,
    /// The path of the cgroup that governed the thread's I/O, if the probe watches cgroups; see
    /// [`crate::INHERITED`] and [`crate::GONE`].
    pub cgroup: Option<Arc<str>>,
}

/// A process: the threads that share an id for the kernel's users, `getpid`. A thread of the kernel is a
/// process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// The process's id, which is the id of its first thread.
    pub pid: i32,
    /// The name of its first thread, which is the program's name unless the thread has changed it; `None` if
    /// no event has shown that thread and the thread has ended.
    pub name: Option<Comm>,
}

/// The kernel's letters for an operation, such as `R`, `WS` or `FWFS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rwbs(Text);

/// The name of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Comm(Text);

/// Text as the kernel keeps it, which ends at the first zero byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Text([u8; 16]);

impl Text {
    /// The bytes up to the first zero. Bytes beyond 16 are cut off.
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

    /// The letter of the operation, without flags. It is `R`, `W`, `D` for a discard, `F` for a flush, or `N`
    /// for any other operation. An `F` before the operation is a flag that asks for a flush first.
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
