//! A scenario: all inputs of a simulation as plain data, namely disks, pools, volumes, workloads, commands,
//! and a seed.
//!
//! Disks, pools, volumes and workloads are identified by their indices in the scenario's lists, which are
//! also their ids in the engine.

use dashpot_engine::inject::{GroupId, RuleSpec, Service};
use dashpot_engine::{ClientId, Command, Duration, Op, Ratio};
use dashpot_rules::{PoolSpec, VolumeSpec};

/// A lab, the commands that change it, and its duration.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed for all random choices of rules, of disk models and of workloads.
    pub seed: u64,
    /// The disks. A disk can be the target of a workload only if it belongs to no pool.
    pub disks: Vec<DiskSpec>,
    /// The pools made of the disks.
    pub pools: Vec<PoolSpec>,
    /// The volumes carved from the pools.
    pub volumes: Vec<VolumeSpec>,
    /// The clients that read and write.
    pub workloads: Vec<WorkloadSpec>,
    /// Commands for the engine, and their times. Rules that these commands inject must have ids above the
    /// number of rules with which the disks begin.
    pub commands: Vec<(Duration, Command)>,
    /// When the simulation ends.
    pub lasts: Duration,
    /// Calls that begin before this time are in no histogram.
    pub warmup: Duration,
    /// Whether contents and invariants are checked at every step, which makes the simulation
    /// several times slower. With checks, offsets and lengths must be multiples of 512.
    pub check: bool,
    /// How often the state is sampled for charts.
    pub sample_every: Option<Duration>,
}

impl Scenario {
    /// The clients of a disk, with their names. The clients of a pool's disk are the pool's volumes and the
    /// pool itself; the clients of any other disk are all workloads. Clients beyond the engine's maximum
    /// share one identity, and are left out.
    pub fn clients_of(&self, disk: usize) -> Vec<(ClientId, &str)> {
        let mut pools = self.pools.iter().enumerate();
        let Some((at, pool)) = pools.find(|(_, pool)| pool.disks().any(|own| own == disk)) else {
            let names = self.workloads.iter().map(|workload| workload.name.as_str());
            return named(names, ClientId::of_index);
        };
        let volumes = self.volumes.iter().filter(|volume| volume.pool == at);
        let names = volumes.map(|volume| volume.name.as_str());
        let mut clients = named(names, ClientId::of_volume);
        clients.push((ClientId::POOL, &pool.name));
        clients
    }
}

/// Clients with these names, in the order of their indices.
fn named<'a>(
    names: impl Iterator<Item = &'a str>,
    id: fn(usize) -> ClientId,
) -> Vec<(ClientId, &'a str)> {
    let named = names.enumerate().map(|(at, name)| (id(at), name));
    named.filter(|(id, _)| *id != ClientId::OTHER).collect()
}

/// A disk of the lab.
#[derive(Clone, Debug)]
pub struct DiskSpec {
    pub name: String,
    /// The size of the disk in bytes.
    pub size: u64,
    /// How long the disk's I/Os take.
    pub model: DiskModel,
    /// Whether the disk has a head that moves.
    pub rotational: bool,
    /// The rules armed at the start, by group. Rules are numbered from 1, across all disks.
    pub rules: Vec<(GroupId, Vec<RuleSpec>)>,
}

/// A model of how long a disk takes for an I/O. An I/O passes the bus, waits for a lane, and is served in it.
#[derive(Clone, Debug, Default)]
pub struct DiskModel {
    /// The rate of the bus, in bytes per second. I/Os pass the bus one after another. Only the bytes of reads
    /// and writes pass it.
    pub bandwidth: Option<u64>,
    /// How many I/Os are served at the same time; `None` for any number.
    pub lanes: Option<u32>,
    /// The part of the service time that does not depend on the I/O's size; `None` for zero.
    pub service: Option<Service>,
    /// The rate of one lane in bytes per second, for the part of the service time that depends on the I/O's
    /// size.
    pub rate: Option<u64>,
    /// How long a flush takes. It uses no lane. `None` for zero.
    pub flush: Option<Service>,
}

/// The target of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A disk outside of pools, by its index in [`Scenario::disks`].
    Disk(usize),
    /// A volume, by its index in [`Scenario::volumes`].
    Volume(usize),
}

/// A client of the lab, and its calls.
#[derive(Clone, Debug)]
pub struct WorkloadSpec {
    /// The name of the workload, which `--client` globs match.
    pub name: String,
    /// When the workload begins.
    pub starts: Duration,
    /// The time from which the workload begins no more calls; `None` if it never stops.
    pub stops: Option<Duration>,
    /// The rate of a link between the client and the lab, in bytes per second. Calls pass the link one after
    /// another: writes with their bytes on the way in, and reads with theirs on the way back. With `None`,
    /// the link takes no time.
    pub link: Option<u64>,
    /// When the workload's connection is lost. The workload's calls in flight are then aborted, and
    /// its threads continue at once over a new connection.
    pub disconnects: Vec<Duration>,
    /// How many of the workload's slowest calls the results keep.
    pub slowest: usize,
    /// The calls of the workload.
    pub load: Load,
}

impl WorkloadSpec {
    /// The number of the workload's threads.
    pub fn threads(&self) -> u32 {
        match &self.load {
            Load::Closed { threads, .. } => *threads,
            Load::Open { .. } | Load::Trace(_) => 1,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Load {
    /// A closed loop: threads that wait for each call before they begin the next call.
    Closed {
        /// The number of threads.
        threads: u32,
        /// The time that each call takes before its I/O is submitted.
        inside: Duration,
        /// The time between calls.
        think: Duration,
        /// The I/Os of the calls.
        calls: Calls,
    },
    /// An open loop: calls begin on time, however many are in flight. Latencies are measured from the
    /// intended beginning of a call.
    Open {
        /// Calls per second; not zero.
        rate: u64,
        /// How many calls begin at the same time; not zero. The value 1 spaces calls evenly.
        burst: u32,
        /// The I/Os of the calls.
        calls: Calls,
    },
    /// A list of I/Os, each submitted at its time.
    Trace(Vec<TraceEntry>),
}

/// The I/Os of a workload.
#[derive(Clone, Debug)]
pub struct Calls {
    pub target: Target,
    /// The region of the target that the calls use, as its first byte and its length; `None` for the whole
    /// target.
    pub region: Option<(u64, u64)>,
    /// The length of each call in bytes. Offsets within the region are multiples of it.
    pub block: u32,
    /// The share of reads. All other calls are writes.
    pub reads: Ratio,
    /// The order of offsets.
    pub pattern: Pattern,
    /// Whether writes must be durable before they are acknowledged (FUA).
    pub sync: bool,
    /// Each thread, or the open loop, flushes after this many writes; `None` if it never flushes.
    pub flush_every: Option<u64>,
}

/// The order of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Random blocks, all equally likely.
    Random,
    /// One block after another, and after the last block the first one again. All threads of the workload
    /// share the position.
    Sequential,
}

/// One I/O of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When the I/O starts, counted from the start of the workload. No entry is earlier than the
    /// entry before it.
    pub at: Duration,
    /// The operation of the I/O.
    pub op: Op,
    /// Whether the I/O must be durable before it is acknowledged.
    pub fua: bool,
    /// The target of the I/O.
    pub target: Target,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u32,
}
