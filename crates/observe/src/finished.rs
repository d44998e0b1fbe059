//! The record of a finished I/O, from any source.

use dashpot_engine::Waits;

use super::kind::Kind;

/// An I/O that a disk, a volume or a device of the kernel has finished. A source leaves out the facts that it
/// does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedIo {
    /// The name of the device.
    pub device: String,
    /// The operation.
    pub kind: Kind,
    /// Whether it was a write that must be durable before its reply (FUA).
    pub fua: bool,
    /// The operation in the kernel's letters, if the kernel's events showed it.
    pub letters: Option<String>,
    /// Its first byte on the device.
    pub offset_bytes: u64,
    /// Its length.
    pub length_bytes: u64,
    /// When it arrived or was queued, on the clock of the source; when it was issued, if no event showed the
    /// queueing.
    pub begun_ns: u64,
    /// When it ended, on the same clock.
    pub ended_ns: u64,
    /// When it ended, in nanoseconds since 1970; in a simulation, since its beginning.
    pub at_ns: u64,
    /// The parts of its latency.
    pub waits: IoWaits,
    /// The client or the process that asked for it.
    pub who: Option<Who>,
    /// The id of the rule that decided its latency or its error.
    pub rule: Option<u32>,
    /// The lane of that rule that it used, from 0.
    pub lane: Option<u32>,
    /// How many bios and requests have joined it.
    pub merged: u32,
    /// How often the driver has returned it to the queue.
    pub requeued: u32,
    /// The error that it ended with, by its name in C or by its number.
    pub error: Option<String>,
}

/// The parts of a latency, as far as the source distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoWaits {
    /// The waits of one of dashpot's zios.
    Zio(Waits),
    /// The waits of one of the kernel's I/Os.
    Kernel {
        /// The time before the driver got it, if an event showed the queueing.
        queue_ns: Option<u64>,
        /// The time with the driver.
        device_ns: u64,
    },
}

/// The client or the thread that asked for an I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// A client of dashpot's, by its name.
    Client(String),
    /// A thread of this machine.
    Thread {
        /// Its id.
        pid: i32,
        /// Its name.
        comm: String,
    },
}

impl FinishedIo {
    /// The time from its beginning until its end.
    pub fn total_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.begun_ns)
    }
}
