//! The states of disks and pools at one moment, for the rest of the program.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_engine::pool::{PoolStats, Tunables};
use dashpot_engine::{
    ClientId, DepthSummary, DepthTimes, DiskStats, Duration, InFlight, Instant, RuleCounts,
    RuleStats, RuleView,
};

use crate::export::Mechanism;
use crate::held::Held;

/// The state of a disk or a volume at one moment. A volume has no rules, and is never suspended. All fields
/// are as of the moment `at`. The default stands for a disk about which nothing is known.
#[derive(Clone, Debug, Default)]
pub struct DiskSnapshot {
    /// The moment of the snapshot.
    pub at: Instant,
    /// Counters and histograms since the start.
    pub stats: DiskStats,
    /// The rules, in the order of their ids.
    pub rules: Vec<RuleSnapshot>,
    /// How many zios have no reply yet.
    pub in_flight_total: u32,
    /// The oldest zios in flight, as many as the caller asked for, the oldest first.
    pub in_flight: Vec<InFlight>,
    /// If the disk is suspended: since when, and for how long. The length is `None` if the suspension lasts
    /// until a command resumes the disk.
    pub suspended: Option<(Instant, Option<Duration>)>,
    /// How many I/Os of the disk rules have damaged, and how many of its bytes are wrong now.
    pub damaged: (u64, u64),
    /// Whether the power of the disk or volume is off.
    pub off: bool,
    /// The clients that are connected.
    pub clients: Vec<ClientView>,
    /// The ids and names of clients without a connection. Only a pool's disk has such clients: the pool and
    /// its volumes.
    pub volumes: Vec<(ClientId, String)>,
    /// The disk's attachments, which are block devices of the host.
    pub attachments: Vec<AttachmentView>,
    /// How many connections the shard does not read now, because clients already make the shard hold as much
    /// memory as they may.
    pub stalled: u32,
    /// How often, since the start, the shard has stopped reading a connection because clients already made
    /// the shard hold as much memory as they may.
    pub stalls: u64,
    /// The reason that the store can no longer be trusted, if there is one.
    pub faulted: Option<String>,
    /// How long the disk's shard left its sockets unread each time, not counting intended sleep.
    pub loop_gap: Box<Histogram>,
    /// The share of its time in which the disk's shard works.
    pub work: Work,
    /// How often the host kept the disk's shard from running.
    pub stops: Stops,
    /// The memory that clients make the disk's shard hold.
    pub held: Held,
}

/// The state of a pool at one moment.
#[derive(Clone, Debug)]
pub struct PoolSnapshot {
    /// The moment of the snapshot.
    pub at: Instant,
    /// The pool's counters since the start, and its state. The queues of its disks are in the order of the
    /// configuration.
    pub stats: PoolStats,
    pub tunables: Tunables,
    /// The number of bytes of memory that the pool's shard holds for blocks of volumes. The number covers all
    /// pools of the shard.
    pub memory: u64,
}

/// A rule at one moment.
#[derive(Clone, Debug)]
pub struct RuleSnapshot {
    pub id: RuleId,
    pub group: GroupId,
    /// The rule's specification: the zios that it matches, and its effect on them.
    pub spec: RuleSpec,
    /// When the rule was armed or last updated.
    pub armed: Instant,
    /// How many zios have matched for the rule's count, and when that count began.
    pub counted: (u64, Instant),
    /// Whether the rule rests now, because of its cycle.
    pub rests: bool,
    /// The rule's counters.
    pub stats: RuleStats,
    /// The number of zios that are in flight at the moment of the snapshot and whose target or error the rule
    /// decides.
    pub now: u64,
    /// The rule's counters since its last update; `None` if the rule was never updated.
    pub since_update: Option<Box<RuleCounts>>,
    /// How long until a lane of the rule is free. If the rule limits the bandwidth and the booked transfers
    /// end later than that, how long until all these transfers are done.
    pub backlog: Duration,
    /// In how many seconds the rule's shard was overloaded since the rule was armed or last updated.
    pub overloaded_seconds: u64,
    /// How often, since the rule was armed or last updated, the shard stopped reading a connection to the
    /// rule's disk because requests already used all the memory that they may use.
    pub stalls: u64,
    /// Statistics of the depth at the rule's disk since the rule was armed or last updated.
    pub depth: DepthSummary,
}

impl RuleSnapshot {
    /// The counters since the rule was armed or last updated. Also returns how many zios that were checked
    /// against the rule since then are in flight and have a target or error that the rule decides.
    pub fn present(&self) -> (&RuleStats, u64) {
        match &self.since_update {
            Some(since) => (&since.stats, since.now),
            None => (&self.stats, self.now),
        }
    }

    /// Makes the snapshot of a rule. `since` is what the shard has counted since the rule was armed or last
    /// updated.
    pub fn of(rule: RuleView<'_>, since: Counted) -> RuleSnapshot {
        let RuleCounts { stats, now } = rule.all();
        RuleSnapshot {
            id: rule.id,
            group: rule.group,
            spec: rule.spec.clone(),
            armed: rule.armed,
            counted: (rule.counted, rule.counted_from),
            rests: rule.rests,
            stats,
            now,
            since_update: rule.since_update().cloned().map(Box::new),
            backlog: rule.backlog,
            overloaded_seconds: since.overloaded_seconds,
            stalls: since.stalls,
            depth: since.depths.summary(),
        }
    }
}

/// The counts of a shard since its start, or since a rule was armed or last updated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// In how many seconds the shard was overloaded.
    pub overloaded_seconds: u64,
    /// How often the shard stopped reading a connection to the disk.
    pub stalls: u64,
    /// The time that the disk has spent at each depth.
    pub depths: DepthTimes,
}

/// A client of a disk.
#[derive(Clone, Debug)]
pub struct ClientView {
    /// The engine's id of the client, as in [`InFlight::client`].
    pub id: ClientId,
    /// The client's name, such as `uid=0 pid=7`, an address, or `other`.
    pub name: String,
    /// How many connections the client has to this disk.
    pub connections: u32,
}

/// An attachment of a disk or volume at one moment: the host's block device, and the process that asked for
/// it.
#[derive(Clone, Debug)]
pub struct AttachmentView {
    /// The device, such as `/dev/loop0`.
    pub node: String,
    /// How the device reaches the disk.
    pub mechanism: Mechanism,
    /// The process that attached the disk.
    pub by: String,
    /// When the shard began to serve the attachment.
    pub since: Instant,
    /// How many zios of the attachment have no reply yet.
    pub in_flight: u32,
}

/// The share of its time in which a shard works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The share of the last one or two seconds in which the shard worked, in percent.
    pub busy_percent: u32,
    /// Whether clients send the shard more requests than it can serve with the promised accuracy.
    pub overloaded: bool,
    /// In how many seconds since the start the shard was overloaded.
    pub overloaded_seconds: u64,
}

/// How often, and for how long, the host kept a shard from running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// The stops since the start.
    pub all: StopSum,
    /// The stops in the last 30 to 60 seconds.
    pub recent: StopSum,
    /// When the last stop ended.
    pub last: Option<Instant>,
}

/// A number of stops, with their total and longest length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopSum {
    /// The number of stops.
    pub count: u64,
    /// The total length of the stops.
    pub total: Duration,
    /// The length of the longest stop.
    pub longest: Duration,
}

impl StopSum {
    pub(crate) fn add(&mut self, length: Duration) {
        self.count += 1;
        self.total += length;
        self.longest = self.longest.max(length);
    }

    pub(crate) fn and(self, other: StopSum) -> StopSum {
        StopSum {
            count: self.count + other.count,
            total: self.total + other.total,
            longest: self.longest.max(other.longest),
        }
    }
}
