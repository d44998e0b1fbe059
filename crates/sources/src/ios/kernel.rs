//! Turns the I/Os of the kernel's disks into records.

use dashpot_engine::OpSet;
use dashpot_observe::{FinishedIo, VanishedDevice, Wanted};
use dashpot_probe::{Device, Io, Options, Start, Tracer};

use super::{Progress, Stream};
use crate::kernel_ios::{KernelIos, ops_of};
use crate::priority;
use crate::signals::now_ns;
use crate::vanished::Vanished;

/// A stream of the I/Os of the kernel's disks.
pub(crate) struct KernelStream<'a> {
    tracer: Tracer,
    devices: &'a [Device],
    wanted: Wanted,
    ios: KernelIos,
    vanished: Vanished,
    /// The time of the next check for devices that have vanished.
    look_ns: u64,
}

impl<'a> KernelStream<'a> {
    /// A stream of the I/Os that begin and finish from now on.
    pub(crate) fn new(devices: &'a [Device], wanted: &Wanted) -> anyhow::Result<KernelStream<'a>> {
        let tracer = Tracer::start(&Options {
            devices: devices.to_vec(),
            start: Start::Queue,
            submitters: true,
            cgroups: true,
        })?;
        priority::raise();
        Ok(KernelStream {
            tracer,
            devices,
            wanted: *wanted,
            ios: KernelIos::new(devices),
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
        let (records, wanted) = (&mut self.ios, &self.wanted);
        let progress = self.tracer.read(u64::MAX, |io| {
            if takes(wanted, io) {
                ios.extend(records.finished(io));
            }
        })?;
        Ok(Progress {
            missed: progress.missing(),
            more: false,
            vanished: self.newly_vanished(),
        })
    }

    fn in_flight(&mut self, now_ns: u64) -> Option<Vec<FinishedIo>> {
        let records = &mut self.ios;
        let in_flight = self.tracer.in_flight();
        let ios = in_flight.filter_map(|io| records.in_flight(&io, now_ns));
        Some(ios.collect())
    }
}

impl KernelStream<'_> {
    /// Looks for devices that have vanished, at most once a second.
    fn newly_vanished(&mut self) -> Vec<VanishedDevice> {
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
    let is_op = |ops: OpSet| ops.means(ops_of(io.rwbs.bytes()));
    io.completed_ns.saturating_sub(begun_ns) >= wanted.min_ns && wanted.ops.is_none_or(is_op)
}

const LOOK_EVERY_NS: u64 = 1_000_000_000;
