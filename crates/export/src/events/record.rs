//! The records in which a shard reports finished zios.

use dashpot_engine::inject::RuleId;
use dashpot_engine::{ClientId, Duration, Event, Instant, Op, Outcome, Waits};

/// The number of a device in its events: the disk's index in the configuration, unique across all
/// shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u16);

impl DeviceId {
    /// The id of the device with this index.
    pub fn of(index: usize) -> DeviceId {
        DeviceId(index as u16)
    }

    /// Its index.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// One record of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventRecord {
    /// A zio has finished.
    Zio(FinishedZio),
    /// From here on, a client's id on a device stands for this name.
    Joined {
        /// The device that it is a client of.
        device: DeviceId,
        /// The id.
        client: ClientId,
        /// `uid=0 pid=7`, or an address.
        name: Box<str>,
    },
}

/// A finished zio of a served disk, in 80 bytes: an [`Event`] without the parts that only zios of
/// pools have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedZio {
    /// When its header was received.
    pub arrived: Instant,
    /// First byte.
    pub offset: u64,
    recv: Duration,
    suspend: Duration,
    store: Duration,
    hold: Duration,
    lateness: Duration,
    reply: Duration,
    /// Number of bytes.
    pub length: u32,
    /// Its rule, or [`NO_RULE`].
    rule: u32,
    /// Its lane, or [`NO_LANE`].
    lane: u16,
    /// Its device.
    pub device: DeviceId,
    /// The client that sent it.
    pub client: ClientId,
    /// Its operation.
    pub op: Op,
    /// Whether it had to be durable before it was acknowledged.
    pub fua: bool,
    /// How it ended.
    pub outcome: Outcome,
}

impl FinishedZio {
    /// The record of a zio that belongs to no pool.
    #[inline]
    pub fn of(event: &Event, device: DeviceId) -> FinishedZio {
        let waits = event.waits();
        FinishedZio {
            arrived: event.arrived,
            offset: event.offset,
            recv: waits.recv,
            suspend: waits.suspend,
            store: waits.store,
            hold: waits.hold,
            lateness: waits.lateness,
            reply: waits.reply,
            length: event.length,
            rule: event.rule.map_or(NO_RULE, |rule| rule.0),
            lane: event.lane.map_or(NO_LANE, |lane| lane as u16),
            device,
            client: event.client,
            op: event.op,
            fua: event.fua,
            outcome: event.outcome,
        }
    }

    /// Where its time went.
    pub fn waits(&self) -> Waits {
        Waits {
            recv: self.recv,
            suspend: self.suspend,
            store: self.store,
            hold: self.hold,
            lateness: self.lateness,
            reply: self.reply,
            ..Waits::default()
        }
    }

    /// When the transport accepted its reply.
    pub fn ended(&self) -> Instant {
        self.arrived + self.waits().total()
    }

    /// The rule that decided its target or its error.
    pub fn rule(&self) -> Option<RuleId> {
        (self.rule != NO_RULE).then_some(RuleId(self.rule))
    }

    /// The lane of that rule that it was given, from 0.
    pub fn lane(&self) -> Option<u32> {
        (self.lane != NO_LANE).then_some(self.lane.into())
    }
}

/// Stands for no rule. Ids of rules grow by one and never get this far.
const NO_RULE: u32 = u32::MAX;
/// Stands for no lane. A rule has at most 65,534 lanes.
const NO_LANE: u16 = u16::MAX;
