//! Outbox: the queue of connections with replies to send, and for each connection the replies that are ready.

use std::collections::VecDeque;

use dashpot_engine::ZioId;

use super::chunk::Chunk;
use super::slots::Slots;
use crate::frontend::Session;

/// The outbox of a shard.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// The places of connections with replies that the shard has not offered yet.
    queue: VecDeque<usize>,
    /// An empty chunk, which is kept so that its memory can be used again.
    spare: Chunk,
}

impl Outbox {
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues a connection that has replies to send, unless its transport is blocked.
    #[inline]
    pub(super) fn push(&mut self, at: usize, outlet: &mut Outlet) {
        if !outlet.blocked && !outlet.queued {
            outlet.queued = true;
            self.queue.push_back(at);
        }
    }

    /// Removes from the queue the connection to which the shard sends next. The caller must then call
    /// [`Outlet::leave_queue`], so that the connection can be queued again.
    pub(super) fn pop(&mut self) -> Option<usize> {
        self.queue.pop_front()
    }

    /// Takes an empty chunk.
    pub(super) fn chunk(&mut self) -> Chunk {
        std::mem::take(&mut self.spare)
    }

    /// Takes a chunk back.
    pub(super) fn give(&mut self, mut chunk: Chunk) {
        chunk.clear();
        self.spare = chunk;
    }
}

/// A connection's replies.
#[derive(Debug)]
pub(super) struct Outlet {
    /// Replies in the order in which they became ready.
    ready: VecDeque<Outgoing>,
    /// How many of the replies are [`Outgoing::Whole`].
    whole: u32,
    /// The total length of the whole replies, in bytes.
    whole_bytes: usize,
    /// The shard stops reading the connection at this many whole replies.
    whole_max: u32,
    /// The last chunk, if the transport has not accepted all of it.
    unsent: Chunk,
    /// Whether the transport accepts nothing at the moment.
    blocked: bool,
    /// Whether the connection is in the queue.
    queued: bool,
}

impl Default for Outlet {
    fn default() -> Outlet {
        Outlet {
            ready: VecDeque::new(),
            whole: 0,
            whole_bytes: 0,
            whole_max: WHOLE_MAX,
            unsent: Chunk::default(),
            blocked: false,
            queued: false,
        }
    }
}

/// A reply that is not yet completely in a chunk.
#[derive(Debug)]
enum Outgoing {
    /// The reply to a zio. If it has data, `sent` bytes of the data are in earlier chunks.
    Zio { id: ZioId, sent: u32 },
    /// The complete reply to a request that did not become a zio.
    Whole(Vec<u8>),
}

impl Outlet {
    /// Whether the shard may read more requests, each of which causes another reply.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        !self.blocked && self.whole < self.whole_max
    }

    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// How many bytes of memory the replies take. The data of reads does not count.
    #[inline]
    pub(super) fn keeps(&self) -> usize {
        self.whole_bytes + self.unsent.keeps()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.unsent.is_empty()
    }

    pub(super) fn leave_queue(&mut self) {
        self.queued = false;
    }

    /// Queues the reply to a zio.
    #[inline]
    pub(super) fn put_zio(&mut self, id: ZioId) {
        self.ready.push_back(Outgoing::Zio { id, sent: 0 });
    }

    /// Queues the reply to a request that did not become a zio. A connection may have [`WHOLE_MAX`] such
    /// replies in the queue. With `keep_too_much`, which says that the connections together keep too many
    /// bytes, it may have only one.
    pub(super) fn put_whole(&mut self, reply: Vec<u8>, keep_too_much: bool) {
        self.whole += 1;
        self.whole_bytes += reply.len();
        self.ready.push_back(Outgoing::Whole(reply));
        self.whole_max = if keep_too_much { 1 } else { WHOLE_MAX };
    }

    /// Takes the chunk that the transport has not accepted in full, if there is one.
    #[inline]
    pub(super) fn take_unsent(&mut self) -> Chunk {
        std::mem::take(&mut self.unsent)
    }

    /// Keeps a chunk that the transport has not accepted in full, and marks the transport as blocked.
    pub(super) fn keep_unsent(&mut self, chunk: Chunk) {
        self.unsent = chunk;
        self.blocked = true;
    }

    /// Fills a chunk with as many replies as fit.
    pub(super) fn fill(&mut self, chunk: &mut Chunk, session: &Session, slots: &Slots) {
        chunk.begin(session);
        while chunk.has_room()
            && let Some(outgoing) = self.ready.pop_front()
        {
            match outgoing {
                Outgoing::Whole(reply) => {
                    self.whole -= 1;
                    self.whole_bytes -= reply.len();
                    chunk.put_whole(&reply);
                }
                Outgoing::Zio { id, sent } => {
                    if let Some(sent) = chunk.put_reply(session, slots, id, sent) {
                        self.ready.push_front(Outgoing::Zio { id, sent });
                    }
                }
            }
        }
    }

    /// Called when a chunk has been sent. Returns whether another chunk may follow.
    pub(super) fn goes_on(&mut self) -> bool {
        let is_empty = self.ready.is_empty();
        if is_empty && self.ready.capacity() > READY_KEPT {
            // Frees the memory of a queue that was once long.
            self.ready = VecDeque::new();
        }
        !is_empty
    }
}

/// The shard stops reading a connection at this many whole replies.
const WHOLE_MAX: u32 = 16;
/// The shard frees the memory of an empty queue that has room for more replies than this.
const READY_KEPT: usize = 256;

#[cfg(test)]
mod tests {
    use super::{Outlet, WHOLE_MAX};
    use crate::export::ExportId;
    use crate::frontend::boundary::{Operation, Request, SendLimits};
    use crate::frontend::{Session, nbd};
    use crate::shard::block_memory::BlockMemory;
    use crate::shard::chunk::{Chunk, Slices, Sources};
    use crate::shard::exports::Stores;
    use crate::shard::slots::{Origin, Slot, Slots, ZioList};
    use crate::store::Store;
    use dashpot_engine::{ClientId, Device, DiskId, ZioId};
    use std::os::unix::net::UnixStream;

    fn session() -> Session {
        let (near, _far) = UnixStream::pair().unwrap();
        Session::Nbd(nbd::Session::new(near.into(), Default::default()))
    }

    /// Makes zios that read these lengths.
    fn reads(lengths: impl IntoIterator<Item = u32>) -> (Slots, Vec<ZioId>) {
        let (mut slots, mut list) = (Slots::default(), ZioList::default());
        let origin = Origin {
            connection: 0,
            export: ExportId(0),
            client: ClientId(0),
        };
        let read = |length| Request {
            cookie: 0,
            operation: Operation::Read,
            offset: 0,
            length,
        };
        let slot = |length| Slot::new(origin, Device::Disk(DiskId(0)), read(length), 0);
        let lengths = lengths.into_iter();
        let ids = lengths
            .map(|length| slots.insert(&mut list, || slot(length)))
            .collect();
        (slots, ids)
    }

    /// Puts all replies into chunks, and returns for each chunk its length and the zios whose replies end in
    /// it.
    fn chunks(outlet: &mut Outlet, slots: &Slots) -> Vec<(usize, Vec<ZioId>)> {
        let (session, mut all) = (session(), Vec::new());
        let (blocks, stores) = (BlockMemory::default(), Stores::new(vec![Store::Null]));
        loop {
            let mut chunk = Chunk::default();
            outlet.fill(&mut chunk, &session, slots);
            if chunk.is_empty() {
                return all;
            }
            let mut room = Slices::new();
            let sources = Sources {
                slots,
                blocks: &blocks,
                stores: &stores,
                device: Device::Disk(DiskId(0)),
            };
            let slices = chunk.slices(sources, &mut room);
            let bytes = slices.iter().map(|slice| slice.len()).sum();
            assert_eq!(bytes, chunk.left());
            all.push((bytes, chunk.zios().to_vec()));
        }
    }

    #[test]
    fn data_is_half_sent_from_its_first_byte_to_its_last() {
        let (slots, ids) = reads([1 << 10, 200 << 10]);
        let mut outlet = Outlet::default();
        ids.iter().for_each(|id| outlet.put_zio(*id));
        let half_sent_after = |chunk: &mut Chunk, bytes| {
            chunk.accept(bytes);
            chunk.half_sent()
        };
        let mut chunk = Chunk::default();
        outlet.fill(&mut chunk, &session(), &slots);
        let head = 16;
        assert_eq!(half_sent_after(&mut chunk, head), None);
        assert_eq!(half_sent_after(&mut chunk, 1), Some(ids[0]));
        assert_eq!(half_sent_after(&mut chunk, (1 << 10) - 1), None);
        assert_eq!(half_sent_after(&mut chunk, head), None);
        assert_eq!(half_sent_after(&mut chunk, 1), Some(ids[1]));
        let left = chunk.left();
        let next_has_the_rest = half_sent_after(&mut chunk, left);
        assert_eq!(next_has_the_rest, Some(ids[1]));
        chunk.clear();
        outlet.fill(&mut chunk, &session(), &slots);
        let left = chunk.left();
        assert_eq!(half_sent_after(&mut chunk, left - 1), Some(ids[1]));
        assert_eq!(half_sent_after(&mut chunk, 1), None);
    }

    #[test]
    fn a_long_reply_leaves_in_parts_with_one_head() {
        let (slots, ids) = reads([300 << 10]);
        let mut outlet = Outlet::default();
        outlet.put_zio(ids[0]);
        let chunks = chunks(&mut outlet, &slots);
        let bytes: Vec<usize> = chunks.iter().map(|(bytes, _)| *bytes).collect();
        let most = SendLimits::STREAM.bytes;
        assert_eq!(bytes, [most, most, (300 << 10) + 16 - 2 * most]);
        let last: Vec<usize> = chunks.iter().map(|(_, zios)| zios.len()).collect();
        assert_eq!(last, [0, 0, 1]);
    }

    #[test]
    fn short_replies_leave_together_in_their_order() {
        let count = SendLimits::STREAM.replies + 3;
        let (slots, ids) = reads(vec![512; count]);
        let mut outlet = Outlet::default();
        ids.iter().for_each(|id| outlet.put_zio(*id));
        let chunks = chunks(&mut outlet, &slots);
        let lengths: Vec<usize> = chunks.iter().map(|(_, zios)| zios.len()).collect();
        assert_eq!(lengths, [SendLimits::STREAM.replies, 3]);
        let order: Vec<ZioId> = chunks.into_iter().flat_map(|(_, zios)| zios).collect();
        assert_eq!(order, ids);
    }

    #[test]
    fn replies_with_bytes_of_their_own_are_bounded() {
        let mut outlet = Outlet::default();
        for _ in 0..WHOLE_MAX {
            assert!(outlet.has_room());
            outlet.put_whole(vec![0; 10], false);
        }
        assert!(!outlet.has_room());
        assert_eq!(outlet.keeps(), 10 * WHOLE_MAX as usize);
        let (slots, _) = reads([]);
        assert_eq!(chunks(&mut outlet, &slots).len(), 1);
        assert!(outlet.has_room());
        outlet.put_whole(Vec::new(), true);
        assert!(!outlet.has_room(), "one is the most while too much is kept");
    }
}
