//! Power cuts of exports and pools.

use std::sync::mpsc;

use dashpot_engine::{Answer, Command, Device, Errno, Input, Outcome, PoolId, ZioId};

use super::Shard;
use crate::export::ExportId;
use crate::message::{CutAnswer, Message, PoolCutAnswer};
use crate::power::{Cut, CutError, Loss, PoolLoss, Then};

impl Shard {
    /// Cuts the power of an export, and answers when the medium has what is left. If a worker thread works
    /// for the store, the cut happens when the thread has finished.
    pub(super) fn cut_and_answer(&mut self, export: ExportId, cut: Cut, answer: CutAnswer) {
        let disks = match self
            .exports
            .find(export)
            .map(|_| self.exports.device(export))
        {
            Some(Device::Disk(disk)) => vec![disk],
            _ => Vec::new(),
        };
        if self.storage.pause(&disks) {
            return self.control.cuts().wait(Message::Cut(export, cut, answer));
        }
        let loss = self.cut(export, &cut);
        let cut_off = self
            .storage
            .resume(disks, loss.as_ref().is_ok_and(|loss| !loss.was_off));
        let answer = |outcome| answer(loss.and_then(|loss| after(outcome, loss)));
        self.control.cuts().answer(cut_off, Box::new(answer));
    }

    /// Cuts the power of a pool, as [`Shard::cut_and_answer`] does for an export.
    pub(super) fn cut_pool_and_answer(&mut self, pool: PoolId, cut: Cut, answer: PoolCutAnswer) {
        let disks = self.engine.disks_of(pool);
        if self.storage.pause(&disks) {
            return self
                .control
                .cuts()
                .wait(Message::CutPool(pool, cut, answer));
        }
        let loss = self.cut_pool(pool, &cut);
        let cut_off = self
            .storage
            .resume(disks, loss.as_ref().is_ok_and(|loss| !loss.was_off));
        let answer = |outcome| answer(loss.and_then(|loss| after(outcome, loss)));
        self.control.cuts().answer(cut_off, Box::new(answer));
    }

    /// Cuts the power of an export. The export then keeps serving, restarts or stays off.
    fn cut(&mut self, export: ExportId, cut: &Cut) -> Result<Loss, CutError> {
        self.exports.find(export).ok_or(CutError::LosesNothing)?;
        let device = self.exports.device(export);
        if !self.storage.stores.lose(device) {
            return Err(CutError::LosesNothing);
        }
        if self.begin_cut(&[export], cut)? {
            return Ok(Loss {
                was_off: true,
                ..Loss::default()
            });
        }
        let loss = self.storage.cut(device, cut, self.timers.now())?;
        self.switch(&[export], cut.then != Then::Off);
        Ok(loss)
    }

    /// Cuts the power of a pool's disks and, unless `cut` lets the pool go on, of the pool's host.
    fn cut_pool(&mut self, pool: PoolId, cut: &Cut) -> Result<PoolLoss, CutError> {
        let disks = self.engine.disks_of(pool);
        let devices = || disks.iter().copied().map(Device::Disk);
        if !devices().all(|device| self.storage.stores.lose(device)) {
            return Err(CutError::LosesNothing);
        }
        let exports = self.exports_of(pool);
        let mut loss = PoolLoss {
            was_off: self.begin_cut(&exports, cut)?,
            ..PoolLoss::default()
        };
        if loss.was_off {
            self.command(Command::Repair(pool), Box::new(|_| ()));
            return Ok(loss);
        }
        if !cut.goes_on() {
            loss.txgs = self.crash(pool);
            // The unfinished part of a trim must not reach a disk after the cut.
            self.drop_pieces(|shard, zio| {
                let child = shard.engine.child(zio);
                child.is_some_and(|child| disks.contains(&child.device))
            });
        }
        let now = self.timers.now();
        for (at, device) in (0..).zip(devices()) {
            let seed = cut.seed ^ at << 32;
            loss.disks
                .push(self.storage.cut(device, &Cut { seed, ..*cut }, now)?);
        }
        if cut.then != Then::Off {
            self.switch(&exports, true);
            self.command(Command::Repair(pool), Box::new(|_| ()));
        }
        Ok(loss)
    }

    /// If all exports have power, switches them off and ends their connections, unless `cut` lets the exports
    /// go on. If one is off, a restart switches all of them on again, and any other cut fails. Returns
    /// whether one was off.
    fn begin_cut(&mut self, exports: &[ExportId], cut: &Cut) -> Result<bool, CutError> {
        let mut exports_off = exports.iter();
        let is_off = exports_off.any(|export| self.exports.info(*export).power.is_off());
        match (is_off, cut.then) {
            (true, Then::Restart) => self.switch(exports, true),
            (true, _) => return Err(CutError::IsOff),
            (false, _) if cut.goes_on() => {}
            (false, _) => {
                self.switch(exports, false);
                exports.iter().for_each(|export| self.drop_clients(*export));
            }
        }
        Ok(is_off)
    }

    fn switch(&mut self, exports: &[ExportId], on: bool) {
        for export in exports {
            self.exports.info(*export).power.switch(on);
        }
    }

    /// The exports of a pool's volumes.
    fn exports_of(&self, pool: PoolId) -> Vec<ExportId> {
        let of_pool = |device| match device {
            Device::Volume(volume) => self.engine.pool_of(volume) == Some(pool),
            Device::Disk(_) => false,
        };
        let ids = self.exports.ids();
        ids.filter(|id| of_pool(self.exports.device(*id))).collect()
    }

    /// Makes a pool lose its dirty data in memory. Returns the lost txgs, each with the number of its dirty
    /// bytes.
    fn crash(&mut self, pool: PoolId) -> Vec<(u64, u64)> {
        let (sender, answered) = mpsc::channel();
        let answer = Box::new(move |answer| {
            // The receiver is still there, so this send cannot fail.
            let _ = sender.send(answer);
        });
        self.command(Command::Crash(pool), answer);
        match answered.try_recv() {
            Ok(Ok(Answer::Crashed(lost))) => lost,
            _ => Vec::new(),
        }
    }

    /// Ends all connections to an export, and drops the unfinished work that its store does for them.
    fn drop_clients(&mut self, export: ExportId) {
        for at in self.connections.places() {
            let connection = self.connections.get(at);
            if connection.is_some_and(|connection| connection.export() == export) {
                self.connections.hang_up(at);
            }
        }
        // Zios whose work the store has not begun must not reach the store after the cut.
        self.abort_departed_at_once(export);
        self.drop_pieces(|shard, zio| {
            let slot = shard.zios.slots.get(zio).filter(|_| !zio.is_child());
            slot.is_some_and(|slot| slot.export() == export)
        });
    }

    /// Drops the unfinished pieces of work of all zios for which `are_gone` returns true.
    fn drop_pieces(&mut self, are_gone: impl Fn(&Shard, ZioId) -> bool) {
        for (zio, done) in self.storage.take_pieces() {
            if are_gone(self, zio) {
                self.step(Input::Done(zio, Err(Errno::Shutdown)), None);
            } else {
                self.storage.unfinished().push_piece(zio, done);
            }
        }
    }
}

/// The answer to a cut, once the media have what is left, or have failed.
fn after<T>(restored: Outcome, loss: T) -> Result<T, CutError> {
    restored.map(|()| loss).map_err(CutError::Failed)
}
