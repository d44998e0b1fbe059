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

/// Finished I/Os, in the order in which they were told.
pub(crate) trait Stream {
    /// All that is known of one.
    type Io;

    /// The present time of the clock by which I/Os end.
    fn now_ns(&self) -> anyhow::Result<u64>;

    /// Appends what has finished since the last time, each with the moment of its end. Does not
    /// wait; to be called 20 times a second.
    fn read(&mut self, finished: &mut Vec<(u64, Self::Io)>) -> anyhow::Result<Progress>;
}

/// How far a reading got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// I/Os, or of the kernel's disks events, that were not seen since the last reading.
    pub(crate) missed: u64,
    /// Whether there is more already.
    pub(crate) more: bool,
    /// Devices that have vanished since the last reading.
    pub(crate) vanished: Vec<String>,
}

/// The zios of a daemon's disks.
pub(crate) struct ZioStream<'a> {
    client: &'a Client,
    /// All disks, if none is named.
    names: &'a [String],
    wanted: WantedZios,
    next: u64,
    /// When the daemon was started whose cursor it is.
    since_ns: u64,
    /// What the daemon had dropped at the last reading.
    dropped: u64,
}

impl<'a> ZioStream<'a> {
    /// What finishes from now on.
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
    /// When it looks next whether devices have vanished.
    look_ns: u64,
}

impl<'a> IoStream<'a> {
    /// What begins and finishes from now on.
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
    /// Devices that have vanished since it looked last, which is at most once a second.
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

/// dashpot's operations in the kernel's letters. An `F` behind the operation is FUA. Most kernels have
/// no letter for zeroes but `N`, which is also that of what drivers ask for.
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
/// The most that the daemon tells at once.
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
