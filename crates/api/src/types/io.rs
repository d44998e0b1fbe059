//! The individual I/Os that one part of a statistic counts, from any source.

use dashpot_observe::{Dimension, Facts, FinishedIo};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Some of the I/Os that a statistic counts, the longest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StatisticIos {
    /// The I/Os.
    pub ios: Vec<StatisticIo>,
    /// How many I/Os the statistic counts in this part, including those in `ios`.
    pub count: u64,
    /// The source remembers individual I/Os from this moment on.
    pub since_ns: u64,
}

/// A finished I/O. Facts that its source does not know are null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatisticIo {
    /// The name of the I/O's device.
    pub device: String,
    /// The I/O's operation.
    #[schema(example = "write")]
    pub op: String,
    /// The kernel's letters for the operation.
    pub letters: Option<String>,
    /// Whether the I/O was a write that must be durable before its reply.
    pub fua: bool,
    /// The position of the I/O's first byte.
    pub offset_bytes: u64,
    /// The I/O's length.
    pub length_bytes: u64,
    /// How many I/Os were at the device when this I/O arrived, including this I/O.
    pub depth: Option<u32>,
    /// When the I/O arrived, on the clock of the source.
    pub begun_ns: u64,
    /// When the I/O ended.
    pub ended_ns: u64,
    /// The time from the I/O's arrival until its end; null for a program's call that a rule only held,
    /// because the end of the call is not known.
    pub total_ns: Option<u64>,
    /// The I/O's time at the device.
    pub latency_ns: u64,
    /// The parts of the I/O's time that are known and not zero.
    pub waits: Vec<StatisticWait>,
    /// The client that sent the I/O to dashpot.
    pub client: Option<String>,
    /// The process that asked the kernel for the I/O.
    pub process: Option<String>,
    /// The id of that process.
    pub pid: Option<u64>,
    /// The thread of that process that asked the kernel for the I/O.
    pub thread: Option<String>,
    /// The id of that thread.
    pub tid: Option<u64>,
    /// The cgroup of the process that asked for the I/O.
    pub cgroup: Option<String>,
    /// The facts that only dashpot's own disks and volumes know.
    #[serde(flatten)]
    pub facts: Facts,
    /// The inode of the file that was synced, if the I/O is a system call that syncs a file.
    pub inode: Option<u64>,
    /// The error that the I/O ended with.
    pub error: Option<String>,
}

/// A part of the time of an I/O.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatisticWait {
    /// The name of the wait, which is also the name of a dimension.
    #[schema(example = "queue")]
    pub wait: String,
    /// How long the wait lasted.
    pub ns: u64,
}

impl StatisticIo {
    /// The wire form of an I/O.
    pub fn of(io: &FinishedIo) -> StatisticIo {
        let who = io.who.as_ref();
        let text = |text: Option<&str>| text.map(str::to_owned);
        let wait = |one: &Dimension| {
            let ns = one.number(io).filter(|ns| *ns > 0)?;
            Some(StatisticWait {
                wait: one.word().to_owned(),
                ns,
            })
        };
        StatisticIo {
            device: io.device.to_string(),
            op: io.kind.word().to_owned(),
            letters: text(io.letters.as_deref()),
            fua: io.fua,
            offset_bytes: io.offset_bytes,
            length_bytes: io.length_bytes,
            depth: io.depth,
            begun_ns: io.begun_ns,
            ended_ns: io.ended_ns,
            total_ns: io.known_total_ns(),
            latency_ns: io.at_device_ns(),
            waits: Dimension::WAITS.iter().filter_map(wait).collect(),
            client: text(io.client()),
            process: text(who.and_then(|who| who.process(io.kind))),
            pid: Dimension::Pid.number(io),
            thread: text(who.and_then(|who| who.thread_name(io.kind))),
            tid: Dimension::Tid.number(io),
            cgroup: text(who.and_then(|who| who.cgroup(io.kind))),
            facts: io.facts,
            inode: io.inode,
            error: io.error.clone(),
        }
    }
}
