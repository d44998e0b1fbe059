//! A chunk: a batch of replies, as the shard offers it to the transport.
//!
//! Only heads are written into the chunk; data stays where it is until the kernel copies it. So the bytes of
//! a RAM disk are copied only once, and a chunk that its client does not take holds only heads. If the data
//! of a read is not on a RAM disk, it waits in the zio's buffer, or in a block that the engine has lent to
//! the zio. The budget counts this data.

use std::io::IoSlice;

use dashpot_engine::{Device, Span, ZioId};
use smallvec::SmallVec;

use super::block_memory::BlockMemory;
use super::exports::Stores;
use super::slots::{Slot, Slots};
use crate::frontend::Session;
use crate::frontend::boundary::{Frontend, Operation, SendLimits};
use crate::store::{SLICE, Store};

/// The slices of a chunk.
pub(super) type Slices<'a> = SmallVec<[IoSlice<'a>; SLICES_MAX]>;

#[derive(Debug)]
pub(super) struct Chunk {
    limits: SendLimits,
    /// The heads of replies to reads, and all other replies as a whole, in the order of the replies.
    heads: Vec<u8>,
    /// The data that belongs between the heads.
    data: Vec<Data>,
    /// The zios whose replies end in this chunk.
    zios: Vec<ZioId>,
    /// How many replies, or parts of replies, are in this chunk.
    replies: usize,
    /// The number of data bytes in the chunk.
    data_length: usize,
    /// The number of bytes, of heads and data together, that the transport has accepted from the chunk.
    sent: usize,
}

impl Default for Chunk {
    fn default() -> Chunk {
        Chunk {
            limits: SendLimits::STREAM,
            heads: Vec::new(),
            data: Vec::new(),
            zios: Vec::new(),
            replies: 0,
            data_length: 0,
            sent: 0,
        }
    }
}

/// A part of the data of a read.
#[derive(Clone, Copy, Debug)]
struct Data {
    /// How many bytes of `heads` come before this data.
    after: usize,
    zio: ZioId,
    start: u32,
    length: u32,
    /// Whether the next chunk has more data of this zio.
    goes_on: bool,
}

/// Where the data of replies is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources<'a> {
    pub(super) slots: &'a Slots,
    pub(super) blocks: &'a BlockMemory,
    pub(super) stores: &'a Stores,
    /// The device that all zios of a connection go to.
    pub(super) device: Device,
}

impl<'a> Sources<'a> {
    /// Passes the slices of data to `push`, in their order.
    fn slices(&self, data: &Data, push: impl FnMut(&'a [u8])) {
        let slot = &self.slots[data.zio];
        if let Some(bytes) = self.in_memory(slot, data) {
            return Some(bytes).into_iter().for_each(push);
        }
        let (device, begin) = self.on_disk(slot);
        let offset = begin + u64::from(data.start);
        let slices = |store: &'a Store| store.slices(offset, data.length.into());
        let store = self.stores.of(device);
        store.into_iter().flat_map(slices).for_each(push);
    }

    /// The data, if it is in a block that is lent to the zio, or in the zio's own buffer.
    fn in_memory(&self, slot: &'a Slot, data: &Data) -> Option<&'a [u8]> {
        let (start, length) = (data.start as usize, data.length as usize);
        match slot.lent() {
            Some(Span { buf, .. }) if self.blocks.on_disk(buf).is_some() => None,
            Some(Span { buf, at, .. }) => self.blocks.read(Span {
                buf,
                at: at + data.start,
                length: data.length,
            }),
            None => slot.payload().get(start..start + length),
        }
    }

    /// The disk that has the data of a zio, and where the data begins on this disk.
    fn on_disk(&self, slot: &Slot) -> (Device, u64) {
        let lent = slot.lent();
        match lent.and_then(|span| Some((span, self.blocks.on_disk(span.buf)?))) {
            Some((span, place)) => (Device::Disk(place.disk), place.offset + u64::from(span.at)),
            None => (self.device, slot.request().offset),
        }
    }
}

impl Chunk {
    /// Prepares an empty chunk for the replies of a session.
    pub(super) fn begin(&mut self, session: &Session) {
        self.limits = session.send_limits();
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.length() == 0
    }

    /// How many bytes of memory the chunk itself takes. Data does not count, because it stays where it is.
    #[inline]
    pub(super) fn keeps(&self) -> usize {
        self.heads.len()
    }

    #[inline]
    fn length(&self) -> usize {
        self.heads.len() + self.data_length
    }

    /// Whether another reply may be added.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.replies < self.limits.replies && self.length() < self.limits.bytes
    }

    /// How many bytes the transport has not accepted yet.
    pub(super) fn left(&self) -> usize {
        self.length() - self.sent
    }

    /// Notes that the transport has accepted more bytes. Returns whether the transport has accepted all
    /// bytes.
    pub(super) fn accept(&mut self, bytes: usize) -> bool {
        self.sent += bytes;
        self.sent >= self.length()
    }

    /// The zios whose replies end in this chunk.
    pub(super) fn zios(&self) -> &[ZioId] {
        &self.zios
    }

    /// The zio whose data the transport has accepted in part, if there is one. The rest may be in the next
    /// chunk.
    pub(super) fn half_sent(&self) -> Option<ZioId> {
        let mut length = 0;
        let mut ends = self.data.iter().map(|data| {
            length += data.length as usize;
            (data, data.after + length)
        });
        let (data, end) = ends.find(|(data, end)| data.goes_on || *end > self.sent)?;
        (end - (data.length as usize) < self.sent).then_some(data.zio)
    }

    /// Adds a whole reply. Copies its bytes into the chunk.
    pub(super) fn put_whole(&mut self, reply: &[u8]) {
        self.replies += 1;
        self.heads.extend_from_slice(reply);
    }

    /// Adds the reply to a zio, or the rest of the reply if `sent` bytes of its data have already been sent.
    /// If the data does not fit into this chunk, returns how many bytes of the data are in this chunk and
    /// earlier ones.
    #[inline]
    pub(super) fn put_reply(
        &mut self,
        session: &Session,
        slots: &Slots,
        id: ZioId,
        sent: u32,
    ) -> Option<u32> {
        self.replies += 1;
        let slot = &slots[id];
        let (request, outcome) = (slot.request(), slot.outcome());
        if sent == 0 {
            session.put_head(&mut self.heads, request, outcome);
        }
        if outcome.is_err() || request.operation != Operation::Read {
            self.zios.push(id);
            return None;
        }
        let room = self.limits.bytes.saturating_sub(self.length()).max(1);
        let length = (room as u64).min(u64::from(request.length - sent)) as u32;
        let goes_on = sent + length < request.length;
        self.push_data(id, sent, length, goes_on);
        if goes_on {
            return Some(sent + length);
        }
        self.zios.push(id);
        None
    }

    fn push_data(&mut self, zio: ZioId, start: u32, length: u32, goes_on: bool) {
        let after = self.heads.len();
        self.data_length += length as usize;
        self.data.push(Data {
            after,
            zio,
            start,
            length,
            goes_on,
        });
    }

    pub(super) fn clear(&mut self) {
        self.heads.clear();
        self.data.clear();
        self.zios.clear();
        (self.replies, self.data_length, self.sent) = (0, 0, 0);
    }

    /// The bytes that the transport has not accepted yet.
    pub(super) fn slices<'a, 'b>(
        &'a self,
        sources: Sources<'a>,
        room: &'b mut Slices<'a>,
    ) -> &'b [IoSlice<'a>] {
        let mut push = |bytes: &'a [u8]| room.push(IoSlice::new(bytes));
        let mut from = 0;
        for data in &self.data {
            push(&self.heads[from..data.after]);
            from = data.after;
            sources.slices(data, &mut push);
        }
        if from < self.heads.len() {
            push(&self.heads[from..]);
        }
        let mut slices = room.as_mut_slice();
        IoSlice::advance_slices(&mut slices, self.sent);
        slices
    }
}

/// The largest number of `IoSlice`s in a chunk. Beyond the whole slices of its data, each reply may need
/// three more: one for the heads before the data, and two because the data may begin and end inside slices of
/// the store. One more is for the heads after the last data. Chunks of a stream need the most.
const SLICES_MAX: usize =
    3 * SendLimits::STREAM.replies + 1 + SendLimits::STREAM.bytes.div_ceil(SLICE as usize);
