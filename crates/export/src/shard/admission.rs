//! Admission: while the budget has no room for a connection's next request, the connection stalls.

use super::Shard;

impl Shard {
    /// Returns whether the budget admits one more request of a connection. The request makes the shard hold
    /// `holds` bytes. If the budget does not admit the request, stalls the connection.
    #[inline]
    pub(super) fn admits(&mut self, at: usize, holds: u64) -> bool {
        let connection = &mut self.connections[at];
        if self.budget.admits(connection, holds) {
            return true;
        }
        self.budget.stall(at, connection, holds, self.timers.now());
        self.connections.watch(at);
        false
    }

    /// Checks the stalled connections again, if some of the budget has been given back.
    pub(super) fn end_stalls(&mut self) {
        for stalled in self.budget.take_stalled() {
            let at = stalled.at;
            let Some(connection) = self.connections.get_mut(at) else {
                continue;
            };
            if !self.budget.admits_stalled(stalled, connection) {
                self.budget.keep_stalled(stalled);
                continue;
            }
            connection.stall(false);
            self.intake.push(at, connection.inlet_mut());
            self.connections.watch(at);
        }
    }

    /// Ends connections that have announced a payload and send it too slowly while other requests wait.
    pub(super) fn evict(&mut self) {
        let now = self.timers.now();
        let Some(missed) = self.budget.begin_eviction(now) else {
            return;
        };
        if let Some(missed) = missed {
            for at in self.connections.places() {
                if let Some(connection) = self.connections.get_mut(at) {
                    connection.inlet_mut().forgive(missed);
                }
            }
        }
        // Ends all late connections. Ending only as many late connections as there are stalled ones is not
        // enough, because connections that the shard has not read yet may be waiting, too.
        let is_late = |at: &usize| {
            let connection = self.connections.get(*at);
            connection.is_some_and(|connection| self.budget.is_late(connection, now))
        };
        let late: Vec<usize> = self.connections.places().filter(is_late).collect();
        late.into_iter().for_each(|at| self.connections.hang_up(at));
    }
}
