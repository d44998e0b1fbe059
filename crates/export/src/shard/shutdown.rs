//! The end of a shard. Zios in flight have a grace period, after which they fail.

use std::io;

use dashpot_engine::{Command, Duration, Errno};

use super::Shard;
use super::control::ShutdownStep;
use crate::store::Attempt;

impl Shard {
    /// Stops reading the connections, and closes each after its last reply. A second call changes the grace
    /// period, unless the grace period is already over.
    pub(super) fn begin_shutdown(&mut self, grace: Duration) {
        if !self.control.begin_shutdown(self.timers.now(), grace) {
            return;
        }
        self.command(Command::Drain, Box::new(|_| ()));
        for at in self.connections.places() {
            if let Some(connection) = self.connections.get_mut(at) {
                connection.close();
                self.connections.watch(at);
                self.connections.close_if_finished(at);
            }
        }
    }

    pub(super) fn advance_shutdown(&mut self) {
        match self.control.advance_shutdown(self.timers.now()) {
            Some(ShutdownStep::Fail) => {
                self.command(Command::FailHeld(Errno::Shutdown), Box::new(|_| ()));
            }
            Some(ShutdownStep::HangUp) => {
                self.connections
                    .places()
                    .for_each(|at| self.connections.hang_up(at));
                self.give_up_dirty();
            }
            None => {}
        }
    }

    pub(super) fn is_over(&mut self) -> bool {
        self.control.is_shutting_down()
            && self.connections.is_empty()
            && (self.engine.dirty() == 0 || self.control.lost() > 0)
            && !self.storage.stores.are_at_medium()
    }

    /// Gives up acknowledged data if a pool's disks refuse it. The shutdown then no longer waits for this
    /// data to reach the disks.
    fn give_up_dirty(&mut self) {
        if self.engine.is_degraded() {
            self.control.lose(self.engine.dirty());
        }
    }

    /// Fails if acknowledged data did not reach the disks: the shutdown has given up data of a pool, or a
    /// store could not be synced.
    pub(super) fn loss(&self, synced: bool) -> io::Result<()> {
        match (self.control.lost(), synced) {
            (0, true) => Ok(()),
            (0, false) => Err(io::Error::other(
                "a store could not be synced, and writes that no flush has covered may be lost",
            )),
            (bytes, _) => Err(io::Error::other(format!(
                "the disks of a pool fail, and {bytes} bytes that clients have written are lost"
            ))),
        }
    }

    /// Syncs the stores, because an orderly shutdown must lose no writes, not even those that no flush has
    /// covered. Returns whether all stores could be synced.
    pub(super) fn sync_stores(&mut self) -> bool {
        let mut synced = true;
        for (disk, store) in self.storage.stores.iter_mut() {
            // This call syncs stores that do not use worker threads.
            synced &= !matches!(store.flush(), Attempt::Done(Err(_)));
            if let Some(store) = store.blocking()
                && !self.exports.is_read_only(disk)
            {
                // A failure marks the disk as faulted. No client is left that could receive the error.
                synced &= store.sync().is_ok();
            }
        }
        synced
    }
}
