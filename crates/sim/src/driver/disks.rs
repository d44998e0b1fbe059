//! The driver's work for disks: starts the disks' work on zios, and tells the engine when a disk is done.

use dashpot_engine::{DiskId, Input, Segment, Zio, ZioId};

use super::Simulation;
use crate::agenda::Happening;
use crate::error::Violation;
use crate::scenario::Target;

impl Simulation {
    /// Starts a disk's work on a zio.
    pub(super) fn start(&mut self, id: ZioId) -> Result<(), Violation> {
        let Some(zio) = self.work(id) else {
            return Err(self.violation(format!("zio {} is started, but there is none", id.0)));
        };
        self.check(|checker, engine| {
            if engine.is_overhead(id) {
                checker.overhead(id);
                return Ok(());
            }
            let segments: Vec<Segment> = engine.segments(id).collect();
            checker.started(&zio, segments)
        })?;
        let DiskId(disk) = zio.device;
        let done = self.devices[disk as usize].start(self.now, zio.op, zio.length);
        if done > self.now {
            self.agenda.set(done, Happening::Done { zio: id, disk });
            return Ok(());
        }
        self.done_by(disk, id)
    }

    /// The zio on which a disk must work.
    fn work(&self, id: ZioId) -> Option<Zio> {
        if id.is_child() {
            return self.engine.child(id);
        }
        let call = self.calls.get(id.0);
        match call.request.target {
            Target::Disk(disk) => Some(self.zio(id, DiskId(disk as u32), call)),
            Target::Volume(_) => None,
        }
    }

    /// Reports that a disk has finished a zio.
    pub(super) fn done_by(&mut self, disk: u32, zio: ZioId) -> Result<(), Violation> {
        self.devices[disk as usize].active -= 1;
        self.check(|checker, _| checker.finished(zio))?;
        self.input(Input::Done(zio, Ok(())));
        Ok(())
    }
}
