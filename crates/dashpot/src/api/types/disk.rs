//! A disk at one moment.

use dashpot_engine::{InFlight, Instant, Op, Wait};
use dashpot_export::{ClientView, DiskInfo, DiskSnapshot};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::rule::Summary;
use super::{ClientMemory, Host, Load, Memory, Shard, Stops, VersionInfo, Wide};
use crate::promises::Promise;

/// What is served.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Status {
    #[serde(flatten)]
    pub(crate) version: VersionInfo,
    /// The daemon's process.
    pub(crate) pid: u32,
    /// Requests that can wait for the media of `file` disks at once.
    pub(crate) store_threads: usize,
    pub(crate) host: Host,
    pub(crate) shards: Vec<Shard>,
    pub(crate) memory: Memory,
    /// Which promises about time can hold on this host, now.
    pub(crate) promises: Vec<Promise>,
    /// The disks, in the order of the lab.
    pub(crate) disks: Vec<Disk>,
}

/// A disk and what it has counted since the start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Disk {
    /// Its name, which is also its export name.
    pub(crate) name: String,
    /// Where NBD clients reach it.
    pub(crate) uris: Vec<String>,
    /// What its store is.
    #[schema(example = "ram")]
    pub(crate) store: String,
    pub(crate) size_bytes: u64,
    /// The smallest read or write.
    pub(crate) block_bytes: u32,
    pub(crate) read_only: bool,
    /// The shard that owns it.
    pub(crate) shard: usize,
    /// The moment of all that follows.
    pub(crate) at_ns: u64,
    /// How many rules are armed.
    pub(crate) rules: usize,
    /// Whether it is suspended, and since when.
    pub(crate) suspended: Option<Suspension>,
    /// Whether it is off since a power cut, so that no client can connect.
    pub(crate) off: bool,
    /// Why its store can no longer be trusted, if it cannot.
    pub(crate) faulted: Option<String>,
    /// Why it is no longer served, if it is not. All that is counted is nothing then.
    pub(crate) failed: Option<String>,
    pub(crate) clients: Vec<DiskClient>,
    /// Connections that the bound on memory keeps from being read, now.
    pub(crate) stalled: u32,
    /// Times that a connection was kept from being read.
    pub(crate) stalls: u64,
    /// How long the disk's shard did not look at its sockets beyond the time for which it meant to
    /// sleep, each time since the start. Lateness cannot show it: a request that was not read yet had
    /// no target.
    pub(crate) loop_gap: Summary,
    /// How often the host kept that shard from running.
    pub(crate) shard_stops: Stops,
    /// How much of its time that shard works.
    pub(crate) shard_load: Load,
    /// What clients make that shard hold.
    pub(crate) shard_memory: ClientMemory,
    /// Zios not replied to.
    pub(crate) in_flight: u32,
    /// The oldest of them, as many as were asked for.
    pub(crate) oldest: Vec<InFlightZio>,
    /// What was done, by operation.
    pub(crate) ops: Vec<OpCount>,
    /// Zios whose connection was gone before their reply.
    pub(crate) aborted: u64,
    /// Time during which at least one zio was in flight.
    pub(crate) busy_ns: u64,
    /// The integral of the number of zios in flight.
    pub(crate) depth_time_ns: Wide,
}

/// A suspended disk.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Suspension {
    /// How long it has been.
    pub(crate) age_ns: u64,
    /// When it resumes by itself, from now.
    pub(crate) remaining_ns: Option<u64>,
}

/// A client of a disk. Not `Client`: generators give that name to their own.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiskClient {
    #[schema(example = "uid=1000 pid=4711")]
    pub(crate) name: String,
    pub(crate) connections: u32,
}

/// Counters of one operation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct OpCount {
    #[schema(example = "read")]
    pub(crate) op: String,
    /// Zios replied to, failed ones included.
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    /// Bytes of those that did not fail.
    pub(crate) bytes: u64,
}

/// A zio that has not been replied to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct InFlightZio {
    #[schema(example = "read")]
    pub(crate) op: String,
    pub(crate) client: String,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u32,
    /// Time since its arrival.
    pub(crate) age_ns: u64,
    /// Where it waits: `suspended`, `held-before`, `store`, `held`, `hung`, `reply`.
    pub(crate) wait: String,
    /// How long it has been in that wait.
    pub(crate) wait_ns: u64,
    /// The rule that holds it.
    pub(crate) rule: Option<u32>,
    /// Time until the earliest moment at which it may complete; none if it is not held, or hangs.
    pub(crate) remaining_ns: Option<u64>,
}

/// A snapshot, and the static facts around it.
pub(crate) struct View<'a> {
    pub(crate) info: &'a DiskInfo,
    pub(crate) uris: &'a [String],
    /// When the daemon started.
    pub(crate) since: Instant,
    pub(crate) snapshot: &'a DiskSnapshot,
}

impl View<'_> {
    /// The disk, with the zios in flight that the snapshot has.
    pub(crate) fn disk(&self) -> Disk {
        let View {
            info,
            uris,
            snapshot,
            ..
        } = self;
        Disk {
            name: info.name.clone(),
            uris: uris.to_vec(),
            store: info.store.clone(),
            size_bytes: info.size,
            block_bytes: info.block,
            read_only: info.read_only,
            shard: info.shard,
            at_ns: snapshot.at.as_nanos(),
            rules: snapshot.rules.len(),
            suspended: self.suspension(),
            off: snapshot.off,
            faulted: snapshot.faulted.clone(),
            failed: None,
            clients: snapshot.clients.iter().map(DiskClient::of).collect(),
            stalled: snapshot.stalled,
            stalls: snapshot.stalls,
            loop_gap: Summary::of(Some(&snapshot.loop_gap)),
            shard_stops: Stops::of(snapshot.stops, snapshot.at),
            shard_load: Load::of(snapshot.work),
            shard_memory: ClientMemory::of(snapshot.held),
            in_flight: snapshot.in_flight_total,
            oldest: self.oldest().collect(),
            ops: Op::ALL.map(|op| OpCount::of(snapshot, op)).to_vec(),
            aborted: snapshot.stats.aborted,
            busy_ns: snapshot.stats.busy.as_nanos(),
            depth_time_ns: Wide(snapshot.stats.depth_time),
        }
    }

    /// The zios in flight that the snapshot has, the oldest first.
    pub(crate) fn oldest(&self) -> impl Iterator<Item = InFlightZio> {
        let oldest = self.snapshot.in_flight.iter();
        oldest.map(|zio| self.in_flight(zio))
    }

    fn in_flight(&self, zio: &InFlight) -> InFlightZio {
        let at = self.snapshot.at;
        let held = zio.target.filter(|target| *target != Instant::NEVER);
        let mut clients = self.snapshot.clients.iter();
        let client = clients.find(|client| client.id == zio.client);
        InFlightZio {
            op: zio.op.name().to_owned(),
            client: client.map_or_else(|| "other".to_owned(), |client| client.name.clone()),
            offset_bytes: zio.offset,
            length_bytes: zio.length,
            age_ns: at.since(zio.arrived).as_nanos(),
            wait: wait_word(zio.wait).to_owned(),
            wait_ns: at.since(zio.since).as_nanos(),
            rule: zio.rule.map(|rule| rule.0),
            remaining_ns: held.map(|target| target.since(at).as_nanos()),
        }
    }

    fn suspension(&self) -> Option<Suspension> {
        let (since, lasts) = self.snapshot.suspended?;
        let age = self.snapshot.at.since(since);
        Some(Suspension {
            age_ns: age.as_nanos(),
            remaining_ns: lasts.map(|lasts| (lasts - age).as_nanos()),
        })
    }
}

impl Disk {
    /// A disk of which no more is known than what it was started as, and why that is so.
    pub(crate) fn failed(info: &DiskInfo, uris: &[String], since: Instant, why: String) -> Disk {
        let snapshot = &DiskSnapshot {
            at: since,
            ..DiskSnapshot::default()
        };
        let view = View {
            info,
            uris,
            since,
            snapshot,
        };
        Disk {
            failed: Some(why),
            ..view.disk()
        }
    }
}

impl DiskClient {
    fn of(view: &ClientView) -> DiskClient {
        DiskClient {
            name: view.name.clone(),
            connections: view.connections,
        }
    }
}

impl OpCount {
    fn of(snapshot: &DiskSnapshot, op: Op) -> OpCount {
        let stats = snapshot.stats.op(op);
        OpCount {
            op: op.name().to_owned(),
            completed: stats.completed,
            failed: stats.failed,
            bytes: stats.bytes,
        }
    }
}

/// Where a zio waits, in one word.
pub(crate) fn wait_word(wait: Wait) -> &'static str {
    match wait {
        Wait::Suspended => "suspended",
        Wait::HeldBefore => "held-before",
        Wait::Store => "store",
        Wait::Held => "held",
        Wait::Hung => "hung",
        Wait::Reply => "reply",
    }
}
