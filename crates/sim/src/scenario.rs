//! What a simulation depends on, as plain data: disks, pools, volumes, workloads, commands, a seed.
//!
//! Disks, pools, volumes and workloads are named by their places in the scenario's lists, which
//! are their ids in the engine too.

use dashpot_engine::inject::{GroupId, RuleSpec, Service};
use dashpot_engine::pool::{ThrottleConfig, Tunables, WritePolicy};
use dashpot_engine::{Command, Duration, Op, Ratio};

/// A lab, what is done to it, and for how long.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seeds every draw: of rules, of disk models, of workloads.
    pub seed: u64,
    /// The disks. One that is in no pool can be the target of a workload.
    pub disks: Vec<DiskSpec>,
    /// The pools that the disks are joined to.
    pub pools: Vec<PoolSpec>,
    /// The volumes carved from the pools.
    pub volumes: Vec<VolumeSpec>,
    /// Who reads and writes.
    pub workloads: Vec<WorkloadSpec>,
    /// What the engine is told, and when. The ids of rules that are injected here must be above
    /// the number of rules that the disks begin with.
    pub commands: Vec<(Duration, Command)>,
    /// When the simulation ends.
    pub lasts: Duration,
    /// Calls that begin before this time are in no histogram.
    pub warmup: Duration,
    /// Whether contents and invariants are checked at every step, at several times the cost.
    /// Offsets and lengths must be multiples of 512 then.
    pub check: bool,
    /// How often the state of the pools is noted for charts.
    pub sample_every: Option<Duration>,
}

/// A disk of the lab.
#[derive(Clone, Debug)]
pub struct DiskSpec {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// How long it takes.
    pub model: DiskModel,
    /// Whether it has a head that moves.
    pub rotational: bool,
    /// The rules armed at the start, group by group. Over all disks their ids count from 1.
    pub rules: Vec<(GroupId, Vec<RuleSpec>)>,
}

/// How long a disk takes for one I/O: it passes the bus, waits for a lane, and is served there.
#[derive(Clone, Debug, Default)]
pub struct DiskModel {
    /// Bytes per second of a bus that all I/O passes one after the other (a fluid disk has nothing
    /// else). Only the bytes of reads and writes pass it.
    pub bandwidth: Option<u64>,
    /// How many I/Os are served at the same time; any number, if it does not say.
    pub lanes: Option<u32>,
    /// The part of the service that does not depend on the size; none, if it does not say.
    pub service: Option<Service>,
    /// Bytes per second of one lane, for the part of the service that depends on the size.
    pub rate: Option<u64>,
    /// How long a flush takes, beside the lanes; no time, if it does not say.
    pub flush: Option<Service>,
}

/// Disks joined by a layout.
#[derive(Clone, Debug)]
pub struct PoolSpec {
    /// Its name.
    pub name: String,
    /// Its top-level members, each with its sides, as places in [`Scenario::disks`].
    pub members: Vec<Vec<usize>>,
    /// What its writes wait for.
    pub throttle: ThrottleConfig,
    /// The tunables at the start.
    pub tunables: Tunables,
}

/// A block device carved from a pool.
#[derive(Clone, Debug)]
pub struct VolumeSpec {
    /// Its name.
    pub name: String,
    /// Its place in [`Scenario::pools`].
    pub pool: usize,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes in a block.
    pub block_size: u32,
    /// When its writes are acknowledged.
    pub write: WritePolicy,
}

/// What an I/O is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A disk that is in no pool, by its place in [`Scenario::disks`].
    Disk(usize),
    /// A volume, by its place in [`Scenario::volumes`].
    Volume(usize),
}

/// A client of the lab, and what it does.
#[derive(Clone, Debug)]
pub struct WorkloadSpec {
    /// Its name, which `--client` globs match.
    pub name: String,
    /// When it begins.
    pub starts: Duration,
    /// When it begins no more calls; never, if it does not say.
    pub stops: Option<Duration>,
    /// Bytes per second of a link between the client and the lab, which its requests pass one after
    /// the other: a write on the way in, a read's bytes on the way back. None: it takes no time.
    pub link: Option<u64>,
    /// When its connection is lost: what is in flight is aborted, and its threads go on at once
    /// over a new one.
    pub disconnects: Vec<Duration>,
    /// How many of its slowest calls are remembered.
    pub slowest: usize,
    /// What it does.
    pub load: Load,
}

impl WorkloadSpec {
    /// How many threads it has.
    pub fn threads(&self) -> u32 {
        match &self.load {
            Load::Closed { threads, .. } => *threads,
            Load::Open { .. } | Load::Trace(_) => 1,
        }
    }
}

/// What a workload does.
#[derive(Clone, Debug)]
pub enum Load {
    /// Threads that wait for each call before they begin the next.
    Closed {
        /// How many.
        threads: u32,
        /// Time inside a call before the I/O is submitted.
        inside: Duration,
        /// Time between calls.
        think: Duration,
        /// What they call for.
        calls: Calls,
    },
    /// Calls that begin on time, however many have not ended. Latencies count from the time at
    /// which a call was to begin.
    Open {
        /// Calls per second; not zero.
        rate: u64,
        /// How many begin at the same time: 1 spaces them evenly; not zero.
        burst: u32,
        /// What they call for.
        calls: Calls,
    },
    /// A list of I/Os, each submitted at its time.
    Trace(Vec<TraceEntry>),
}

/// What the calls of a workload are.
#[derive(Clone, Debug)]
pub struct Calls {
    /// Where they go.
    pub target: Target,
    /// First byte and number of bytes of the region in which they stay; the whole target, if it
    /// does not say.
    pub region: Option<(u64, u64)>,
    /// Bytes of each; offsets are multiples of it from the beginning of the region.
    pub block: u32,
    /// The share that reads; the rest writes.
    pub reads: Ratio,
    /// The order of offsets.
    pub pattern: Pattern,
    /// Whether writes have to be durable before they are acknowledged (FUA).
    pub sync: bool,
    /// N: each thread, or the open loop, flushes after every N writes; `None`: no flushes.
    pub flush_every: Option<u64>,
}

/// The order of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Any block, uniformly.
    Random,
    /// One block after the other, round and round. All threads of the workload share one place.
    Sequential,
}

/// One I/O of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When, counted from the start of the workload. Times do not go back.
    pub at: Duration,
    /// What it does.
    pub op: Op,
    /// Whether it has to be durable before it is acknowledged.
    pub fua: bool,
    /// What it is for.
    pub target: Target,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
}
