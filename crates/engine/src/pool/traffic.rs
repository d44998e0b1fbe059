//! Counts the I/O of disks for the volumes that caused it.

use super::block_io::{BlockRead, BlockWrite};
use super::pool::Pool;
use super::queue::Picked;
use super::request::Requests;
use super::slab::Slab;
use super::tag::Tag;
use crate::client::ClientId;

impl Pool {
    /// Counts an I/O that a queue has picked: as a whole for the volume of its first part, and each part for
    /// the volume of that part. Returns the client of the I/O: the volume of the first part or, for a repair
    /// and for overhead, the pool.
    pub(super) fn count_picked(&mut self, disk: usize, picked: &Picked) -> ClientId {
        let mut first = None;
        let volumes = &mut self.volumes;
        for (at, part) in self.disks[disk].queue.members(picked.id).enumerate() {
            if let Tag::Beside(_) = Tag::unpack(part.tag) {
                self.overhead.count(picked, part.length, at == 0);
                continue;
            }
            let behind = volume_behind(part.tag, &self.writes, &self.reads, &self.requests);
            let Some(volume) = behind else {
                continue;
            };
            let traffic = &mut volumes[volume].traffic;
            traffic.queued.count(picked.op, part.length.into());
            if at == 0 {
                traffic.disks.count(picked.op, picked.length.into());
                first = Some(volume);
            }
        }
        first.map_or(ClientId::POOL, ClientId::of_volume)
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
        Tag::Read(id) => requests.get(reads[id].zio).map(|request| request.volume),
        Tag::Repair | Tag::Beside(_) => None,
    }
}
