//! A step: the shard passes an input to the engine, and carries out the engine's actions.

use dashpot_engine::{Action, Answer, Device, Input, Outcome, ZioId};

use super::Shard;
use super::storage::StoreWork;
use super::submission::Submission;

impl Shard {
    /// Passes an input to the engine and carries out its actions. `submission` is the write that is being
    /// submitted, if its payload is in the receive buffer.
    pub(super) fn step(&mut self, input: Input<'_>, mut submission: Option<Submission<'_>>) {
        let mut actions = std::mem::take(&mut self.actions);
        let now = self.timers.now();
        self.engine.step(now, input, &mut actions);
        let mut at = 0;
        while let Some(action) = actions.get_mut(at) {
            at += 1;
            match action {
                Action::Start(id) => {
                    let id = *id;
                    let outcome = self.store_work().work(id, &mut submission);
                    self.end_work(id, outcome, &mut actions);
                }
                Action::StartDamaged(id, fault) => {
                    let (id, fault) = (*id, *fault);
                    let mut work = self.store_work();
                    let outcome = work.work_damaged(id, fault, &mut submission);
                    self.end_work(id, outcome, &mut actions);
                }
                Action::Move(action) => {
                    let action = *action;
                    self.store_work().move_bytes(action, &mut submission);
                }
                Action::Complete(id, outcome) => self.reply(*id, *outcome),
                Action::Drop(id) => {
                    self.forget(*id);
                }
                Action::Ended {
                    zio,
                    disk,
                    outcome,
                    told,
                } => {
                    let (zio, device) = (*zio, Device::Disk(*disk));
                    if let (Ok(()), told) = (*outcome, *told) {
                        self.storage.told(zio, device, told);
                    }
                    self.storage.forget(zio, device);
                }
                Action::Record(pool) => {
                    let pool = *pool;
                    if !self.storage.record_mirrors(pool, &self.engine) {
                        let recorded = Input::Recorded(pool, Ok(()));
                        self.engine.step(now, recorded, &mut actions);
                    }
                }
                Action::Answer(id, answer) => {
                    let answer = std::mem::replace(answer, Ok(Answer::Done));
                    self.control.answer(*id, answer);
                }
            }
        }
        self.store_work().fill_block(&mut submission);
        while let Some((disk, is_full)) = self.storage.damages.take_news() {
            self.engine.spare_data(disk, is_full);
        }
        actions.clear();
        self.actions = actions;
    }

    /// Tells the engine that a store has done the work of a zio, if it has.
    #[inline]
    fn end_work(&mut self, id: ZioId, outcome: Option<Outcome>, actions: &mut Vec<Action>) {
        if let Some(outcome) = outcome {
            let now = self.timers.now();
            self.engine.step(now, Input::Done(id, outcome), actions);
        }
    }

    /// The parts that the work of stores needs.
    #[inline]
    pub(super) fn store_work(&mut self) -> StoreWork<'_> {
        StoreWork {
            storage: &mut self.storage,
            engine: &self.engine,
            exports: &self.exports,
            connections: &mut self.connections,
            zios: &mut self.zios,
            timers: &mut self.timers,
        }
    }

    /// Queues the reply that the engine asks for.
    fn reply(&mut self, id: ZioId, outcome: Outcome) {
        let slot = &mut self.zios.slots[id];
        slot.end(outcome);
        // The connection of a zio in flight may be gone.
        let Some(at) = slot.connection() else {
            return;
        };
        let Some(connection) = self.connections.get_mut(at) else {
            return;
        };
        let outlet = connection.outlet_mut();
        if outlet.is_blocked() {
            // From here on, only the client can delay the reply.
            slot.offer(self.timers.now());
        }
        outlet.put_zio(id);
        self.outbox.push(at, outlet);
    }

    /// Forgets a zio that the engine has finished with.
    pub(super) fn forget(&mut self, id: ZioId) {
        if let Some(device) = self.zios.forget(id) {
            self.storage.forget(id, device);
        }
    }

    /// Puts the events of finished zios into the shard's ring.
    #[inline]
    pub(super) fn record(&mut self) {
        self.recorder.record(self.engine.events());
    }
}
