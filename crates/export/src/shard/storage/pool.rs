//! Makes stores do the work of the zios that a pool sends to its disks. The bytes of these zios are in the
//! blocks that volumes keep in memory.

use std::sync::Arc;

use dashpot_engine::inject::DataFault;
use dashpot_engine::{Buf, Device, Engine, Errno, Op, Outcome, Segment, Span, Zio, ZioId};

use super::StoreWork;
use super::lossy::changes;
use crate::frontend::boundary::{Operation, Request, SendLimits};
use crate::shard::block_memory::OnDisk;
use crate::shard::submission::Submission;
use crate::shard::unfinished::is_long;
use crate::store::{Attempt, Store};

impl StoreWork<'_> {
    /// Makes the store of a pool's disk do a zio's work: at once, at the end of a batch of requests, in a
    /// later pass, on the ring, or on a worker thread.
    pub(super) fn work_for_pool(
        &mut self,
        id: ZioId,
        submission: &mut Option<Submission<'_>>,
    ) -> Option<Outcome> {
        let zio = self.engine.child(id)?;
        if self.engine.is_overhead(id) {
            return Some(Ok(()));
        }
        let device = Device::Disk(zio.device);
        let moves = matches!(zio.op, Op::Read | Op::Write);
        let unfinished = &mut self.storage.unfinished;
        if moves && !unfinished.may_move(zio.length) {
            unfinished.push_piece(id, 0);
            return None;
        }
        let is_damaged = self.storage.damages.awaits(id);
        if zio.op == Op::Write && !is_damaged && self.copy_later_for_pool(&zio, submission) {
            return Some(Ok(()));
        }
        let (request, store) = (request_of(&zio), self.storage.stores.of(device)?);
        let (in_memory, loses) = (store.reads_at_reply(), store.loses());
        let unfinished = &mut self.storage.unfinished;
        if unfinished.overlaps(device, zio.offset, zio.length) || is_long(&request, store) {
            unfinished.push_piece(id, 0);
            return None;
        }
        self.fill_block(submission);
        if let Some(fault) = self.storage.damages.take(id) {
            return self.damage_for_pool(id, device, request, fault);
        }
        self.storage.damages.begin_for_pool(device, &request);
        if moves && in_memory {
            self.move_in_memory(&zio);
            return Some(Ok(()));
        }
        let mut bytes = match zio.op {
            Op::Write => self.gather(id, zio.length),
            _ => Vec::new(),
        };
        if loses && changes(request.operation) {
            return self.change_lossy_for_pool(id, device, &request, bytes);
        }
        match self.attempt(&zio, &mut bytes)? {
            Attempt::Done(outcome) => {
                self.take_result_for_pool(id, bytes, outcome);
                Some(outcome)
            }
            Attempt::WouldBlock => {
                let store = self.storage.stores.of(device);
                if self.storage.ring.start(store, id, &request, &bytes) {
                    self.zios.buffers.give(bytes);
                } else {
                    self.storage
                        .send_to_thread(id, device, &request, bytes, Arc::default());
                }
                None
            }
        }
    }

    /// Does a zio's work with this damage.
    fn damage_for_pool(
        &mut self,
        id: ZioId,
        device: Device,
        request: Request,
        fault: DataFault,
    ) -> Option<Outcome> {
        if request.operation == Operation::Read {
            let (bytes, outcome) = self.read_damaged(id, device, request, fault)?;
            self.take_result_for_pool(id, bytes, outcome);
            return Some(outcome);
        }
        let bytes = match request.operation {
            Operation::Write { .. } => self.gather(id, request.length),
            _ => Vec::new(),
        };
        self.change_damaged(id, device, request, bytes, fault)
    }

    /// Checks whether a zio's bytes are exactly the payload that is still in the receive buffer, and whether
    /// the zio writes them to a RAM disk. If so, notes the copy for later and returns true.
    fn copy_later_for_pool(&mut self, zio: &Zio, submission: &Option<Submission<'_>>) -> bool {
        let Some(write) = submission else {
            return false;
        };
        let device = Device::Disk(zio.device);
        let copies_later = self
            .storage
            .stores
            .of(device)
            .is_some_and(Store::copies_later);
        let block = self.engine.sole_buffer(zio.id).filter(|_| copies_later);
        let is_payload = block.is_some_and(|block| write.is_content_of(block));
        if is_payload {
            self.storage
                .unfinished
                .copy_later(device, zio.offset, write.place());
        }
        is_payload
    }

    /// Moves the bytes of a zio between its blocks and a store in memory. A block that is only for a reply
    /// stays on its disk until the shard sends the reply, unless the block is too large for one chunk of
    /// replies. In that case, the shard would have to load all of the block after the first chunk anyway.
    fn move_in_memory(&mut self, zio: &Zio) {
        let disk = zio.device;
        let for_replies = zio.op == Op::Read && self.engine.reads_only_for_replies(zio.id);
        for (offset, block) in blocks_of(self.engine, zio) {
            match zio.op {
                Op::Write => {
                    if let Some(from) = self.storage.blocks.read(block) {
                        self.storage.stores.write_in_memory(disk, offset, from);
                    }
                }
                _ if for_replies && block.length as usize <= SendLimits::STREAM.bytes => {
                    self.storage
                        .blocks
                        .leave_on_disk(block.buf, OnDisk { disk, offset });
                }
                _ => {
                    if let Some(into) = self.storage.blocks.write(block, block.length) {
                        self.storage.stores.read_in_memory(disk, offset, into);
                    }
                }
            }
        }
    }

    /// Tries to do the work at once. `bytes` holds the bytes to write, or receives the bytes that are read.
    fn attempt(&mut self, zio: &Zio, bytes: &mut Vec<u8>) -> Option<Attempt> {
        let (offset, length) = (zio.offset, u64::from(zio.length));
        let store = self.storage.stores.of_mut(Device::Disk(zio.device))?;
        self.timers.note_call(store.may_wait());
        Some(match zio.op {
            Op::Read if store.reads_slowly(length) => Attempt::WouldBlock,
            Op::Read => {
                *bytes = self.zios.buffers.take_full(zio.length);
                store.read(offset, bytes)
            }
            Op::Write if bytes.len() as u64 != length => Attempt::Done(Err(Errno::Io)),
            Op::Write => store.write(offset, bytes, zio.fua),
            Op::Flush => store.flush(),
            Op::Trim => store.trim(offset, length, zio.fua),
            Op::Zero => store.zero(offset, length, false, zio.fua),
            // A disk has no files.
            _ => Attempt::Done(Ok(())),
        })
    }

    /// Puts the bytes that a zio has read into the zio's blocks.
    pub(super) fn take_result_for_pool(&mut self, id: ZioId, bytes: Vec<u8>, outcome: Outcome) {
        let zio = self.engine.child(id);
        if outcome.is_ok() && zio.is_some_and(|zio| zio.op == Op::Read) {
            self.scatter(id, &bytes);
        }
        self.zios.buffers.give(bytes);
    }

    /// Collects in one buffer the bytes that a zio is to write.
    fn gather(&mut self, id: ZioId, length: u32) -> Vec<u8> {
        let mut bytes = self.zios.buffers.take(length);
        for segment in self.engine.segments(id) {
            if let Segment::Buf(buf, length) = segment {
                bytes.extend_from_slice(
                    self.storage
                        .blocks
                        .read(whole(buf, length))
                        .unwrap_or_default(),
                );
            }
        }
        bytes
    }

    fn scatter(&mut self, id: ZioId, bytes: &[u8]) {
        let mut rest = bytes;
        for segment in self.engine.segments(id) {
            let (Segment::Buf(_, length) | Segment::Gap(length)) = segment;
            let Some((part, tail)) = rest.split_at_checked(length as usize) else {
                return;
            };
            rest = tail;
            if let Segment::Buf(buf, length) = segment
                && let Some(block) = self.storage.blocks.write(whole(buf, length), length)
            {
                block.copy_from_slice(part);
            }
        }
    }
}

/// The blocks whose bytes a pool's zio moves, each with its place on the disk.
fn blocks_of(engine: &Engine, zio: &Zio) -> impl Iterator<Item = (u64, Span)> {
    let mut next = zio.offset;
    engine.segments(zio.id).filter_map(move |segment| {
        let (Segment::Buf(_, length) | Segment::Gap(length)) = segment;
        let offset = next;
        next += u64::from(length);
        match segment {
            Segment::Buf(buf, length) => Some((offset, whole(buf, length))),
            Segment::Gap(_) => None,
        }
    })
}

/// A whole block.
pub(super) fn whole(buf: Buf, length: u32) -> Span {
    Span { buf, at: 0, length }
}

/// The request that a store gets for a pool's zio.
pub(super) fn request_of(zio: &Zio) -> Request {
    let fua = zio.fua;
    Request {
        cookie: 0,
        operation: match zio.op {
            Op::Read => Operation::Read,
            Op::Write => Operation::Write { fua },
            Op::Flush => Operation::Flush,
            Op::Trim => Operation::Trim { fua },
            Op::Zero => Operation::Zero {
                fua,
                no_hole: false,
            },
            Op::Cache => Operation::Cache,
            op => Operation::Call(op, zio.call),
        },
        offset: zio.offset,
        length: zio.length,
    }
}
