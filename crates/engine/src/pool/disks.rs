//! What a pool sends to its disks: the I/O that their queues allow, and syncs.

use super::pool::Pool;
use super::step::{Child, Covers, Step, SyncFor, Work};
use crate::client::ClientId;
use crate::time::Instant;
use crate::zio::{DiskId, Op, Zio, ZioId};

impl Pool {
    /// Sends all disks, or all sides of a member, the I/O that the limits of their queues allow.
    pub(super) fn pump_all(&mut self, step: &mut Step<'_>) {
        (0..self.disks.len()).for_each(|disk| self.pump(disk, step));
    }

    pub(super) fn pump_member(&mut self, member: usize, step: &mut Step<'_>) {
        for side in 0..self.map.sides(member).len() {
            self.pump(self.map.sides(member)[side], step);
        }
    }

    /// Sends a disk all the I/O that the limits of its queue allow.
    pub(super) fn pump(&mut self, disk: usize, step: &mut Step<'_>) {
        let async_writes = self.throttle.max_async_writes();
        loop {
            let leaf = &mut self.disks[disk];
            let Some(picked) = leaf.queue.pick(step.now, &leaf.limits, async_writes) else {
                break;
            };
            let first = leaf.queue.members(picked.id).next();
            let (arrived, device) = (first.map(|member| member.queued), leaf.disk.disk);
            let zio = Zio {
                offset: picked.offset,
                length: picked.length,
                arrived: arrived.unwrap_or(step.now),
                client: self.picked_for(disk, picked.id),
                ..child_zio(device, picked.op, step.now)
            };
            self.send_child(disk, Work::Picked(picked.id), zio, step);
        }
    }

    /// Asks a disk to sync.
    pub(super) fn sync_disk(&mut self, disk: usize, who: SyncFor, step: &mut Step<'_>) {
        let covers = self.covers(disk);
        let client = match who {
            SyncFor::Request(id) => ClientId::of_volume(self.requests[id].volume),
            SyncFor::Txg | SyncFor::Repair => ClientId::POOL,
        };
        let zio = Zio {
            client,
            ..child_zio(self.disks[disk].disk.disk, Op::Flush, step.now)
        };
        self.send_child(disk, Work::Sync { who, covers }, zio, step);
    }

    fn send_child(&self, disk: usize, work: Work, zio: Zio, step: &mut Step<'_>) {
        let pool = self.id;
        step.children.send(Child { pool, disk, work }, zio);
    }

    /// The writes that a sync of a disk will cover if the sync begins now.
    fn covers(&self, disk: usize) -> Covers {
        let (member, _) = self.map.side_of(disk);
        let (placement, mirrors) = (self.map.placement(), self.mirrors.as_ref());
        Covers {
            firsts: placement.map_or(0, |placement| placement.covers(member)),
            quiet: mirrors.map_or(0, |mirrors| mirrors.covers(member)),
        }
    }

    /// Notes that a disk has synced.
    pub(super) fn note_sync(&mut self, disk: usize, covers: Covers) {
        let (member, side) = self.map.side_of(disk);
        // Until the pool has looked at all places after a power cut, `covers.firsts` may count writes that
        // the cut has lost.
        let loses = self.cut.as_ref().is_some_and(|cut| cut.loses());
        if let Some(placement) = self.map.placement_mut().filter(|_| !loses) {
            placement.synced(member, side, covers.firsts);
        }
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.flushed(member, side, covers.quiet);
        }
    }
}

/// A child zio without a volume and without a range. The zio gets its id when the pool sends it.
fn child_zio(disk: DiskId, op: Op, now: Instant) -> Zio {
    Zio {
        id: ZioId::FIRST_CHILD,
        device: disk,
        client: ClientId::POOL,
        op,
        fua: false,
        call: None,
        offset: 0,
        length: 0,
        arrived: now,
    }
}
