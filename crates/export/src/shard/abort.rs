//! Connections that are gone: each pass aborts a part of what they have in flight.
//!
//! Until that is done the place of a connection in the shard's list stays empty, so that no reply of
//! its zios finds another connection there.

use std::sync::atomic::Ordering;

use dashpot_engine::{ClientId, DiskId, Input};

use crate::shard::Shard;
use crate::shard::connection::Intake;
use crate::shard::slots::ZioList;

/// What is left of a connection that is gone.
#[derive(Debug)]
pub(crate) struct Leaving {
    at: usize,
    disk: DiskId,
    client: ClientId,
    zios: ZioList,
}

impl Shard {
    /// Ends a connection. The next passes abort what it has in flight.
    pub(crate) fn hang_up(&mut self, at: usize) {
        let Some(conn) = self.conns.get_mut(at).and_then(Option::take) else {
            return;
        };
        self.kept -= conn.kept;
        if let Intake::Payload { request, bytes, .. } = conn.intake {
            self.buffers.give(bytes);
            self.give_back(conn.disk, 0, u64::from(request.length));
        }
        if conn.stalled {
            self.stalled.retain(|stalled| *stalled != at);
        }
        self.leaving.push_back(Leaving {
            at,
            disk: conn.disk,
            client: conn.client,
            zios: conn.zios,
        });
    }

    /// Aborts as much as one pass may of what connections that are gone have in flight.
    pub(crate) fn leave_on(&mut self) {
        let mut most = ABORTS_PER_PASS;
        while most > 0
            && let Some(leaving) = self.leaving.pop_front()
        {
            most -= self.leave(leaving, most).clamp(1, most);
        }
    }

    /// Aborts all that connections to a disk that are gone have in flight.
    pub(crate) fn leave_at_once(&mut self, disk: DiskId) {
        for leaving in std::mem::take(&mut self.leaving) {
            if leaving.disk == disk {
                self.leave(leaving, usize::MAX);
            } else {
                self.leaving.push_back(leaving);
            }
        }
    }

    /// Aborts at most so many zios of a connection, and says how many: the youngest, so that none
    /// moves up in its lane to be aborted next.
    fn leave(&mut self, mut leaving: Leaving, most: usize) -> usize {
        let zios = self.slots.youngest(leaving.zios, most);
        for zio in &zios {
            self.slots.unlink(*zio, &mut leaving.zios);
            let slot = self.slots.get(*zio);
            if let Some(cancelled) = slot.and_then(|slot| slot.cancelled.as_ref()) {
                cancelled.store(true, Ordering::Release);
            }
        }
        self.step(Input::Abort(&zios), None);
        if leaving.zios.is_empty() {
            self.free_conns.push(leaving.at);
            let disk = &mut self.disks[leaving.disk.0 as usize];
            disk.clients.disconnect(leaving.client);
        } else {
            self.leaving.push_back(leaving);
        }
        zios.len()
    }
}

/// How many zios of connections that are gone a pass aborts.
const ABORTS_PER_PASS: usize = 1_024;
