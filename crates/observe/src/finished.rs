//! The record of a finished I/O, from any source.

use std::sync::Arc;

use dashpot_engine::Waits;

use super::facts::Facts;
use super::kind::Kind;
use super::layer::Layer;
use super::who::{Thread, Who};

/// An I/O that a disk, a volume or a device of the kernel has finished. A source leaves out the facts that it
/// does not know. A source has many I/Os and few names, so the I/Os share the memory of the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedIo {
    /// The layer of the device: a volume, or a disk.
    pub layer: Layer,
    /// The name of the device.
    pub device: Arc<str>,
    /// The operation.
    pub kind: Kind,
    /// Whether the I/O was a write that must be durable before its reply (FUA).
    pub fua: bool,
    /// The operation in the kernel's letters, if the kernel's events showed it.
    pub letters: Option<Arc<str>>,
    /// The I/O's first byte on the device.
    pub offset_bytes: u64,
    /// The I/O's length.
    pub length_bytes: u64,
    /// How many I/Os the device had in flight when this I/O arrived, including this I/O.
    pub depth: Option<u32>,
    /// When the I/O arrived or was queued, on the clock of the source; when it was issued, if no event
    /// showed the queueing.
    pub begun_ns: u64,
    /// When the I/O ended, on the clock of the source.
    pub ended_ns: u64,
    /// When the I/O ended, in nanoseconds since 1970; in a simulation, since the simulation's beginning.
    pub at_ns: u64,
    /// The parts of the I/O's latency.
    pub waits: IoWaits,
    /// The client or the process that asked for the I/O.
    pub who: Option<Who>,
    /// The facts that only zios have.
    pub facts: Facts,
    /// The inode of the file, if the I/O is a program's call that syncs a file.
    pub inode: Option<u64>,
    /// How many bios and requests were merged into this I/O.
    pub merged: u32,
    /// How often the driver has returned the I/O to the queue.
    pub requeued: u32,
    /// The error with which the I/O ended: its name in C or its number.
    pub error: Option<String>,
}

/// The parts of a latency, as far as the source distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoWaits {
    /// The waits of one of dashpot's zios.
    Zio(Waits),
    /// The waits of a zio whose work the kernel does after dashpot has replied, so that the time in the store
    /// is not known.
    Call(Waits),
    /// The waits of one of the kernel's I/Os.
    Kernel {
        /// The time before the driver got the I/O, if an event showed the queueing.
        queue_ns: Option<u64>,
        /// The time for which the driver had the I/O.
        device_ns: u64,
    },
}

impl FinishedIo {
    /// An I/O of which only these facts are given. It begins and ends at 0, and has no waits.
    pub fn bare(layer: Layer, device: Arc<str>, kind: Kind) -> FinishedIo {
        FinishedIo {
            layer,
            device,
            kind,
            fua: false,
            letters: None,
            offset_bytes: 0,
            length_bytes: 0,
            depth: None,
            begun_ns: 0,
            ended_ns: 0,
            at_ns: 0,
            waits: IoWaits::Kernel {
                queue_ns: None,
                device_ns: 0,
            },
            who: None,
            facts: Facts::default(),
            inode: None,
            merged: 0,
            requeued: 0,
            error: None,
        }
    }

    /// Whether another I/O equals this I/O in all facts that are names, such as the device, the operation,
    /// the client, the class and the error.
    pub fn has_names_of(&self, other: &FinishedIo) -> bool {
        self.kind == other.kind
            && self.who == other.who
            && self.device == other.device
            && self.layer == other.layer
            && self.fua == other.fua
            && self.facts.has_names_of(&other.facts)
            && self.letters == other.letters
            && self.error == other.error
    }

    /// The client of dashpot that asked for the I/O.
    pub fn client(&self) -> Option<&str> {
        self.who.as_ref()?.client()
    }

    /// The thread of this machine that asked for the I/O.
    pub fn thread(&self) -> Option<&Thread> {
        self.who.as_ref()?.thread()
    }

    /// The time from the I/O's beginning until its end. A program's call counts as ended when dashpot lets it
    /// go on.
    pub fn total_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.begun_ns)
    }

    /// The time from the I/O's beginning until its end, if the source saw the end. The kernel does the work
    /// of a call after dashpot has let it go on, so a call's end is not known.
    pub fn known_total_ns(&self) -> Option<u64> {
        match &self.waits {
            IoWaits::Call(_) => None,
            IoWaits::Zio(_) | IoWaits::Kernel { .. } => Some(self.total_ns()),
        }
    }

    /// The time at the device, as reports count it. At a disk, this time lasts from the issue until the
    /// reply was offered. At a volume, this time includes the wait for the throttle. At a disk of the kernel,
    /// it is the time for which the driver had the I/O.
    pub fn at_device_ns(&self) -> u64 {
        self.waits.at_device_ns(self.layer)
    }

    /// The number of bytes that the I/O moved.
    pub fn bytes_done(&self) -> u64 {
        if self.has_moved() {
            self.length_bytes
        } else {
            0
        }
    }

    /// Whether the I/O moved its bytes. A failed zio moved none. A failed I/O of the kernel counts as having
    /// moved all of them, because no event says how many it moved.
    pub fn has_moved(&self) -> bool {
        self.waits.zio().is_none() || self.error.is_none()
    }
}

impl IoWaits {
    /// The waits, if they are a zio's.
    pub fn zio(&self) -> Option<&Waits> {
        match self {
            IoWaits::Zio(waits) | IoWaits::Call(waits) => Some(waits),
            IoWaits::Kernel { .. } => None,
        }
    }

    /// The time in the store, if the source knows it.
    pub fn in_store_ns(&self) -> Option<u64> {
        match self {
            IoWaits::Zio(waits) => Some(waits.store.as_nanos()),
            IoWaits::Call(_) | IoWaits::Kernel { .. } => None,
        }
    }

    /// The time in a queue, if the source knows it.
    pub fn in_queue_ns(&self) -> Option<u64> {
        match self {
            IoWaits::Zio(waits) | IoWaits::Call(waits) => Some(waits.queue.as_nanos()),
            IoWaits::Kernel { queue_ns, .. } => *queue_ns,
        }
    }

    /// The time at a device of this layer.
    pub fn at_device_ns(&self, layer: Layer) -> u64 {
        match (self, layer) {
            (IoWaits::Zio(waits) | IoWaits::Call(waits), Layer::Volume) => {
                waits.volume().as_nanos()
            }
            (IoWaits::Zio(waits) | IoWaits::Call(waits), _) => waits.disk().as_nanos(),
            (IoWaits::Kernel { device_ns, .. }, _) => *device_ns,
        }
    }
}
