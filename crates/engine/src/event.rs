//! One event for each finished zio: all known facts about it, in a fixed size.

use alloc::vec::Vec;

use crate::client::ClientId;
use crate::inject::RuleId;
use crate::pool::stats::Class;
use crate::time::{Duration, Instant};
use crate::zio::{CallNumber, DiskId, Op, Outcome, VolumeId, Zio};

/// A finished zio. If the zio skipped a stage, the moment of that stage equals the moment of the previous
/// stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The zio's number. Unlike a [`ZioId`](crate::ZioId), a number is never used again.
    pub number: u64,
    /// The number of the volume's zio that caused this zio, or that has waited for it longest. `None` for a
    /// client's own zio, and for a zio that no client waits for, such as most writes of a txg.
    pub parent: Option<u64>,
    /// The zio's disk or volume.
    pub device: Device,
    /// The client that sent the zio. At a disk of a pool, the volume for which the pool sent the zio, or
    /// [`ClientId::POOL`].
    pub client: ClientId,
    /// The zio's class in the queue of a pool's disk.
    pub class: Option<Class>,
    /// Whether the zio's pool synced a txg at any time between the zio's arrival and end. `None` for a zio
    /// of a disk without a pool.
    pub txg_syncing: Option<bool>,
    /// The zio's operation.
    pub op: Op,
    /// Whether the zio had to be durable before its reply.
    pub fua: bool,
    /// The system call that the zio was, if a program made it.
    pub call: Option<CallNumber>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
    /// The number of zios that the disk or volume had in flight once this zio was submitted, including this
    /// zio.
    pub depth: u32,
    /// The zio's outcome.
    pub outcome: Outcome,
    /// When the zio's header was received, or the pool queued the zio.
    pub arrived: Instant,
    /// When the zio was completely received, or left the queue of its pool's disk. For a volume's zio, the
    /// wait for the throttle begins here.
    pub submitted: Instant,
    /// When the throttle admitted the zio, or the zio left the queue.
    pub admitted: Instant,
    /// When the zio was issued to the disk, after any suspension. The disk applied its rules at this moment.
    pub issued: Instant,
    /// When the driver asked the store to work. If a rule held the zio before the store's work, that hold is
    /// over at this moment.
    pub started: Instant,
    /// When the store finished its work.
    pub store_done: Instant,
    /// When the zio should have completed: at the end of its holds or of the store's work, whichever is
    /// later. A zio that failed while a rule held it ended earlier.
    pub target: Instant,
    /// When the zio's reply was offered to the transport.
    pub offered: Instant,
    /// When the transport accepted the zio's reply.
    pub ended: Instant,
    /// The rule that decided the zio's target or error.
    pub rule: Option<RuleId>,
    /// The index of the lane that the zio used, among the lanes of the deciding rule.
    pub lane: Option<u32>,
}

/// The disk or volume of a zio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    Disk(DiskId),
    Volume(VolumeId),
}

impl Event {
    /// The event of a new zio. All moments of the event are the moment of the zio's arrival.
    pub(crate) fn of<D>(zio: &Zio<D>, device: Device) -> Event {
        Event {
            number: 0,
            parent: None,
            device,
            client: zio.client,
            class: None,
            txg_syncing: None,
            op: zio.op,
            fua: zio.fua,
            call: zio.call,
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

/// The parts of a zio's total latency. The parts add up exactly to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Receiving: from the arrival of the zio's header until its payload was complete.
    pub recv: Duration,
    /// Waiting for the write throttle of the pool.
    pub throttle: Duration,
    /// Waiting in the queue of a pool's disk.
    pub queue: Duration,
    /// Waiting while the disk was suspended.
    pub suspend: Duration,
    /// The store's work; for a volume's zio, the work of the pool's disks.
    pub store: Duration,
    /// Being held by rules, before or after the store.
    pub hold: Duration,
    /// From the moment at which the zio should have completed until its reply was offered: the driver's own
    /// delay. The disk's histogram of lateness counts only zios that rules held.
    pub lateness: Duration,
    /// Replying: from the offer of the reply until the transport accepted it.
    pub reply: Duration,
}

impl Waits {
    /// The time from the arrival until the reply was accepted.
    pub fn total(&self) -> Duration {
        self.recv + self.throttle + self.queue + self.suspend + self.disk() + self.reply
    }

    /// The time at a volume, from the submission until the reply was offered. The time includes the wait
    /// for the throttle.
    pub fn volume(&self) -> Duration {
        self.throttle + self.disk()
    }

    /// The time at a disk, from the issue until the reply was offered.
    pub fn disk(&self) -> Duration {
        self.store + self.hold + self.lateness
    }
}

impl Event {
    /// The parts of the zio's latency.
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
            // The hold is what remains of the time between the issue and the offer. A hold can also precede
            // the store's work. If such a hold ends late, the store begins late, and that time is part of the
            // lateness: the target is then the moment at which the store would have finished if it had begun
            // in time.
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
