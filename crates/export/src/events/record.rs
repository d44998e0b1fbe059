//! The records in which a shard reports finished zios.

use dashpot_engine::inject::RuleId;
use dashpot_engine::pool::Class;
use dashpot_engine::{CallNumber, ClientId, Device, Duration, Event, Instant, Op, Outcome, Waits};

/// The number of a device in its events, unique across all shards. A disk's number is its index in the
/// configuration. The volumes' numbers follow those of the disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u16);

impl DeviceId {
    /// The id of the device with this index.
    pub fn of(index: usize) -> DeviceId {
        DeviceId(index as u16)
    }

    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// One record in a shard's ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventRecord {
    Zio(FinishedZio),
    /// A client has joined. From this record on, the client's id on the device stands for the client's name.
    Joined {
        /// The device to which the client is connected.
        device: DeviceId,
        client: ClientId,
        /// The client's name, such as `uid=0 pid=7` or an address.
        name: Box<str>,
    },
}

/// A finished zio of a served disk or volume, in 96 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedZio {
    /// When the shard received the zio's header.
    pub arrived: Instant,
    /// The offset of the first byte.
    pub offset: u64,
    /// For a zio of a volume, its own number. For a zio of a pool's disk, the number of the volume's zio that
    /// it belongs to, or [`NO_FAMILY`].
    family: u64,
    /// For a zio of a pool's disk, its time in the disk's queue. For other zios, the time that it took to
    /// receive them.
    before: Duration,
    /// The time for which the throttle of a volume's pool held the zio back. For zios of disks, the time for
    /// which the zio waited because the disk was suspended.
    held_back: Duration,
    store: Duration,
    hold: Duration,
    lateness: Duration,
    reply: Duration,
    /// The number of bytes.
    pub length: u32,
    /// The number of zios in flight on the device when this zio was submitted, including this zio.
    pub depth: u32,
    /// The rule that decided the zio's target or error, or [`NO_RULE`].
    rule: u32,
    /// The rule's lane that the zio used, or [`NO_LANE`].
    lane: u16,
    pub device: DeviceId,
    /// The client that sent the zio. For a zio of a pool's disk, this is the pool, or the volume for which
    /// the pool sent the zio.
    pub client: ClientId,
    place: Origin,
    /// The operation of the zio.
    pub op: Op,
    /// Whether the zio had to be durable before the device acknowledged it.
    pub fua: bool,
    /// The system call that the zio was, if a program made it.
    pub call: Option<CallNumber>,
    /// Whether the zio's pool was syncing a txg at any time between the zio's arrival and end. `None` for a
    /// zio of a disk without a pool.
    pub txg_syncing: Option<bool>,
    /// How the zio ended.
    pub outcome: Outcome,
}

/// The layer that a zio belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A zio of a volume.
    Volume,
    /// A zio that a client sent to a disk.
    Disk,
    /// A system call of a program, which a disk treats as a zio. The kernel executes the call after the
    /// reply.
    Call,
    /// A zio of a pool's disk that has gone through the disk's queue.
    Queue(Class),
    /// A zio that a pool sends to a disk outside of the queue, such as a flush.
    Sync,
}

impl Origin {
    fn of(event: &Event) -> Origin {
        match (event.device, event.class) {
            (Device::Volume(_), _) => Origin::Volume,
            (_, Some(class)) => Origin::Queue(class),
            (_, None) if event.parent.is_some() => Origin::Sync,
            (_, None) => Origin::Disk,
        }
    }
}

impl FinishedZio {
    /// Makes the record of a finished zio.
    #[inline]
    pub fn of(event: &Event, device: DeviceId) -> FinishedZio {
        let waits = event.waits();
        let place = Origin::of(event);
        let family = match place {
            Origin::Volume => event.number,
            _ => event.parent.unwrap_or(NO_FAMILY),
        };
        FinishedZio {
            arrived: event.arrived,
            offset: event.offset,
            family,
            // In each sum, at least one term is zero. Only zios from a disk's queue have `queue`, and they
            // have no `recv`. Only zios of volumes have `throttle`, and volumes are never suspended.
            before: waits.recv + waits.queue,
            held_back: waits.throttle + waits.suspend,
            store: waits.store,
            hold: waits.hold,
            lateness: waits.lateness,
            reply: waits.reply,
            length: event.length,
            depth: event.depth,
            rule: event.rule.map_or(NO_RULE, |rule| rule.0),
            lane: event.lane.map_or(NO_LANE, |lane| lane as u16),
            device,
            client: event.client,
            place,
            op: event.op,
            fua: event.fua,
            call: event.call,
            txg_syncing: event.txg_syncing,
            outcome: event.outcome,
        }
    }

    /// The same zio, marked as a call of a program.
    #[inline]
    pub(super) fn at_calls(self) -> FinishedZio {
        FinishedZio {
            place: Origin::Call,
            ..self
        }
    }

    /// Whether the zio's time in the store is known. For a call, it is known only if dashpot itself first did
    /// the sync that the call asks for.
    pub fn knows_store(&self) -> bool {
        self.place != Origin::Call || self.store > Duration::ZERO
    }

    /// The zio's waits, which show where its time went.
    pub fn waits(&self) -> Waits {
        let (recv, queue) = match self.place {
            Origin::Queue(_) => (Duration::ZERO, self.before),
            _ => (self.before, Duration::ZERO),
        };
        let (throttle, suspend) = match self.place {
            Origin::Volume => (self.held_back, Duration::ZERO),
            _ => (Duration::ZERO, self.held_back),
        };
        Waits {
            recv,
            throttle,
            queue,
            suspend,
            store: self.store,
            hold: self.hold,
            lateness: self.lateness,
            reply: self.reply,
        }
    }

    /// The time that the zio spent at its device, from its submission (volume) or issue (disk) until the
    /// reply was offered.
    pub fn at_device(&self) -> Duration {
        match self.place {
            Origin::Volume => self.waits().volume(),
            _ => self.waits().disk(),
        }
    }

    pub fn is_of_volume(&self) -> bool {
        self.place == Origin::Volume
    }

    /// The class of this zio in the queue of a pool's disk.
    pub fn class(&self) -> Option<Class> {
        match self.place {
            Origin::Queue(class) => Some(class),
            _ => None,
        }
    }

    /// For a zio of a volume, its own number. For a zio of a pool's disk, the number of the volume's zio that
    /// it belongs to, or `None` for the writes of a txg, for which no client waits.
    pub fn family(&self) -> Option<u64> {
        (self.family != NO_FAMILY).then_some(self.family)
    }

    /// When the transport accepted the reply.
    pub fn ended(&self) -> Instant {
        self.arrived + self.waits().total()
    }

    /// The rule that decided the zio's target or error.
    pub fn rule(&self) -> Option<RuleId> {
        (self.rule != NO_RULE).then_some(RuleId(self.rule))
    }

    /// The lane of the rule that the zio used, from 0.
    pub fn lane(&self) -> Option<u32> {
        (self.lane != NO_LANE).then_some(self.lane.into())
    }
}

/// Means that the zio belongs to no zio of a volume. The numbers of zios start at one.
const NO_FAMILY: u64 = 0;
/// Means that no rule decided the zio. Rules get ids in order, and no id ever gets this high.
const NO_RULE: u32 = u32::MAX;
/// Means that the zio used no lane. A rule has at most 65,534 lanes.
const NO_LANE: u16 = u16::MAX;
