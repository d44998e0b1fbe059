//! The I/Os of the kernel's disks.

use dashpot_engine::{Op, OpSet};
use dashpot_observe::{FinishedIo, IoWaits, Kind, Wanted, Who};
use dashpot_probe::{Device, InFlight, Io, Options, Start, Tracer};

use super::errno::errno_name;
use super::{Progress, Stream};
use crate::sources::priority;
use crate::sources::signals::now_ns;
use crate::sources::vanished::Vanished;

/// The I/Os of the kernel's disks.
pub(in crate::sources) struct KernelStream<'a> {
    tracer: Tracer,
    devices: &'a [Device],
    wanted: Wanted,
    vanished: Vanished,
    /// The time of the next look for devices that have vanished.
    look_ns: u64,
}

impl<'a> KernelStream<'a> {
    /// Begins with I/Os that begin and finish from now on.
    pub(in crate::sources) fn new(
        devices: &'a [Device],
        wanted: &Wanted,
    ) -> anyhow::Result<KernelStream<'a>> {
        let tracer = Tracer::start(&Options {
            devices: devices.to_vec(),
            start: Start::Queue,
            submitters: true,
        })?;
        priority::raise();
        Ok(KernelStream {
            tracer,
            devices,
            wanted: *wanted,
            vanished: Vanished::default(),
            look_ns: 0,
        })
    }
}

impl Stream for KernelStream<'_> {
    fn now_ns(&self) -> anyhow::Result<u64> {
        Ok(now_ns())
    }

    fn read(&mut self, ios: &mut Vec<FinishedIo>) -> anyhow::Result<Progress> {
        self.vanished.check(self.devices)?;
        let (devices, wanted) = (self.devices, &self.wanted);
        let progress = self.tracer.read(u64::MAX, |io| {
            let device = devices.iter().find(|one| one.has(io.device, io.sector));
            if let Some(device) = device.filter(|_| takes(wanted, io)) {
                ios.push(finished(io, &device.name));
            }
        })?;
        Ok(Progress {
            missed: progress.missing(),
            more: false,
            vanished: self.newly_vanished(),
        })
    }

    fn in_flight(&self) -> Vec<FinishedIo> {
        let named = self.tracer.in_flight().filter_map(|io| {
            let mut devices = self.devices.iter();
            let device = devices.find(|device| device.has(io.device, io.sector))?;
            Some(finished(&begun(&io), &device.name))
        });
        named.collect()
    }
}

impl KernelStream<'_> {
    /// Looks for devices that have vanished, at most once a second.
    fn newly_vanished(&mut self) -> Vec<String> {
        let now_ns = now_ns();
        if now_ns < self.look_ns {
            return Vec::new();
        }
        self.look_ns = now_ns.saturating_add(LOOK_EVERY_NS);
        self.vanished.check_presence(self.devices);
        self.vanished.news(self.devices, false).to_vec()
    }
}

fn takes(wanted: &Wanted, io: &Io) -> bool {
    let begun_ns = io.queued_ns.unwrap_or(io.issued_ns);
    let is_op = |ops: OpSet| ops.meets(ops_of(io.rwbs.bytes()));
    io.completed_ns.saturating_sub(begun_ns) >= wanted.min_ns && wanted.ops.is_none_or(is_op)
}

/// dashpot's operations for the kernel's letters. An `F` after the operation is FUA. Most kernels have
/// only `N` for zeroes, and drivers' own requests have the same letter.
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

/// An I/O in flight, as if it ended when it began.
fn begun(io: &InFlight) -> Io {
    Io {
        device: io.device,
        rwbs: io.rwbs,
        sector: io.sector,
        bytes: io.bytes,
        queued_ns: Some(io.since_ns),
        issued_ns: io.since_ns,
        completed_ns: io.since_ns,
        error: 0,
        merged: 0,
        requeued: 0,
        submitter: io.submitter,
    }
}

fn finished(io: &Io, device: &str) -> FinishedIo {
    let letters = io.rwbs.bytes();
    let queue_ns = |queued_ns| io.issued_ns.saturating_sub(queued_ns);
    FinishedIo {
        device: device.to_owned(),
        kind: Kind::of_letters(letters),
        fua: ops_of(letters).contains(OpSet::FUA),
        letters: Some(io.rwbs.to_string()),
        offset_bytes: io.sector.saturating_mul(SECTOR),
        length_bytes: io.bytes,
        begun_ns: io.queued_ns.unwrap_or(io.issued_ns),
        ended_ns: io.completed_ns,
        at_ns: io.completed_ns,
        waits: IoWaits::Kernel {
            queue_ns: io.queued_ns.map(queue_ns),
            device_ns: io.completed_ns.saturating_sub(io.issued_ns),
        },
        who: io.submitter.map(|submitter| Who::Thread {
            pid: submitter.pid,
            comm: submitter.comm.to_string(),
        }),
        rule: None,
        lane: None,
        merged: io.merged,
        requeued: io.requeued,
        error: (io.error != 0).then(|| errno_name(io.error)),
    }
}

/// The unit in which the kernel counts offsets.
const SECTOR: u64 = 512;
const LOOK_EVERY_NS: u64 = 1_000_000_000;

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
