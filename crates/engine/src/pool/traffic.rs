//! Counts the I/O of disks for the volumes that caused it.

use super::block_io::{BlockRead, BlockWrite};
use super::pool::Pool;
use super::queue::PickedId;
use super::request::Requests;
use super::slab::Slab;
use super::tag::Tag;
use crate::client::ClientId;

impl Pool {
    /// Counts an I/O that a disk has done without an error, as OpenZFS's `vdev_stat_update` does: as a whole for
    /// the volume of its first part, and each part for the volume of that part.
    pub(super) fn count_done(&mut self, disk: usize, id: PickedId) {
        let queue = &self.disks[disk].queue;
        let picked = queue.picked(id);
        for (at, part) in queue.members(id).enumerate() {
            if let Tag::Beside(_) = Tag::unpack(part.tag) {
                self.overhead.count(&picked, part.length, at == 0);
                continue;
            }
            let behind = volume_behind(part.tag, &self.writes, &self.reads, &self.requests);
            let Some(volume) = behind else {
                continue;
            };
            let traffic = &mut self.volumes[volume].traffic;
            traffic.queued.count(picked.op, part.length.into());
            if at == 0 {
                traffic.disks.count(picked.op, picked.length.into());
            }
        }
    }

    /// The client of an I/O that a queue has picked: the volume of its first part or, for a repair and for
    /// overhead, the pool.
    pub(super) fn picked_for(&self, disk: usize, id: PickedId) -> ClientId {
        let first = self.disks[disk].queue.members(id).next();
        let behind = first
            .and_then(|part| volume_behind(part.tag, &self.writes, &self.reads, &self.requests));
        behind.map_or(ClientId::POOL, ClientId::of_volume)
    }
}

/// The volume for which a part of an I/O was queued; `None` for a repair and for overhead.
fn volume_behind(
    tag: u32,
    writes: &Slab<BlockWrite>,
    reads: &Slab<BlockRead>,
    requests: &Requests,
) -> Option<usize> {
    match Tag::unpack(tag) {
        Tag::Write(id) => Some(writes[id].volume),
        Tag::Read(id) => Some(requests[reads[id].zio].volume),
        Tag::Repair | Tag::Beside(_) => None,
    }
}
