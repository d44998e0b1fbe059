//! A connection that is gone: what it has in flight is aborted, a part of it in each pass.
//!
//! Until that is done its place in the shard's list stays empty, so that no reply of its zios can
//! find another connection there.

use std::sync::atomic::Ordering;

use dashpot_engine::{ClientId, DiskId, Input};

use crate::conn::Intake;
use crate::shard::Shard;
use crate::slots::ZioList;

/// What is left of a connection that is gone.
#[derive(Debug)]
pub(crate) struct Leaving {
    at: usize,
    disk: DiskId,
    client: ClientId,
    zios: ZioList,
}

impl Shard {
    /// Ends a connection. What it has in flight is aborted, now and in the next passes.
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
        self.leave(Leaving {
            at,
            disk: conn.disk,
            client: conn.client,
            zios: conn.zios,
        });
    }

    /// Goes on with a connection that is gone.
    pub(crate) fn leave_on(&mut self) {
        if let Some(leaving) = self.leaving.pop_front() {
            self.leave(leaving);
        }
    }

    /// Aborts the youngest zios of a connection: so none moves up in its lane to be aborted next.
    fn leave(&mut self, mut leaving: Leaving) {
        let zios = self.slots.youngest(leaving.zios, ABORTS_PER_PASS);
        for zio in &zios {
            self.slots.unlink(*zio, &mut leaving.zios);
            let slot = self.slots.get(*zio);
            if let Some(cancelled) = slot.and_then(|slot| slot.cancelled.as_ref()) {
                cancelled.store(true, Ordering::Release);
            }
        }
        self.step(Input::Abort(&zios), None);
        if !leaving.zios.is_empty() {
            return self.leaving.push_back(leaving);
        }
        self.free_conns.push(leaving.at);
        let disk = &mut self.disks[leaving.disk.0 as usize];
        disk.clients.disconnect(leaving.client);
    }
}

/// How many zios of connections that are gone a pass aborts.
const ABORTS_PER_PASS: usize = 1_024;
