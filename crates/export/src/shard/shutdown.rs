//! The end of a shard. Zios in flight have a grace period, and then fail.

use dashpot_engine::{Command, Duration, Errno};

use super::Shard;
use super::control::ShutdownStep;

impl Shard {
    /// Stops reading; every connection closes after its last reply. A second call can only shorten
    /// the grace period.
    pub(super) fn begin_shutdown(&mut self, grace: Duration) {
        if !self.control.begin_shutdown(self.timers.now(), grace) {
            return;
        }
        for at in self.connections.places() {
            if let Some(connection) = self.connections.get_mut(at) {
                connection.close();
                self.watch(at);
                self.close_if_finished(at);
            }
        }
    }

    pub(super) fn advance_shutdown(&mut self) {
        match self.control.advance_shutdown(self.timers.now()) {
            Some(ShutdownStep::Fail) => {
                self.command(Command::FailHeld(Errno::Shutdown), Box::new(|_| ()));
            }
            Some(ShutdownStep::HangUp) => {
                self.connections.places().for_each(|at| self.hang_up(at));
            }
            None => {}
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.control.is_shutting_down() && self.departures.is_empty() && self.connections.is_empty()
    }

    /// Syncs the stores: an orderly shutdown loses no writes, even those that no flush has covered.
    pub(super) fn sync_stores(&mut self) {
        for (disk, store) in self.stores.iter_mut() {
            // A store without pool threads syncs here.
            let _ = store.flush();
            if let Some(store) = store.blocking()
                && !self.exports.is_read_only(disk)
            {
                // A failure marks the disk as faulted. No client is left to report it to.
                let _ = store.sync();
            }
        }
    }
}
