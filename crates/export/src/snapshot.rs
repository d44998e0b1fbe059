//! How a disk stands at one moment, as the rest of the program sees it.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_engine::{
    ClientId, DiskStats, Duration, InFlight, Instant, RuleStats, RuleView, SinceUpdate,
};

use crate::held::Held;

/// What a disk looks like at one moment. Everything in it is of that moment. The default is a disk
/// of which nothing is known.
#[derive(Clone, Debug, Default)]
pub struct DiskSnapshot {
    /// The moment.
    pub at: Instant,
    /// Counters and histograms since the start.
    pub stats: DiskStats,
    /// The rules, in the order of their ids.
    pub rules: Vec<RuleSnapshot>,
    /// How many zios have not been replied to.
    pub in_flight_total: u32,
    /// As many of them as were asked for, the oldest first.
    pub in_flight: Vec<InFlight>,
    /// Since when the disk is suspended, and how long it will be, if it is.
    pub suspended: Option<(Instant, Option<Duration>)>,
    /// Whether its power is off.
    pub off: bool,
    /// The clients that are connected.
    pub clients: Vec<ClientView>,
    /// Connections that the shard's memory bound keeps from being read, now.
    pub stalled: u32,
    /// Times that a connection was kept from being read, since the start.
    pub stalls: u64,
    /// Why the store can no longer be trusted, if it cannot.
    pub faulted: Option<String>,
    /// How long the shard of this disk did not look at its sockets beyond the time for which it
    /// meant to sleep, each time.
    pub loop_gap: Box<Histogram>,
    /// How much of its time that shard works.
    pub work: Work,
    /// How often the host kept that shard from running.
    pub stops: Stops,
    /// How much clients make that shard hold.
    pub held: Held,
}

/// A rule at one moment.
#[derive(Clone, Debug)]
pub struct RuleSnapshot {
    /// Its id.
    pub id: RuleId,
    /// Its group.
    pub group: GroupId,
    /// Its words: which zios it matches, and its effect on them.
    pub spec: RuleSpec,
    /// When it was armed or last updated.
    pub armed: Instant,
    /// Its counters.
    pub stats: RuleStats,
    /// Zios that have not ended and that it decides about, as things stand.
    pub now: u64,
    /// What it has counted since its last update; `None` if it was never updated.
    pub since_update: Option<Box<SinceUpdate>>,
    /// How far ahead its soonest lane is booked.
    pub backlog: Duration,
    /// Seconds since it was armed or last updated in which its shard was overloaded.
    pub overloaded_seconds: u64,
}

impl RuleSnapshot {
    /// What it is judged by, and how many of it have not ended: of the zios that it met since it was
    /// armed or last updated.
    pub fn present(&self) -> (&RuleStats, u64) {
        match &self.since_update {
            Some(since) => (&since.stats, since.now),
            None => (&self.stats, self.now),
        }
    }

    /// A rule whose shard was overloaded for so many seconds since it was armed.
    pub fn of(rule: RuleView<'_>, overloaded_seconds: u64) -> RuleSnapshot {
        RuleSnapshot {
            id: rule.id,
            group: rule.group,
            spec: rule.spec.clone(),
            armed: rule.armed,
            stats: rule.stats.clone(),
            now: rule.now,
            since_update: rule.since_update.cloned().map(Box::new),
            backlog: rule.backlog,
            overloaded_seconds,
        }
    }
}

/// A client of a disk.
#[derive(Clone, Debug)]
pub struct ClientView {
    /// The engine's id for it, as in [`InFlight::client`].
    pub id: ClientId,
    /// `uid=0 pid=7`, an address, or `other`.
    pub name: String,
    /// Its connections to this disk.
    pub connections: u32,
}

/// How much of its time a shard works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The share of the last second or two, in percent.
    pub busy_percent: u32,
    /// Whether clients ask it for more than accuracy is promised for.
    pub overloaded: bool,
    /// Seconds since the start in which it was.
    pub overloaded_seconds: u64,
}

/// How often and for how long the host kept a shard from running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// Since the start.
    pub all: StopSum,
    /// In the last 30 to 60 seconds.
    pub recent: StopSum,
    /// When the last one ended.
    pub last: Option<Instant>,
}

/// Stops, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopSum {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total: Duration,
    /// The longest of them.
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
