//! How much clients may make a shard hold, and what becomes of a connection that wants more.
//!
//! A request is charged when it is taken out of its connection's bytes: a slot, and the payload
//! bytes that it will have to hold. While there is no room, the connection is not read: it stalls,
//! and is counted, because a bound on depth distorts the latencies that rules ask for.
//!
//! Half of the shard is the most that one disk may take, so that its neighbours go on. A connection
//! that has nothing in flight may always have one small request in flight, so that nobody is kept
//! out for ever by what others hold. And payloads have to come quickly while others wait for their
//! room.
//!
//! Beside requests, connections make a shard keep bytes that it has received and cannot look at yet,
//! and replies that their clients do not take. While these are too many, connections are read a
//! little at a time.

use dashpot_engine::{DiskId, Duration, Instant};

use crate::shard::Shard;
use crate::shard::connection::{Conn, Intake};

/// What has been taken, of a shard or of one disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) zios: u32,
    pub(crate) bytes: u64,
}

impl Taken {
    /// Whether a share of 1 / `share` of what there is has been taken.
    fn is_full(self, share: u32) -> bool {
        self.zios >= ZIOS_MAX / share || self.bytes >= PAYLOAD_MAX / u64::from(share)
    }

    /// Whether one more request may be beyond that, of a connection that has no other.
    fn admits_beyond(self, bytes: u64) -> bool {
        bytes <= TINY || (bytes <= SMALL && self.bytes + bytes <= PAYLOAD_MAX + BEYOND_MAX)
    }
}

/// What the clients of a shard make it hold, and the most that they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Zios in flight.
    pub zios: u32,
    /// The most of them.
    pub zios_max: u32,
    /// Bytes of payloads.
    pub payload: u64,
    /// The most of them, with what connections that have nothing else in flight may bring beyond.
    pub payload_max: u64,
    /// Bytes that connections keep beside their requests: received and not looked at, or replies
    /// that their clients do not take.
    pub kept: u64,
    /// When these are so many, connections are read a little at a time.
    pub kept_max: u64,
    /// Connections.
    pub connections: u32,
}

impl Default for Held {
    fn default() -> Held {
        Held {
            zios: 0,
            zios_max: ZIOS_MAX,
            payload: 0,
            payload_max: PAYLOAD_MAX + BEYOND_MAX,
            kept: 0,
            kept_max: KEPT_MAX,
            connections: 0,
        }
    }
}

/// A payload on its way.
#[derive(Clone, Copy, Debug)]
struct Transit {
    length: u32,
    received: usize,
    /// Since when its client has had the time to send it, and others have waited for its room.
    since: Instant,
}

impl Transit {
    /// Whether it is slower than one that takes all the time that a payload may take.
    fn is_late(self, now: Instant) -> bool {
        let whole = (TRANSIT_MAX - TRANSIT_LEAST).as_nanos();
        let earned = whole * self.received as u64 / u64::from(self.length.max(1));
        now.since(self.since) >= TRANSIT_LEAST + Duration::from_nanos(earned)
    }
}

impl Shard {
    /// Whether a connection may have one more request in flight, which holds `bytes`.
    pub(crate) fn has_room(&self, conn: &Conn, bytes: u64) -> bool {
        !self.is_full(conn.disk) || (conn.zios.is_empty() && self.taken.admits_beyond(bytes))
    }

    /// Whether requests of a disk wait.
    fn is_full(&self, disk: DiskId) -> bool {
        let disk = self.disks[disk.0 as usize].taken;
        self.taken.is_full(1) || disk.is_full(DISK_SHARE)
    }

    pub(crate) fn charge(&mut self, disk: DiskId, zios: u32, bytes: u64) {
        for taken in [&mut self.taken, &mut self.disks[disk.0 as usize].taken] {
            taken.zios += zios;
            taken.bytes += bytes;
        }
    }

    pub(crate) fn give_back(&mut self, disk: DiskId, zios: u32, bytes: u64) {
        for taken in [&mut self.taken, &mut self.disks[disk.0 as usize].taken] {
            taken.zios -= zios;
            taken.bytes -= bytes;
        }
        self.gave_back = true;
    }

    /// Counts anew what a connection keeps.
    pub(crate) fn reckon(&mut self, at: usize) {
        if let Some(conn) = self.conns.get_mut(at).and_then(Option::as_mut) {
            let keeps = conn.keeps();
            self.kept = self.kept - std::mem::replace(&mut conn.kept, keeps) + keeps;
        }
    }

    /// What all of that is now.
    pub(crate) fn held(&self) -> Held {
        Held {
            zios: self.taken.zios,
            payload: self.taken.bytes,
            kept: self.kept,
            connections: (self.conns.len() - self.free_conns.len()) as u32,
            ..Held::default()
        }
    }

    /// Whether connections keep as much as they may.
    pub(crate) fn keeps_too_much(&self) -> bool {
        self.kept >= KEPT_MAX
    }

    /// Stops reading a connection until there is room for the `bytes` that its next request holds.
    pub(crate) fn stall(&mut self, at: usize, bytes: u64) {
        let Some(conn) = self.conn(at) else {
            return;
        };
        conn.stalled = true;
        conn.wanted = bytes;
        let disk = conn.disk;
        self.disks[disk.0 as usize].stalls += 1;
        if self.stalled.is_empty() {
            self.waiting_since = self.now;
            self.evicted = self.now;
        }
        self.stalled.push(at);
        self.watch(at);
    }

    /// Looks again at the connections that are not read, if anything was given back.
    pub(crate) fn end_stalls(&mut self) {
        if self.stalled.is_empty() || !std::mem::take(&mut self.gave_back) {
            return;
        }
        for at in std::mem::take(&mut self.stalled) {
            let Some(conn) = self.conns[at].as_ref() else {
                continue;
            };
            if !self.has_room(conn, conn.wanted) {
                self.stalled.push(at);
            } else if let Some(conn) = self.conn(at) {
                conn.stalled = false;
                self.queue_read(at);
                self.watch(at);
            }
        }
    }

    /// When to look for payloads that do not come: only while somebody waits for their room.
    pub(crate) fn evicts_at(&self) -> Option<Instant> {
        (!self.stalled.is_empty()).then_some(self.evicted + EVICT_EVERY)
    }

    /// Ends connections that have announced a payload and send it too slowly, while others wait.
    pub(crate) fn evict(&mut self) {
        let Some(due) = self.evicts_at().filter(|at| *at <= self.now) else {
            return;
        };
        let missed = self.now.since(due);
        self.evicted = self.now;
        if missed >= STOPPED {
            (0..self.conns.len()).for_each(|at| self.forgive(at, missed));
        }
        // All that are late, and not one for each that waits: more may wait than have been read.
        let late: Vec<usize> = (0..self.conns.len())
            .filter(|at| self.is_late(*at))
            .collect();
        late.into_iter().for_each(|at| self.hang_up(at));
    }

    /// Gives a client the time back in which this shard did not run, and read nothing.
    fn forgive(&mut self, at: usize, missed: Duration) {
        if let Some(conn) = self.conn(at)
            && let Intake::Payload { since, .. } = &mut conn.intake
        {
            *since = *since + missed;
        }
    }

    /// Whether a connection keeps others waiting for a payload that it sends too slowly.
    fn is_late(&self, at: usize) -> bool {
        let Some(conn) = self.conns[at].as_ref() else {
            return false;
        };
        let Intake::Payload {
            request,
            since,
            bytes,
            ..
        } = &conn.intake
        else {
            return false;
        };
        let transit = Transit {
            length: request.length,
            received: bytes.len(),
            since: self.waiting_since.max(*since),
        };
        self.is_full(conn.disk) && transit.is_late(self.now)
    }
}

/// The most zios in flight on one shard.
const ZIOS_MAX: u32 = 262_144;
/// The most payload bytes that a shard holds before it stops reading.
const PAYLOAD_MAX: u64 = 256 << 20;
/// One disk may take one part in so many.
const DISK_SHARE: u32 = 2;
/// What a connection with nothing in flight may make a shard hold beyond that, as long as all of
/// that is not too much: one large request, and many small ones.
const SMALL: u64 = 256 << 10;
const BEYOND_MAX: u64 = (32 << 20) + (64 << 20);
/// What such a connection may make a shard hold in any case.
const TINY: u64 = 16 << 10;
/// The most bytes that connections keep beside their requests before they are read a little at a
/// time.
const KEPT_MAX: u64 = 64 << 20;
/// How long a payload may take while others wait for its room, if it comes at a steady rate; and
/// how far it may be behind.
const TRANSIT_MAX: Duration = Duration::from_secs(10);
const TRANSIT_LEAST: Duration = Duration::from_millis(500);
/// How often such payloads are looked for.
const EVICT_EVERY: Duration = Duration::from_millis(100);
/// A shard that looks so much later has been stopped.
const STOPPED: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
