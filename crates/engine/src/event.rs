//! One event for each finished zio: all that can be known of it, in a fixed size.

use alloc::vec::Vec;

use crate::client::ClientId;
use crate::inject::RuleId;
use crate::pool::stats::Class;
use crate::time::{Duration, Instant};
use crate::zio::{DiskId, Op, Outcome, VolumeId, Zio};

/// A finished zio. Moments that it did not come by repeat the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number: unlike a [`ZioId`](crate::ZioId), never used again.
    pub number: u64,
    /// The number of the volume's zio that it is a part of, or that waits for it. What a txg writes
    /// has none: no client waits for it.
    pub parent: Option<u64>,
    /// What it was for.
    pub device: Device,
    /// Who sent it.
    pub client: ClientId,
    /// Its class in the queue of a pool's disk.
    pub class: Option<Class>,
    /// What it did.
    pub op: Op,
    /// Whether it had to be durable before it was acknowledged.
    pub fua: bool,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Its header was received, or the pool queued it.
    pub arrived: Instant,
    /// It was complete. For a volume's zio its throttle wait begins here.
    pub submitted: Instant,
    /// It was admitted, or left the queue.
    pub admitted: Instant,
    /// It was issued to the disk, after any suspension: rules were asked.
    pub issued: Instant,
    /// The store was asked, after any hold before it.
    pub started: Instant,
    /// The store had worked.
    pub store_done: Instant,
    /// The earliest moment at which it might complete, the store's work included. A zio that failed
    /// while it was held ended before.
    pub target: Instant,
    /// Its reply was offered to the transport.
    pub offered: Instant,
    /// Its reply was accepted.
    pub ended: Instant,
    /// The rule that decided its target, or the error that it ended with.
    pub rule: Option<RuleId>,
    /// Which lane of that rule it was given, from 0.
    pub lane: Option<u32>,
}

/// What a zio was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// A disk.
    Disk(DiskId),
    /// A volume.
    Volume(VolumeId),
}

impl Event {
    /// What a zio says of itself; its moments are all that of its arrival.
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

/// Where a zio's time went. The waits add up to its total latency, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// From its header until its payload was complete.
    pub recv: Duration,
    /// For its pool's write throttle.
    pub throttle: Duration,
    /// In the queue of a pool's disk.
    pub queue: Duration,
    /// While its disk was suspended.
    pub suspend: Duration,
    /// For the store; of a volume's zio, for the disks of its pool.
    pub store: Duration,
    /// Held by rules, before the store or after it.
    pub hold: Duration,
    /// From the moment at which it was to complete until its reply was offered: the driver's own
    /// error. The disk's histogram of it has that of zios that were held only.
    pub lateness: Duration,
    /// Until the transport accepted the reply.
    pub reply: Duration,
}

impl Waits {
    /// From the arrival until the reply was accepted.
    pub fn total(&self) -> Duration {
        self.recv + self.throttle + self.queue + self.suspend + self.disk() + self.reply
    }

    /// From the issue until the reply was offered.
    pub fn disk(&self) -> Duration {
        self.store + self.hold + self.lateness
    }
}

impl Event {
    /// Where its time went.
    #[inline]
    pub fn waits(&self) -> Waits {
        let before = self.submitted.since(self.arrived);
        // What a pool sends to a disk has no header to be received.
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
            // What else there was between the issue and the offer. How late a hold before the store
            // ended is in the target, which is when the store would have worked had it been asked
            // in time.
            hold: self.offered.since(self.issued) - store - lateness,
            lateness,
            reply: self.ended.since(self.offered),
        }
    }
}

/// The events of an engine, if anybody wants them, and the numbers of its zios.
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
