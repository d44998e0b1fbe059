//! How much clients may make a shard hold, and what becomes of a connection that wants more.
//!
//! A request is charged when it is taken out of its connection's bytes: a slot, and the payload
//! bytes that it will have to hold. While there is no room, the connection is not read: it stalls,
//! and is counted, because a bound on depth distorts the latencies that rules ask for.
//!
//! Half of the shard is the most that one disk may take, so that its neighbours go on. And a
//! connection that has nothing in flight may always have one small request in flight, so that
//! nobody is kept out for ever by what others hold.

use dashpot_engine::{DiskId, Duration, Instant};

use crate::conn::{Conn, Intake};
use crate::shard::Shard;

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
}

impl Shard {
    /// Whether a connection may have one more request in flight, which holds `bytes`.
    pub(crate) fn has_room(&self, conn: &Conn, bytes: u64) -> bool {
        let disk = self.disks[conn.disk.0 as usize].taken;
        let is_full = self.taken.is_full(1) || disk.is_full(DISK_SHARE);
        !is_full || (conn.zios.is_empty() && bytes <= SMALL)
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

    /// Stops reading a connection until there is room for the `bytes` that its next request holds.
    pub(crate) fn stall(&mut self, at: usize, bytes: u64) {
        let Some(conn) = self.conn(at) else {
            return;
        };
        conn.stalled = true;
        conn.wanted = bytes;
        let disk = conn.disk;
        self.disks[disk.0 as usize].stalls += 1;
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

    /// Ends connections that have announced a payload and do not send it, while others wait.
    pub(crate) fn evict(&mut self) {
        if self.evicts_at().is_none_or(|at| at > self.now) {
            return;
        }
        self.evicted = self.now;
        for at in 0..self.conns.len() {
            if let Some(conn) = self.conn(at)
                && let Intake::Payload { heard, .. } = conn.intake
                && self.now.since(heard) >= PAYLOAD_SILENCE_MAX
            {
                self.hang_up(at);
            }
        }
    }
}

/// The most zios in flight on one shard.
const ZIOS_MAX: u32 = 262_144;
/// The most payload bytes that a shard holds before it stops reading.
const PAYLOAD_MAX: u64 = 256 << 20;
/// One disk may take one part in so many.
const DISK_SHARE: u32 = 2;
/// What a connection with nothing in flight may always make a shard hold.
const SMALL: u64 = 256 << 10;
/// How long an announced payload may be silent while others wait for its room.
const PAYLOAD_SILENCE_MAX: Duration = Duration::from_secs(10);
/// How often such payloads are looked for.
const EVICT_EVERY: Duration = Duration::from_secs(1);
