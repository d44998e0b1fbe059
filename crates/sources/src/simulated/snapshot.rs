//! Takes snapshots of a simulation's devices, just as a daemon's API takes snapshots of the daemon's devices,
//! and computes the I/O between two snapshots.

use std::time::Duration;

use dashpot_api::wait_word;
use dashpot_engine::histogram::Histogram;
use dashpot_engine::pool::{Class, ClassStats, PoolStats, VolumeTraffic};
use dashpot_engine::{
    Device, DiskId, DiskStats, InFlight as Zio, Instant, LatencyKind, Op, OpStats, PoolId, VolumeId,
};
use dashpot_observe::{
    ClassInterval, Counts, DeviceInterval, InFlight, Kind, Layer, OpInterval, PoolInterval,
};
use dashpot_rules::PoolSpec;
use dashpot_sim::{CallWait, Simulation, Unfinished};

/// A disk or a volume at one moment.
pub struct DeviceSnapshot {
    pub name: String,
    pub device: Device,
    at: Instant,
    stats: DiskStats,
    in_flight: InFlight,
}

/// A pool at one moment.
pub struct PoolSnapshot {
    pub name: String,
    at: Instant,
    /// The counts of the pool since its beginning.
    pub stats: PoolStats,
    /// The names of the volumes, in the order of `stats.by_volume`.
    volumes: Vec<String>,
    allocated: u64,
    free: u64,
}

/// The present state of all disks or all volumes.
pub fn devices(simulation: &Simulation, layer: Layer) -> Vec<DeviceSnapshot> {
    let (scenario, now) = (simulation.scenario(), simulation.now());
    let look = |name: &String, device, stats: Option<DiskStats>, in_flight| DeviceSnapshot {
        name: name.clone(),
        device,
        at: now,
        stats: stats.unwrap_or_default(),
        in_flight,
    };
    match layer {
        Layer::Disk | Layer::Store | Layer::Fs | Layer::Kernel => {
            let disks = scenario.disks.iter().zip((0..).map(DiskId));
            let engine = simulation.engine();
            disks
                .map(|(disk, id)| {
                    let in_flight = in_flight_of_disk(simulation, id, &disk.name);
                    look(
                        &disk.name,
                        Device::Disk(id),
                        engine.disk_stats(id, now),
                        in_flight,
                    )
                })
                .collect()
        }
        Layer::Volume => {
            let volumes = scenario.volumes.iter().zip((0..).map(VolumeId));
            let stats = |id| simulation.engine().volume_stats(id, now);
            volumes
                .map(|(volume, id)| {
                    let in_flight = in_flight_of_volume(simulation, id, &volume.name);
                    look(&volume.name, Device::Volume(id), stats(id), in_flight)
                })
                .collect()
        }
    }
}

/// The present state of all pools.
pub fn pools(simulation: &Simulation) -> Vec<PoolSnapshot> {
    let (scenario, now) = (simulation.scenario(), simulation.now());
    let look = |(at, pool): (usize, &PoolSpec)| {
        let volumes = || scenario.volumes.iter().filter(|volume| volume.pool == at);
        let allocated = volumes().map(|volume| volume.size).sum();
        let capacity = pool.capacity(|disk| scenario.disks[disk].size);
        let id = PoolId(u32::try_from(at).unwrap_or(u32::MAX));
        PoolSnapshot {
            name: pool.name.clone(),
            at: now,
            stats: simulation.engine().pool_stats(id, now).unwrap_or_default(),
            volumes: volumes().map(|volume| volume.name.clone()).collect(),
            allocated,
            free: capacity.saturating_sub(allocated),
        }
    };
    scenario.pools.iter().enumerate().map(look).collect()
}

fn in_flight_of_disk(simulation: &Simulation, disk: DiskId, name: &str) -> InFlight {
    let engine = simulation.engine();
    // The engine lists zios in the order of their slots, and not by age.
    let oldest = engine.in_flight(disk);
    let oldest = oldest.min_by_key(|zio| (zio.arrived, zio.zio));
    in_flight(
        simulation,
        engine.in_flight_total(disk).into(),
        oldest,
        name,
    )
}

fn in_flight_of_volume(simulation: &Simulation, volume: VolumeId, name: &str) -> InFlight {
    let zios = simulation.engine().in_flight_at_volume(volume);
    in_flight(simulation, zios.len() as u64, zios.first().copied(), name)
}

fn in_flight(simulation: &Simulation, zios: u64, oldest: Option<Zio>, name: &str) -> InFlight {
    let now = simulation.now();
    InFlight {
        zios: Some(zios),
        oldest_ns: oldest.map(|zio| now.since(zio.arrived).as_nanos()),
        device: oldest.map(|_| name.to_owned()),
        wait: oldest.map(|zio| wait_word(zio.wait).to_owned()),
        wait_ns: oldest.map(|zio| now.since(zio.since).as_nanos()),
        rule: oldest.and_then(|zio| zio.rule).map(|rule| rule.0),
    }
}

/// The place at which a call waits, in words.
pub struct CallPlace {
    /// The name of the place.
    pub word: &'static str,
    /// The moment at which the call began to wait there; `None` if it has waited there from its beginning,
    /// or if its reply is on the link.
    pub since: Option<Instant>,
}

pub fn call_wait(simulation: &Simulation, call: &Unfinished) -> CallPlace {
    let (word, since) = match simulation.waits(call) {
        CallWait::Client => ("client or link", None),
        CallWait::Lab(zio) => (wait_word(zio.wait), Some(zio.since)),
        CallWait::Reply => ("link back", None),
    };
    CallPlace { word, since }
}

impl DeviceSnapshot {
    /// The zios in flight.
    pub fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// The I/O since an earlier snapshot.
    pub fn since(&self, earlier: &DeviceSnapshot) -> DeviceInterval {
        let op = |op: Op| op_between(op, self.stats.op(op), earlier.stats.op(op));
        let depths = self.stats.depths.since(&earlier.stats.depths);
        let summary = depths.summary();
        DeviceInterval {
            device: self.name.clone(),
            elapsed: span(self.at, earlier.at),
            ops: Op::OF_BLOCKS.map(op).into(),
            busy: Duration::from_nanos(summary.busy.as_nanos()),
            depth_time_ns: summary.depth_time,
            depths: Some(depths),
            in_flight: self.in_flight.clone(),
        }
    }
}

fn op_between(op: Op, later: &OpStats, earlier: &OpStats) -> OpInterval {
    let latency = |kind| {
        let (later, earlier) = (later.latency(kind), earlier.latency(kind));
        difference(later.as_deref(), earlier.as_deref())
    };
    let counts = Counts {
        completed: later.completed - earlier.completed,
        bytes: later.bytes - earlier.bytes,
        total: Some(Box::new(latency(LatencyKind::Total))),
        disk: Some(Box::new(latency(LatencyKind::Disk))),
        ..Counts::default()
    };
    OpInterval::of(Kind::Op(op), None, counts)
}

impl PoolSnapshot {
    /// The time since an earlier snapshot.
    pub fn elapsed_since(&self, earlier: &PoolSnapshot) -> Duration {
        span(self.at, earlier.at)
    }

    /// The I/O since an earlier snapshot.
    pub fn since(&self, earlier: &PoolSnapshot) -> PoolInterval {
        let queues = || self.stats.queues.iter().zip(&earlier.stats.queues);
        let class = |class| {
            let mut all = ClassInterval::empty(class);
            for (later, earlier) in queues() {
                let at = class as usize;
                add(&mut all, &later.classes[at], &earlier.classes[at]);
            }
            all
        };
        PoolInterval {
            name: self.name.clone(),
            elapsed: self.elapsed_since(earlier),
            allocated: self.allocated,
            free: self.free,
            volumes: self.stats.volumes.since(earlier.stats.volumes),
            queued: self.stats.queued.since(earlier.stats.queued),
            traffic: self.stats.disks.since(earlier.stats.disks),
            overhead: self.stats.overhead.since(earlier.stats.overhead),
            by_volume: self.by_volume_since(earlier),
            classes: Box::new(Class::ALL.map(class)),
            txgs: self.stats.txgs.clone(),
        }
    }

    fn by_volume_since(&self, earlier: &PoolSnapshot) -> Vec<(String, VolumeTraffic)> {
        let counts = self.stats.by_volume.iter().zip(&earlier.stats.by_volume);
        let counts = counts.map(|(later, earlier)| later.since(*earlier));
        self.volumes.iter().cloned().zip(counts).collect()
    }
}

fn add(all: &mut ClassInterval, later: &ClassStats, earlier: &ClassStats) {
    all.pending += u64::from(later.pending);
    all.active += u64::from(later.active);
    for (sum, later, earlier) in [
        (&mut all.total_wait, &later.total_wait, &earlier.total_wait),
        (&mut all.disk_wait, &later.disk_wait, &earlier.disk_wait),
        (&mut all.queue_wait, &later.queue_wait, &earlier.queue_wait),
        (&mut all.alone, &later.alone, &earlier.alone),
        (&mut all.joined, &later.joined, &earlier.joined),
    ] {
        sum.merge(&difference(later.as_deref(), earlier.as_deref()));
    }
}

fn difference(later: Option<&Histogram>, earlier: Option<&Histogram>) -> Histogram {
    let empty = Histogram::default();
    later.unwrap_or(&empty).since(earlier.unwrap_or(&empty))
}

fn span(later: Instant, earlier: Instant) -> Duration {
    Duration::from_nanos(later.since(earlier).as_nanos())
}
