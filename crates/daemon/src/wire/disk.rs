//! Disks and their latencies, from a snapshot.

use dashpot_api::{
    Attachment, Depth, DepthTime, Disk, DiskClient, DiskLatency, InFlightZio, MechanismWord,
    OpCount, OpLatency, Summary, Suspension, Wide, wait_word,
};
use dashpot_engine::histogram::{Histogram, LAYOUT, Sparse};
use dashpot_engine::{DepthTimes, InFlight, Instant, Op};
use dashpot_export::{AttachmentView, ClientView, DiskInfo, DiskSnapshot, Mechanism};

use super::memory::client_memory;
use super::shard::{load, stops};

/// A snapshot, with the fixed facts about the disk.
pub(crate) struct View<'a> {
    pub info: &'a DiskInfo,
    pub uris: &'a [String],
    /// When the daemon started.
    pub since: Instant,
    pub snapshot: &'a DiskSnapshot,
}

impl View<'_> {
    /// The disk, with the zios in flight of the snapshot.
    pub(crate) fn disk(&self) -> Disk {
        let View {
            info,
            uris,
            snapshot,
            ..
        } = self;
        let depths = snapshot.stats.depths.summary();
        Disk {
            name: info.name.clone(),
            uris: uris.to_vec(),
            store: info.store.clone(),
            store_id: info.store_id.clone(),
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
            clients: snapshot.clients.iter().map(disk_client).collect(),
            attachments: self.attachments(),
            stalled: snapshot.stalled,
            stalls: snapshot.stalls,
            loop_gap: Summary::of(Some(&snapshot.loop_gap)),
            shard_stops: stops(snapshot.stops, snapshot.at),
            shard_load: load(snapshot.work),
            shard_memory: client_memory(snapshot.held),
            rule_lateness: Summary::of(Some(&lateness_of_rules(snapshot))),
            in_flight: snapshot.in_flight_total,
            oldest: self.oldest().collect(),
            ops: Op::ALL.map(|op| op_count(snapshot, op)).to_vec(),
            aborted: snapshot.stats.aborted,
            busy_ns: depths.busy.as_nanos(),
            depth_time_ns: Wide(depths.depth_time),
            depth_times: depth_times(&snapshot.stats.depths),
            depth: Depth::of(depths),
        }
    }

    /// The zios in flight of the snapshot, the oldest first.
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

    fn attachments(&self) -> Vec<Attachment> {
        let attachments = self.snapshot.attachments.iter();
        let attachment = |view: &AttachmentView| Attachment {
            node: view.node.clone(),
            mechanism: match view.mechanism {
                Mechanism::Loop => MechanismWord::Loop,
                Mechanism::Nbd => MechanismWord::Nbd,
                Mechanism::Ublk => MechanismWord::Ublk,
            },
            by: view.by.clone(),
            age_ns: self.snapshot.at.since(view.since).as_nanos(),
            in_flight: view.in_flight,
        };
        attachments.map(attachment).collect()
    }

    fn suspension(&self) -> Option<Suspension> {
        let (since, lasts) = self.snapshot.suspended?;
        let age = self.snapshot.at.since(since);
        Some(Suspension {
            age_ns: age.as_nanos(),
            remaining_ns: lasts.map(|lasts| (lasts - age).as_nanos()),
        })
    }

    /// The disk's histograms. The `dropped` events are missing in the store's histograms and in
    /// breakdowns.
    pub(crate) fn latency(&self, ops: Vec<OpLatency>, dropped: u64) -> DiskLatency {
        let snapshot = self.snapshot;
        let depths = snapshot.stats.depths.summary();
        DiskLatency {
            disk: self.info.name.clone(),
            layout: LAYOUT.to_owned(),
            since_ns: self.since.as_nanos(),
            at_ns: snapshot.at.as_nanos(),
            busy_ns: depths.busy.as_nanos(),
            depth_time_ns: Wide(depths.depth_time),
            depth_times: depth_times(&snapshot.stats.depths),
            suspended_ns: snapshot.stats.suspended.as_nanos(),
            shard_stopped_ns: snapshot.stops.all.total.as_nanos(),
            in_flight: snapshot.in_flight_total,
            oldest: self.oldest().next(),
            dropped,
            ops,
        }
    }

    /// The counters of the data path, with the store's latencies by operation.
    pub(crate) fn ops(&self, store: impl Fn(Op) -> Sparse) -> Vec<OpLatency> {
        let op = |op| OpLatency::of(op, self.snapshot.stats.op(op), &store(op));
        Op::ALL.map(op).to_vec()
    }
}

/// A disk whose shard has failed: its facts at the start, and the reason.
pub(crate) fn failed_disk(info: &DiskInfo, uris: &[String], since: Instant, why: String) -> Disk {
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

fn disk_client(view: &ClientView) -> DiskClient {
    DiskClient {
        name: view.name.clone(),
        connections: view.connections,
    }
}

fn depth_times(depths: &DepthTimes) -> Vec<DepthTime> {
    let times = depths.times().map(|(depth, time)| DepthTime {
        depth,
        time_ns: time.as_nanos(),
    });
    times.collect()
}

fn op_count(snapshot: &DiskSnapshot, op: Op) -> OpCount {
    let stats = snapshot.stats.op(op);
    OpCount {
        op: op.name().to_owned(),
        completed: stats.completed,
        failed: stats.failed,
        bytes: stats.bytes,
    }
}

fn lateness_of_rules(snapshot: &DiskSnapshot) -> Histogram {
    let mut all = Histogram::default();
    let rules = snapshot.rules.iter();
    rules
        .filter_map(|rule| rule.stats.holds.lateness())
        .for_each(|lateness| all.merge(lateness));
    all
}
