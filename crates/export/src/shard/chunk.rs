//! A chunk: replies on their way into the transport, as the transport is told of them.
//!
//! Only headers are written here. Data stays where it is until the kernel copies it, so that what
//! a RAM disk reads is copied once, and a connection that does not take its replies holds headers.

use std::io::IoSlice;

use dashpot_engine::ZioId;

use crate::frontend::boundary::SendLimits;
use crate::shard::slots::Slots;
use crate::store::{SLICE, Store};

#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// Headers, and replies that are nothing else, in their order.
    pub(super) heads: Vec<u8>,
    /// The data between them.
    data: Vec<Data>,
    /// The zios whose last byte is in it.
    pub(super) zios: Vec<ZioId>,
    /// Its length in bytes, and how many of them the transport has accepted.
    length: usize,
    pub(super) sent: usize,
}

/// A part of what a zio has read.
#[derive(Clone, Copy, Debug)]
struct Data {
    /// Bytes of `heads` that come before it.
    after: usize,
    zio: ZioId,
    start: u32,
    length: u32,
}

impl Chunk {
    pub(crate) fn is_empty(&self) -> bool {
        self.length() == 0
    }

    /// The bytes that it holds itself.
    pub(crate) fn keeps(&self) -> usize {
        self.heads.len()
    }

    pub(super) fn length(&self) -> usize {
        self.heads.len() + self.length
    }

    pub(super) fn is_sent(&self) -> bool {
        self.sent >= self.length()
    }

    pub(super) fn push_data(&mut self, zio: ZioId, start: u32, length: u32) {
        let after = self.heads.len();
        self.length += length as usize;
        self.data.push(Data {
            after,
            zio,
            start,
            length,
        });
    }

    pub(super) fn clear(&mut self) {
        self.heads.clear();
        self.data.clear();
        self.zios.clear();
        (self.length, self.sent) = (0, 0);
    }

    /// Its bytes that have not been sent.
    pub(super) fn slices<'a, 'b>(
        &'a self,
        slots: &'a Slots,
        store: &'a Store,
        room: &'b mut [IoSlice<'a>; SLICES_MAX],
    ) -> &'b [IoSlice<'a>] {
        let mut count = 0;
        let mut push = |bytes: &'a [u8]| {
            room[count] = IoSlice::new(bytes);
            count += 1;
        };
        let mut from = 0;
        for data in &self.data {
            push(&self.heads[from..data.after]);
            from = data.after;
            let Some(slot) = slots.get(data.zio) else {
                continue;
            };
            let (start, length) = (data.start as usize, data.length as usize);
            match slot.payload.get(start..start + length) {
                Some(payload) => push(payload),
                None => {
                    let offset = slot.request.offset + u64::from(data.start);
                    store
                        .slices(offset, u64::from(data.length))
                        .for_each(&mut push);
                }
            }
        }
        push(&self.heads[from..]);
        let mut slices = &mut room[..count];
        IoSlice::advance_slices(&mut slices, self.sent);
        slices
    }
}

/// A header before each part of data and what comes after the last; and each part may begin and
/// end in the middle of what a store has in one piece.
pub(super) const SLICES_MAX: usize =
    3 * SendLimits::STREAM.replies + 1 + SendLimits::STREAM.bytes.div_ceil(SLICE as usize);
