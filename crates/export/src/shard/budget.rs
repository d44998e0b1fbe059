//! The budget limits how much memory clients can make a shard hold.
//!
//! When the shard takes a request from a connection, it charges the budget with a slot, and with the payload
//! bytes that it will have to hold. While the budget is used up, the connection stalls: the shard does not
//! read it. Stalls are counted, because a limit on depth distorts the latencies that rules ask for.
//!
//! One export may take at most half of the shard's budget, so that the other exports keep working. A
//! connection with nothing in flight may always send one small request, so that other clients cannot keep it
//! out for ever. While other requests wait for room, payloads have to arrive quickly.
//!
//! In addition to their requests, connections make a shard keep received bytes that it cannot decode yet, and
//! replies that clients do not take. While the shard keeps too many of these bytes, it reads only a little at
//! a time from each connection.

use dashpot_engine::{Duration, Instant};

use super::connection::Connection;
use crate::export::ExportId;
use crate::held::{BEYOND_MAX, Held, KEPT_MAX, PAYLOAD_MAX, ZIOS_MAX};

/// The budget of a shard.
#[derive(Debug)]
pub(super) struct Budget {
    taken: Taken,
    /// How much of the budget each export has taken, by [`ExportId`].
    exports: Vec<Share>,
    /// Whether some of the budget has been given back since the shard last checked the stalled connections.
    gave_back: bool,
    stalled: Vec<Stalled>,
    /// When the shard last stalled a connection while no other connection was stalled.
    waiting_since: Instant,
    /// When the shard last looked for slow payloads.
    evicted: Instant,
    /// The number of bytes that connections [keep](Connection::recount) in addition to their requests.
    kept: u64,
}

/// How much of the budget one export has taken.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    taken: Taken,
    /// How often a connection to this export was stalled.
    stalls: u64,
}

/// A connection that the shard does not read because the budget is used up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stalled {
    /// The place of the connection.
    pub(super) at: usize,
    export: ExportId,
    /// How many bytes the connection's next request would make the shard hold.
    wants: u64,
}

/// How much of the budget all clients of a shard, or the clients of one export, have taken.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    zios: u32,
    bytes: u64,
}

impl Taken {
    /// Whether the amount has reached one `share`-th of the whole budget.
    fn is_full(self, share: u32) -> bool {
        self.zios >= ZIOS_MAX / share || self.bytes >= PAYLOAD_MAX / u64::from(share)
    }

    /// Whether a connection with nothing in flight may send a request although the budget is full.
    fn admits_beyond(self, bytes: u64) -> bool {
        bytes <= TINY || (bytes <= SMALL && self.bytes + bytes <= PAYLOAD_MAX + BEYOND_MAX)
    }
}

/// A payload that a client is sending.
#[derive(Clone, Copy, Debug)]
struct Transit {
    length: u32,
    received: usize,
    /// When the shard began to time the payload: when the client could first send it, or when requests began
    /// to wait for room, whichever is later.
    since: Instant,
}

impl Transit {
    /// Whether the payload arrives more slowly than the shard permits.
    fn is_late(self, now: Instant) -> bool {
        let whole = (TRANSIT_MAX - TRANSIT_LEAST).as_nanos();
        let earned = whole * self.received as u64 / u64::from(self.length.max(1));
        now.since(self.since) >= TRANSIT_LEAST + Duration::from_nanos(earned)
    }
}

impl Budget {
    /// The budget of a shard with this many exports.
    pub(super) fn new(exports: usize) -> Budget {
        Budget {
            taken: Taken::default(),
            exports: vec![Share::default(); exports],
            gave_back: false,
            stalled: Vec::new(),
            waiting_since: Instant::ZERO,
            evicted: Instant::ZERO,
            kept: 0,
        }
    }

    /// Whether a connection may have one more request in flight, for which the shard has to hold this many
    /// `bytes`.
    #[inline]
    pub(super) fn admits(&self, connection: &Connection, bytes: u64) -> bool {
        !self.is_full(connection.export())
            || (connection.zios().is_empty() && self.taken.admits_beyond(bytes))
    }

    #[inline]
    fn is_full(&self, export: ExportId) -> bool {
        let share = &self.exports[export.0 as usize];
        self.taken.is_full(1) || share.taken.is_full(EXPORT_SHARE)
    }

    #[inline]
    pub(super) fn charge(&mut self, export: ExportId, zios: u32, bytes: u64) {
        let share = &mut self.exports[export.0 as usize];
        for taken in [&mut self.taken, &mut share.taken] {
            taken.zios += zios;
            taken.bytes += bytes;
        }
    }

    #[inline]
    pub(super) fn give_back(&mut self, export: ExportId, zios: u32, bytes: u64) {
        let share = &mut self.exports[export.0 as usize];
        for taken in [&mut self.taken, &mut share.taken] {
            taken.zios -= zios;
            taken.bytes -= bytes;
        }
        self.gave_back = true;
    }

    /// Counts again how many bytes a connection keeps.
    #[inline]
    pub(super) fn recount(&mut self, connection: &mut Connection) {
        let (before, now) = connection.recount();
        self.kept = self.kept - before + now;
    }

    /// Forgets a connection that is gone.
    pub(super) fn forget(&mut self, at: usize, connection: &Connection) {
        self.kept -= connection.counted();
        if connection.is_stalled() {
            self.stalled.retain(|stalled| stalled.at != at);
        }
    }

    /// The memory that the shard holds for its clients now.
    pub(super) fn held(&self, connections: usize) -> Held {
        Held {
            zios: self.taken.zios,
            payload: self.taken.bytes,
            kept: self.kept,
            connections: connections as u32,
            ..Held::default()
        }
    }

    /// Whether connections keep as many bytes as they may.
    #[inline]
    pub(super) fn keeps_too_much(&self) -> bool {
        self.kept >= KEPT_MAX
    }

    /// Stalls a connection until there is room for its next request, which `wants` this many bytes.
    pub(super) fn stall(
        &mut self,
        at: usize,
        connection: &mut Connection,
        wants: u64,
        now: Instant,
    ) {
        connection.stall(true);
        let export = connection.export();
        self.exports[export.0 as usize].stalls += 1;
        if self.stalled.is_empty() {
            self.waiting_since = now;
            self.evicted = now;
        }
        self.stalled.push(Stalled { at, export, wants });
    }

    /// Takes the list of stalled connections, if some of the budget has been given back since the last call.
    /// The caller must end each stall or [keep](Budget::keep_stalled) it.
    pub(super) fn take_stalled(&mut self) -> Vec<Stalled> {
        if self.stalled.is_empty() || !std::mem::take(&mut self.gave_back) {
            return Vec::new();
        }
        std::mem::take(&mut self.stalled)
    }

    pub(super) fn keep_stalled(&mut self, stalled: Stalled) {
        self.stalled.push(stalled);
    }

    /// Whether the stall of this connection can end.
    pub(super) fn admits_stalled(&self, stalled: Stalled, connection: &Connection) -> bool {
        self.admits(connection, stalled.wants)
    }

    /// How many connections to an export are stalled now.
    pub(super) fn stalled(&self, export: ExportId) -> u32 {
        let of_export = |stalled: &&Stalled| stalled.export == export;
        self.stalled.iter().filter(of_export).count() as u32
    }

    /// How often connections to an export have been stalled since the start.
    pub(super) fn stalls(&self, export: ExportId) -> u64 {
        self.exports[export.0 as usize].stalls
    }

    /// When the shard has to look for slow payloads again. `None` while no connection is stalled.
    pub(super) fn evicts_at(&self) -> Option<Instant> {
        (!self.stalled.is_empty()).then_some(self.evicted + EVICT_EVERY)
    }

    /// Begins to look for slow payloads, or returns `None` if it is not yet time for that. The inner value is
    /// the delay of this look if the host stopped the shard meanwhile, and `None` otherwise.
    pub(super) fn begin_eviction(&mut self, now: Instant) -> Option<Option<Duration>> {
        let due = self.evicts_at().filter(|at| *at <= now)?;
        let missed = now.since(due);
        self.evicted = now;
        Some((missed >= STOPPED).then_some(missed))
    }

    /// Whether a connection sends its payload too slowly while other requests wait for room.
    pub(super) fn is_late(&self, connection: &Connection, now: Instant) -> bool {
        let Some(incoming) = connection.inlet().incoming() else {
            return false;
        };
        let transit = Transit {
            length: incoming.request.length,
            received: incoming.payload.len(),
            since: self.waiting_since.max(incoming.since()),
        };
        self.is_full(connection.export()) && transit.is_late(now)
    }
}

/// One export may take at most the whole budget divided by this number.
const EXPORT_SHARE: u32 = 2;
/// The largest request that a connection with nothing in flight may send beyond a full budget, as long as
/// [`BEYOND_MAX`] is not used up. [`BEYOND_MAX`] has room for one large request and many of this size.
const SMALL: u64 = 256 << 10;
/// A connection with nothing in flight may always send a request of up to this size.
const TINY: u64 = 16 << 10;
/// How long a payload that arrives at a steady rate may take while other requests wait for room.
const TRANSIT_MAX: Duration = Duration::from_secs(10);
/// How long even the smallest payload may take.
const TRANSIT_LEAST: Duration = Duration::from_millis(500);
/// How often the shard looks for slow payloads.
const EVICT_EVERY: Duration = Duration::from_millis(100);
/// If a look for slow payloads is this late, the host must have stopped the shard.
const STOPPED: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
