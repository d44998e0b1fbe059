//! The clients, the I/O and the latencies of a disk or a volume, from a snapshot.

use dashpot_api::{
    Attachment, Depth, DepthTime, DeviceIo, DiskClient, DiskLatency, InFlightZio, MechanismWord,
    OpCount, OpLatency, Wide, wait_word,
};
use dashpot_engine::histogram::{LAYOUT, Sparse};
use dashpot_engine::{ClientId, DepthTimes, InFlight, Instant, Op};
use dashpot_export::{AttachmentView, ClientView, DiskSnapshot, Mechanism};
use dashpot_rules::call_name;

/// A snapshot, to be converted.
#[derive(Clone, Copy)]
pub(crate) struct DeviceView<'a>(pub(crate) &'a DiskSnapshot);

impl DeviceView<'_> {
    /// The clients and the I/O of the device, with the snapshot's zios in flight.
    pub(crate) fn io(&self) -> DeviceIo {
        let snapshot = self.0;
        let depths = snapshot.stats.depths.summary();
        DeviceIo {
            at_ns: snapshot.at.as_nanos(),
            clients: snapshot.clients.iter().map(disk_client).collect(),
            attachments: self.attachments(),
            stalled: snapshot.stalled,
            stalls: snapshot.stalls,
            in_flight: snapshot.in_flight_total,
            oldest: self.oldest().collect(),
            ops: shown(snapshot).map(|op| op_count(snapshot, op)).collect(),
            aborted: snapshot.stats.aborted,
            busy_ns: depths.busy.as_nanos(),
            depth_time_ns: Wide(depths.depth_time),
            depth_times: depth_times(&snapshot.stats.depths),
            depth: Depth::of(depths),
        }
    }

    /// The snapshot's zios in flight, the oldest first.
    pub(crate) fn oldest(&self) -> impl Iterator<Item = InFlightZio> {
        let oldest = self.0.in_flight.iter();
        oldest.map(|zio| self.in_flight(zio))
    }

    fn in_flight(&self, zio: &InFlight) -> InFlightZio {
        let at = self.0.at;
        let held = zio.target.filter(|target| *target != Instant::NEVER);
        InFlightZio {
            op: zio.op.name().to_owned(),
            call: zio.call.and_then(call_name).map(str::to_owned),
            client: self.name(zio.client).unwrap_or("other").to_owned(),
            offset_bytes: zio.offset,
            length_bytes: zio.length,
            age_ns: at.since(zio.arrived).as_nanos(),
            wait: wait_word(zio.wait).to_owned(),
            wait_ns: at.since(zio.since).as_nanos(),
            rule: zio.rule.map(|rule| rule.0),
            remaining_ns: held.map(|target| target.since(at).as_nanos()),
        }
    }

    /// The name of a client that the snapshot distinguishes.
    fn name(&self, id: ClientId) -> Option<&str> {
        let clients = self.0.clients.iter();
        let clients = clients.map(|client| (client.id, &client.name));
        let volumes = self.0.volumes.iter().map(|(id, name)| (*id, name));
        let found = clients.chain(volumes).find(|(other, _)| *other == id);
        found.map(|(_, name)| name.as_str())
    }

    fn attachments(&self) -> Vec<Attachment> {
        let attachments = self.0.attachments.iter();
        let attachment = |view: &AttachmentView| Attachment {
            node: view.node.clone(),
            mechanism: match view.mechanism {
                Mechanism::Loop => MechanismWord::Loop,
                Mechanism::Nbd => MechanismWord::Nbd,
                Mechanism::Ublk => MechanismWord::Ublk,
            },
            by: view.by.clone(),
            age_ns: self.0.at.since(view.since).as_nanos(),
            in_flight: view.in_flight,
        };
        attachments.map(attachment).collect()
    }

    /// The histograms of the device, which the daemon has counted since `since`. The `dropped` events are
    /// missing from the store's histograms and from breakdowns.
    pub(crate) fn latency(
        &self,
        name: &str,
        since: Instant,
        ops: Vec<OpLatency>,
        dropped: u64,
    ) -> DiskLatency {
        let snapshot = self.0;
        let depths = snapshot.stats.depths.summary();
        DiskLatency {
            disk: name.to_owned(),
            layout: LAYOUT.to_owned(),
            since_ns: since.as_nanos(),
            at_ns: snapshot.at.as_nanos(),
            busy_ns: depths.busy.as_nanos(),
            depth_time_ns: Wide(depths.depth_time),
            depth_times: depth_times(&snapshot.stats.depths),
            suspended_ns: snapshot.stats.suspended.as_nanos(),
            shard_stopped_ns: snapshot.stops.all.total.as_nanos(),
            in_flight: snapshot.in_flight_total,
            oldest: self.oldest().next(),
            dropped,
            unheld: None,
            interrupted: None,
            ops,
        }
    }

    /// The counters of the data path, with the store's latencies by operation.
    pub(crate) fn ops(&self, store: impl Fn(Op) -> Sparse) -> Vec<OpLatency> {
        let op = |op| OpLatency::of(op, self.0.stats.op(op), &store(op));
        shown(self.0).map(op).collect()
    }
}

/// The operations of block devices, and every other operation with at least one completed zio.
fn shown(snapshot: &DiskSnapshot) -> impl Iterator<Item = Op> {
    let is_shown = |op: &Op| op.is_of_blocks() || snapshot.stats.op(*op).completed > 0;
    Op::ALL.into_iter().filter(is_shown)
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
