//! Ends connections. Each pass aborts some of the zios of connections that are gone.

use dashpot_engine::Input;

use super::Shard;
use super::connections::Departure;
use crate::export::ExportId;

impl Shard {
    /// Aborts zios of connections that are gone, but no more than a pass may abort.
    pub(super) fn abort_departed(&mut self) {
        self.connections.part_with_ended(&mut self.zios);
        let mut most = ABORTS_PER_PASS;
        while most > 0
            && let Some(departure) = self.connections.next_departure()
        {
            most -= self.abort(departure, most).clamp(1, most);
        }
    }

    /// Aborts all zios that connections to an export have left behind.
    pub(super) fn abort_departed_at_once(&mut self, export: ExportId) {
        self.connections.part_with_ended(&mut self.zios);
        for departure in self.connections.departures_of(export) {
            self.abort(departure, usize::MAX);
        }
    }

    /// Aborts a request whose client no longer waits for the reply, unless the reply is already on its way.
    pub(super) fn withdraw(&mut self, at: usize, cookie: u64) {
        let zios = self.connections[at].zios_mut();
        let Some(zio) = self.zios.slots.find(*zios, cookie) else {
            return;
        };
        self.zios.slots.unlink(zio, zios);
        self.zios.slots[zio].cancel();
        self.step(Input::Abort(&[zio]), None);
    }

    /// Aborts at most `most` zios of a connection. Returns how many it has aborted. Begins with the youngest:
    /// if an older zio were aborted first, the next zio of its lane would start, only to be aborted as well.
    fn abort(&mut self, mut departure: Departure, most: usize) -> usize {
        let zios = self.zios.slots.youngest(departure.zios, most);
        for zio in &zios {
            self.zios.slots.unlink(*zio, &mut departure.zios);
            self.zios.slots[*zio].cancel();
        }
        self.step(Input::Abort(&zios), None);
        if departure.zios.is_empty() {
            self.connections.release(departure.at);
            self.exports.disconnect(departure.export, departure.client);
        } else {
            self.connections.put_back(departure);
        }
        zios.len()
    }
}

/// A pass aborts at most this many zios of departed connections.
const ABORTS_PER_PASS: usize = 1_024;
