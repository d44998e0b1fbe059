//! One event for each finished zio: all known facts about it, in a fixed size.

use alloc::vec::Vec;

use crate::client::ClientId;
use crate::inject::RuleId;
use crate::pool::stats::Class;
use crate::time::{Duration, Instant};
use crate::zio::{DiskId, Op, Outcome, VolumeId, Zio};

/// A finished zio. If it skipped a stage, the moment of that stage equals the moment before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number. Unlike a [`ZioId`](crate::ZioId), it is never used again.
    pub number: u64,
    /// The number of the volume's zio to which this zio belongs, or which waits for it. Writes of a txg
    /// have no such number, because no client waits for them.
    pub parent: Option<u64>,
    /// Its disk or volume.
    pub device: Device,
    /// The client that sent it; at a disk of a pool, the volume for which it was sent.
    pub client: ClientId,
    /// The zio's class in the queue of a pool's disk.
    pub class: Option<Class>,
    /// Its operation.
    pub op: Op,
    /// Whether the zio had to be durable before its reply.
    pub fua: bool,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
    /// How many zios its disk or volume had once it was submitted, itself included.
    pub depth: u32,
    /// Its outcome.
    pub outcome: Outcome,
    /// When its header was received, or the pool queued it.
    pub arrived: Instant,
    /// When it was complete. For a volume's zio the throttle wait begins here.
    pub submitted: Instant,
    /// When it was admitted, or left the queue.
    pub admitted: Instant,
    /// When it was issued to the disk, after any suspension. Rules were asked at this moment.
    pub issued: Instant,
    /// When the store was asked, after any hold before it.
    pub started: Instant,
    /// When the store had done its work.
    pub store_done: Instant,
    /// The earliest moment at which it might complete, including the store's work. A zio that
    /// failed while it was held ended earlier.
    pub target: Instant,
    /// When its reply was offered to the transport.
    pub offered: Instant,
    /// When the transport accepted its reply.
    pub ended: Instant,
    /// The rule that decided its target or its error.
    pub rule: Option<RuleId>,
    /// The lane of that rule that the zio used, from 0.
    pub lane: Option<u32>,
}

/// The disk or volume of a zio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// A disk.
    Disk(DiskId),
    /// A volume.
    Volume(VolumeId),
}

impl Event {
    /// The event of a new zio. All moments of the event are the moment of its arrival.
    pub(crate) fn of<D>(zio: &Zio<D>, device: Device) -> Event {
        Event {
            number: 0,
            parent: None,
            device,
            client: zio.client,
            class: None,
            op: zio.op,
            fua: zio.fua,
            offset: zio.offset,
            length: zio.length,
            depth: 0,
            outcome: Ok(()),
            arrived: zio.arrived,
            submitted: zio.arrived,
            admitted: zio.arrived,
            issued: zio.arrived,
            started: zio.arrived,
            store_done: zio.arrived,
            target: zio.arrived,
            offered: zio.arrived,
            ended: zio.arrived,
            rule: None,
            lane: None,
        }
    }
}

/// The parts of a zio's total latency. They add up to it exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Receiving: from its header until its payload was complete.
    pub recv: Duration,
    /// Waiting for its pool's write throttle.
    pub throttle: Duration,
    /// Waiting in the queue of a pool's disk.
    pub queue: Duration,
    /// Waiting while its disk was suspended.
    pub suspend: Duration,
    /// The store's work; for a volume's zio, the work of the pool's disks.
    pub store: Duration,
    /// Being held by rules, before or after the store.
    pub hold: Duration,
    /// From the moment at which it should have completed until its reply was offered: the driver's
    /// own error. The disk's histogram of lateness has only zios that were held.
    pub lateness: Duration,
    /// Until the transport accepted the reply.
    pub reply: Duration,
}

impl Waits {
    /// The time from the arrival until the reply was accepted.
    pub fn total(&self) -> Duration {
        self.recv + self.throttle + self.queue + self.suspend + self.disk() + self.reply
    }

    /// The time at a volume, from the submission until the reply was offered: the wait for the throttle is
    /// the volume's own.
    pub fn volume(&self) -> Duration {
        self.throttle + self.disk()
    }

    /// The time at a disk, from the issue until the reply was offered.
    pub fn disk(&self) -> Duration {
        self.store + self.hold + self.lateness
    }
}

impl Event {
    /// The parts of its latency.
    #[inline]
    pub fn waits(&self) -> Waits {
        let before = self.submitted.since(self.arrived);
        // The zios of a pool have no header to be received.
        let (recv, queue) = match self.class {
            None => (before, Duration::ZERO),
            Some(_) => (Duration::ZERO, before),
        };
        let store = self.store_done.since(self.started);
        let lateness = self.offered.since(self.target);
        Waits {
            recv,
            throttle: self.admitted.since(self.submitted),
            queue,
            suspend: self.issued.since(self.admitted),
            store,
            // The hold is the rest of the time between the issue and the offer. The target includes the
            // lateness of a hold before the store: it is the moment at which the store would have
            // finished if the driver had asked it in time.
            hold: self.offered.since(self.issued) - store - lateness,
            lateness,
            reply: self.ended.since(self.offered),
        }
    }
}

/// The engine's events, if they are switched on, and the numbers of its zios.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) wanted: bool,
    pub(crate) waiting: Vec<Event>,
    numbers: u64,
}

impl Events {
    /// A number that no zio has had.
    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}
