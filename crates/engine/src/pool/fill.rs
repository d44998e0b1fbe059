//! How writes get the old content of blocks that they replace only in part.

use super::block_io::Then;
use super::edges::Need;
use super::pool::Pool;
use super::request::Phase;
use super::step::Step;
use crate::zio::{Op, ZioId};

impl Pool {
    /// Reads the parts of blocks that a write does not replace, unless memory has them.
    pub(super) fn fill(&mut self, id: ZioId, step: &mut Step<'_>) {
        let (volume, zio) = self.begin(id, Phase::Reading, step.now);
        if self.volumes[volume].are_whole(&zio) {
            self.filled(id, step);
            return;
        }
        // An extra pending count keeps the request from continuing before all of its reads have begun.
        self.add_pending(id, 1);
        for block in self.edges_of(id) {
            self.need_edge(id, volume, block, step);
        }
        self.requests[id].has_edges = true;
        self.one_less(id, Ok(()), step);
    }

    fn need_edge(&mut self, id: ZioId, volume: usize, block: u32, step: &mut Step<'_>) {
        let target = &mut self.volumes[volume];
        let in_memory = target.content(block, self.txgs.open()).is_some();
        match target.edges.need(block, id, in_memory) {
            Need::Nothing => {}
            Need::Wait => self.add_pending(id, 1),
            Need::Read => {
                if !self.read_block(id, volume, block, Then::Edge, step) {
                    self.volumes[volume].edges.zero(block, step);
                }
            }
        }
    }

    /// Notes that a request no longer needs its edges.
    pub(super) fn release_edges(&mut self, id: ZioId, step: &mut Step<'_>) {
        let request = &mut self.requests[id];
        if !core::mem::take(&mut request.has_edges) {
            return;
        }
        let volume = request.volume;
        for block in self.edges_of(id) {
            self.volumes[volume].edges.release(block, step);
        }
    }

    /// The first and the last block of a write, each only if the write does not replace the whole block.
    fn edges_of(&self, id: ZioId) -> impl Iterator<Item = u32> + use<> {
        let request = &self.requests[id];
        let (zio, size) = (&request.zio, self.volumes[request.volume].block_size);
        let size = u64::from(size);
        let (first, end) = (zio.offset / size, zio.offset + u64::from(zio.length));
        let last = (end - 1) / size;
        let cut = zio.op != Op::Trim;
        let begins_within = cut && !zio.offset.is_multiple_of(size);
        let ends_within = cut && !end.is_multiple_of(size);
        let first_cut = begins_within || (first == last && ends_within);
        let edges = [
            first_cut.then_some(first as u32),
            (ends_within && first != last).then_some(last as u32),
        ];
        edges.into_iter().flatten()
    }
}
