//! How a shard deals with time. It waits until something is due, reads the clock during a pass, and tells the
//! engine when the host has kept it from running.

use std::io;

use dashpot_engine::{Input, Instant};
use rustix::event::epoll;

use super::Shard;
use super::prefetch::prefetch;
use super::timers::Stop;

impl Shard {
    /// Waits until there is something to do, and begins a pass.
    pub(super) fn wait(&mut self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let (deadline, beat) = (self.deadline(), self.beat());
        let (engine, slots, stores) = (&self.engine, &self.zios.slots, &self.storage.stores);
        let prepare = |until| prefetch(engine, slots, stores, until);
        let stop = self
            .timers
            .wait(self.connections.poller(), events, deadline, beat, prepare)?;
        if let Some(stop) = stop {
            self.stopped(stop);
        }
        Ok(())
    }

    /// When the shard must stop waiting. `None` if there is no deadline; then only a descriptor wakes the
    /// shard.
    fn deadline(&mut self) -> Option<Instant> {
        if !self.intake.is_empty()
            || !self.outbox.is_empty()
            || self.storage.is_busy()
            || self.control.has_messages()
            || self.connections.has_gone()
        {
            return Some(self.timers.now());
        }
        let deadlines = [
            self.engine.next_deadline(),
            self.control.shutdown_until(),
            self.zios.budget.evicts_at(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// When the shard must wake up even if nothing is due, to notice stops. `None` unless a client other than
    /// the prober is connected.
    fn beat(&self) -> Option<Instant> {
        (self.connections.taken() > 1).then(|| self.timers.beat())
    }

    /// Reads the clock during a pass.
    #[inline]
    pub(super) fn read_clock(&mut self) {
        if let Some(stop) = self.timers.read_clock() {
            self.stopped(stop);
        }
    }

    /// Notes that the host has kept the shard from running.
    #[cold]
    fn stopped(&mut self, stop: Stop) {
        let Stop { from, until } = stop;
        self.step(Input::Stopped { from, until }, None);
    }

    /// Ends a pass that began at `woke`.
    pub(super) fn end_pass(&mut self, woke: Instant) {
        self.read_clock();
        self.timers.end_pass(woke);
    }
}
