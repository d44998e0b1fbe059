//! Turns the I/Os of the kernel's disks into records.

use dashpot_engine::OpSet;
use dashpot_observe::{FinishedIo, Layer, Seen, Wanted};
use dashpot_probe::{Device, Io, Options, Start, Tracer};

use super::{Progress, Stream};
use crate::earlier::{Earlier, earlier};
use crate::kernel_ios::{KernelIos, ops_of};
use crate::named::Named;
use crate::priority;
use crate::signals::now_ns;
use crate::vanished::{check, tell};

/// A stream of the I/Os of the kernel's disks.
pub(crate) struct KernelStream {
    tracer: Tracer,
    wanted: Wanted,
    ios: KernelIos,
}

impl KernelStream {
    /// A stream of the I/Os that begin and finish from now on.
    pub(crate) fn new(
        devices: &[Device],
        named: Named,
        wanted: &Wanted,
    ) -> anyhow::Result<KernelStream> {
        let tracer = Tracer::start(&Options {
            devices: devices.to_vec(),
            later: named == Named::No,
            start: Start::Queue,
            submitters: true,
            processes: true,
            cgroups: true,
        })?;
        priority::raise();
        Ok(KernelStream {
            tracer,
            wanted: *wanted,
            ios: KernelIos::new(),
        })
    }
}

impl Stream for KernelStream {
    fn now_ns(&self) -> anyhow::Result<u64> {
        Ok(now_ns())
    }

    fn read(&mut self, ios: &mut Vec<FinishedIo>) -> anyhow::Result<Progress> {
        check(self.tracer.roster())?;
        let (records, wanted) = (&mut self.ios, &self.wanted);
        let progress = self.tracer.read(u64::MAX, |device, io| {
            if takes(wanted, io) {
                ios.push(records.finished(device, io));
            }
        })?;
        Ok(Progress {
            missed: progress.missing(),
            more: false,
            unplaced: None,
        })
    }

    fn in_flight(&mut self, now_ns: u64) -> Option<Vec<FinishedIo>> {
        let records = &mut self.ios;
        let in_flight = self.tracer.in_flight();
        let ios = in_flight.map(|(device, io)| records.in_flight(device, &io, now_ns));
        Some(ios.collect())
    }

    fn earlier(&self) -> Vec<Earlier> {
        earlier(&self.tracer)
    }

    fn names(&self, _layer: Layer) -> Option<Vec<String>> {
        let watched = self.tracer.roster().watched();
        Some(watched.map(|one| one.name.to_string()).collect())
    }

    fn tell(&mut self, is_last: bool, seen: &mut Seen) {
        tell(self.tracer.roster_mut(), is_last, seen);
    }
}

fn takes(wanted: &Wanted, io: &Io) -> bool {
    let is_op = |ops: OpSet| ops.means(ops_of(io.rwbs.bytes()));
    io.completed_ns.saturating_sub(io.begun_ns()) >= wanted.min_ns && wanted.ops.is_none_or(is_op)
}
