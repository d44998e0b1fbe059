//! How the rest of the program talks to the shards: messages to their mailboxes.
//!
//! Every call returns at once; its answer comes on the shard's thread, after the change took
//! effect. The caller hands over a closure that must do no more than pass the answer on.

use std::sync::Arc;

use dashpot_engine::histogram::Histogram;
use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_engine::{
    Answer, Command, CommandError, DiskId, DiskStats, Duration, InFlight, Instant, RuleStats,
    RuleView,
};

use crate::clock;
use crate::events::Drops;
use crate::power::{Cut, CutError, Loss};
use crate::prober::{ProbeReading, Readings};
use crate::route::Route;
use crate::shard::Message;
use crate::shard::load_meter::Work;
use crate::shard::stops::Stops;

/// One served disk, as it was started.
#[derive(Clone, Debug)]
pub struct DiskInfo {
    /// Its name, which is also its export name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The smallest read or write, in bytes.
    pub block: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// What its store is, in the words of the lab file: `ram`, `file:/path`.
    pub store: String,
    /// The shard that owns it.
    pub shard: usize,
}

/// The shard is gone: it panicked, and its exports fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shard of this disk has failed; see the daemon's log, and restart it")]
pub struct ShardGone;

/// What a disk looks like at one moment. Everything in it is of that moment.
#[derive(Clone, Debug)]
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
    /// Who is connected.
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
}

/// A rule at one moment.
#[derive(Clone, Debug)]
pub struct RuleSnapshot {
    /// Its id.
    pub id: RuleId,
    /// Its group.
    pub group: GroupId,
    /// What it says.
    pub spec: RuleSpec,
    /// When it was armed or last updated.
    pub armed: Instant,
    /// What it has counted.
    pub stats: RuleStats,
    /// Zios that have not ended and that it decides about, as things stand.
    pub now: u64,
    /// How far ahead its soonest lane is booked.
    pub backlog: Duration,
    /// Seconds since it was armed or last updated in which its shard was overloaded.
    pub overloaded_seconds: u64,
}

impl RuleSnapshot {
    /// A rule whose shard was overloaded for so many seconds since it was armed.
    pub fn of(rule: RuleView<'_>, overloaded_seconds: u64) -> RuleSnapshot {
        RuleSnapshot {
            id: rule.id,
            group: rule.group,
            spec: rule.spec.clone(),
            armed: rule.armed,
            stats: rule.stats.clone(),
            now: rule.now,
            backlog: rule.backlog,
            overloaded_seconds,
        }
    }
}

/// A client of a disk.
#[derive(Clone, Debug)]
pub struct ClientView {
    /// The engine's id for it, as in [`InFlight::client`].
    pub id: dashpot_engine::ClientId,
    /// `uid=0 pid=7`, an address, or `other`.
    pub name: String,
    /// Its connections to this disk.
    pub connections: u32,
}

/// A way to reach the shards of a running server. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    disks: Arc<[DiskInfo]>,
    routes: Arc<[Route]>,
    /// By shard.
    readings: Arc<[Arc<Readings>]>,
    spins: bool,
}

impl Handle {
    pub(crate) fn new(
        disks: Vec<DiskInfo>,
        routes: Vec<Route>,
        readings: Vec<Arc<Readings>>,
        spins: bool,
    ) -> Handle {
        Handle {
            disks: disks.into(),
            routes: routes.into(),
            readings: readings.into(),
            spins,
        }
    }

    /// The served disks, in the order of the configuration. Calls name a disk by its index here.
    pub fn disks(&self) -> &[DiskInfo] {
        &self.disks
    }

    /// Whether the shards meet their deadlines by spinning.
    pub fn spins(&self) -> bool {
        self.spins
    }

    /// What the probe of a shard has found in the last minute, the oldest first; the last one is of
    /// a question that is still open, if it has been for long. Nothing if nothing was asked of the
    /// shard.
    pub fn probe(&self, shard: usize) -> Vec<ProbeReading> {
        let readings = self.readings.get(shard);
        readings.map_or_else(Vec::new, |readings| readings.last_minute(clock::now()))
    }

    /// Whether the shard of a disk is there. Does not ask it.
    pub fn is_served(&self, disk: usize) -> Result<(), ShardGone> {
        match self.route(disk)?.mailbox.is_closed() {
            true => Err(ShardGone),
            false => Ok(()),
        }
    }

    /// Sends a command to the shard of a disk. `build` gets the disk's id in its shard.
    pub fn command(
        &self,
        disk: usize,
        build: impl FnOnce(DiskId) -> Command,
        answer: impl FnOnce(Result<Answer, CommandError>) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.route(disk)?;
        let command = build(route.disk);
        send(route, Message::Command(command, Box::new(answer)))
    }

    /// Takes a snapshot of a disk, with the `oldest` of the zios in flight. To look for those
    /// takes the shard time that it could spend on the others, so ask for none that are not needed.
    pub fn snapshot(
        &self,
        disk: usize,
        oldest: usize,
        answer: impl FnOnce(DiskSnapshot) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.route(disk)?;
        send(
            route,
            Message::Snapshot(route.disk, oldest, Box::new(answer)),
        )
    }

    /// Answers when the events of all zios of the disk's shard that have finished can be read, with
    /// those that the shard had to drop.
    pub fn flush_events(
        &self,
        disk: usize,
        answer: impl FnOnce(Drops) + Send + 'static,
    ) -> Result<(), ShardGone> {
        send(self.route(disk)?, Message::Events(Box::new(answer)))
    }

    /// Cuts the power of a disk on a `lossy` store, or gives it back.
    pub fn cut(
        &self,
        disk: usize,
        cut: Cut,
        answer: impl FnOnce(Result<Loss, CutError>) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.route(disk)?;
        send(route, Message::Cut(route.disk, cut, Box::new(answer)))
    }

    /// Ends the grace period of a shutdown that is going on: what is held fails now.
    pub fn hurry(&self) {
        for route in self.routes.iter() {
            // A shard that is gone needs not hurry.
            let _ = send(route, Message::Shutdown(Duration::ZERO));
        }
    }

    fn route(&self, disk: usize) -> Result<&Route, ShardGone> {
        self.routes.get(disk).ok_or(ShardGone)
    }
}

fn send(route: &Route, message: Message) -> Result<(), ShardGone> {
    route.mailbox.send(message).map_err(|_| ShardGone)
}
