//! Finished I/Os one by one, from a daemon or from the kernel.

use anyhow::ensure;
use dashpot_api::{Client, FinishedZio, STARTED_AGAIN, WantedZios};
use dashpot_engine::{Op, OpSet};
use dashpot_observe::{FinishedIo, Kind, Wanted};
use dashpot_probe::{Device, Io, Options, Start, Tracer};
use dashpot_report::snoop::errno_name;
use dashpot_rules::format_ops;

use super::priority;
use super::signals::now_ns;
use super::vanished::Vanished;

/// Finished I/Os, in the order in which the source reports them.
pub(crate) trait Stream {
    /// All known facts about one I/O.
    type Io;

    /// The present time of the clock that dates the ends of I/Os.
    fn now_ns(&self) -> anyhow::Result<u64>;

    /// Appends the I/Os that have finished since the last call, each with the moment of its end. It
    /// does not wait, so call it 20 times a second.
    fn read(&mut self, finished: &mut Vec<(u64, Self::Io)>) -> anyhow::Result<Progress>;
}

/// The progress of a reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// How many I/Os (for the kernel's disks: events) were missed since the last reading.
    pub(crate) missed: u64,
    /// Whether there are more already.
    pub(crate) more: bool,
    /// Devices that have vanished since the last reading.
    pub(crate) vanished: Vec<String>,
}

/// The zios of a daemon's disks.
pub(crate) struct ZioStream<'a> {
    client: &'a Client,
    /// The names of the disks; empty for all.
    names: &'a [String],
    wanted: WantedZios,
    next: u64,
    /// When the daemon started to which the cursor belongs.
    since_ns: u64,
    /// How many events the daemon had dropped at the last reading.
    dropped: u64,
}

impl<'a> ZioStream<'a> {
    /// Begins with I/Os that finish from now on.
    pub(crate) fn new(
        client: &'a Client,
        names: &'a [String],
        wanted: Wanted,
    ) -> anyhow::Result<ZioStream<'a>> {
        let wanted = WantedZios {
            disk: match names {
                [name] => Some(name.clone()),
                _ => None,
            },
            ops: wanted.ops.map(format_ops),
            min_ns: wanted.min_ns,
            limit: LIMIT,
        };
        let now = client.finished(&wanted, None)?;
        Ok(ZioStream {
            client,
            names,
            wanted,
            next: now.next,
            since_ns: now.since_ns,
            dropped: now.dropped,
        })
    }
}

impl Stream for ZioStream<'_> {
    type Io = FinishedZio;

    fn now_ns(&self) -> anyhow::Result<u64> {
        Ok(self.client.clock()?.now_ns)
    }

    fn read(&mut self, finished: &mut Vec<(u64, FinishedZio)>) -> anyhow::Result<Progress> {
        let answer = self.client.finished(&self.wanted, Some(self.next))?;
        ensure!(answer.since_ns == self.since_ns, STARTED_AGAIN);
        let more = answer.zios.len() >= LIMIT;
        let missed = answer.forgotten + answer.dropped.saturating_sub(self.dropped);
        (self.next, self.dropped) = (answer.next, answer.dropped);
        let is_named = |zio: &FinishedZio| self.names.is_empty() || self.names.contains(&zio.disk);
        let zios = answer.zios.into_iter().filter(is_named);
        finished.extend(zios.map(|zio| (zio.ended_ns, zio)));
        Ok(Progress {
            missed,
            more,
            vanished: Vec::new(),
        })
    }
}

/// The I/Os of the kernel's disks.
pub(crate) struct IoStream<'a> {
    tracer: Tracer,
    devices: &'a [Device],
    wanted: Wanted,
    vanished: Vanished,
    /// When to look next for devices that have vanished.
    look_ns: u64,
}

impl<'a> IoStream<'a> {
    /// Begins with I/Os that begin and finish from now on.
    pub(crate) fn new(devices: &'a [Device], wanted: Wanted) -> anyhow::Result<IoStream<'a>> {
        let tracer = Tracer::start(&Options {
            devices: devices.to_vec(),
            start: Start::Queue,
            submitters: true,
        })?;
        priority::raise();
        Ok(IoStream {
            tracer,
            devices,
            wanted,
            vanished: Vanished::default(),
            look_ns: 0,
        })
    }
}

impl Stream for IoStream<'_> {
    type Io = FinishedIo;

    fn now_ns(&self) -> anyhow::Result<u64> {
        Ok(now_ns())
    }

    fn read(&mut self, finished: &mut Vec<(u64, FinishedIo)>) -> anyhow::Result<Progress> {
        self.vanished.check(self.devices)?;
        let (devices, wanted) = (self.devices, &self.wanted);
        let progress = self.tracer.read(u64::MAX, |io| {
            let device = devices.iter().find(|one| one.has(io.device, io.sector));
            if let Some(device) = device.filter(|_| takes(wanted, io)) {
                finished.push((io.completed_ns, finished_io(io, &device.name)));
            }
        })?;
        Ok(Progress {
            missed: progress.missing(),
            more: false,
            vanished: self.look(),
        })
    }
}

impl IoStream<'_> {
    /// Looks for devices that have vanished, at most once a second.
    fn look(&mut self) -> Vec<String> {
        let now_ns = now_ns();
        if now_ns < self.look_ns {
            return Vec::new();
        }
        self.look_ns = now_ns.saturating_add(LOOK_EVERY_NS);
        self.vanished.look(self.devices);
        self.vanished.news(self.devices, false).to_vec()
    }
}

fn takes(wanted: &Wanted, io: &Io) -> bool {
    let begun_ns = io.queued_ns.unwrap_or(io.issued_ns);
    let is_op = |ops: OpSet| ops.meets(ops_of(io.rwbs.bytes()));
    io.completed_ns.saturating_sub(begun_ns) >= wanted.min_ns && wanted.ops.is_none_or(is_op)
}

/// dashpot's operations for the kernel's letters. An `F` after the operation is FUA. Most kernels
/// have only `N` for zeroes, which is also the letter of drivers' own requests.
fn ops_of(rwbs: &[u8]) -> OpSet {
    let op = match (rwbs, Kind::of_letters(rwbs)) {
        ([b'N', ..], _) => Some(Op::Zero),
        (_, Kind::Op(op)) => Some(op),
        (_, Kind::Other) => None,
    };
    let has_fua = rwbs
        .iter()
        .skip_while(|letter| **letter == b'F')
        .any(|letter| *letter == b'F');
    op.map_or(OpSet::EMPTY, OpSet::of)
        .union(if has_fua { OpSet::FUA } else { OpSet::EMPTY })
}

fn finished_io(io: &Io, disk: &str) -> FinishedIo {
    let begun_ns = io.queued_ns.unwrap_or(io.issued_ns);
    FinishedIo {
        disk: disk.to_owned(),
        rwbs: io.rwbs.to_string(),
        sector: io.sector,
        bytes: io.bytes,
        total_ns: io.completed_ns.saturating_sub(begun_ns),
        queue_ns: io
            .queued_ns
            .map(|queued_ns| io.issued_ns.saturating_sub(queued_ns)),
        device_ns: io.completed_ns.saturating_sub(io.issued_ns),
        merged: io.merged,
        requeued: io.requeued,
        pid: io.submitter.map(|submitter| submitter.pid),
        comm: io.submitter.map(|submitter| submitter.comm.to_string()),
        error: (io.error != 0).then(|| errno_name(io.error)),
    }
}

const LOOK_EVERY_NS: u64 = 1_000_000_000;
/// The most zios in an answer of the daemon.
const LIMIT: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_operations() {
        let write = OpSet::of(Op::Write);
        for (rwbs, ops) in [
            ("R", OpSet::of(Op::Read)),
            ("RA", OpSet::of(Op::Read)),
            ("WS", write),
            ("WFS", write.union(OpSet::FUA)),
            ("FW", write),
            ("FWFS", write.union(OpSet::FUA)),
            ("F", OpSet::of(Op::Flush)),
            ("FF", OpSet::of(Op::Flush)),
            ("D", OpSet::of(Op::Trim)),
            ("N", OpSet::of(Op::Zero)),
        ] {
            assert_eq!(ops_of(rwbs.as_bytes()), ops, "{rwbs}");
        }
    }
}
