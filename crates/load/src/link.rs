//! One connection of a load: it sends requests and receives replies, many at a time.

use std::array;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use dashpot_engine::{Instant, Op};
use dashpot_export::frontend::nbd::client::{encode, parse_reply};
use dashpot_export::frontend::nbd::wire::{RequestHeader, SIMPLE_REPLY_LEN, command};
use dashpot_export::now;
use rustix::buffer::spare_capacity;
use rustix::net::{RecvFlags, SendFlags};

use super::config::LoadConfig;
use super::report::{LoadError, LoadReport};

pub(super) struct Link {
    socket: OwnedFd,
    block: u32,
    verify: bool,
    /// The requests in flight. The index of a request is its cookie.
    asked: Vec<Request>,
    free: Vec<u32>,
    /// Cookies of requests that have not been sent.
    queue: VecDeque<u32>,
    unsent: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Request {
    op: Op,
    offset: u64,
    start: Instant,
}

impl Link {
    pub(super) fn new(socket: OwnedFd, config: &LoadConfig) -> Result<Link, LoadError> {
        let unblocked = rustix::io::ioctl_fionbio(&socket, true);
        unblocked.map_err(|error| LoadError::Broken(error.into()))?;
        Ok(Link {
            socket,
            block: config.block,
            verify: config.verify,
            asked: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            unsent: Vec::new(),
            sent: 0,
            received: Vec::new(),
        })
    }

    pub(super) fn in_flight(&self) -> u32 {
        (self.asked.len() - self.free.len()) as u32
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.sent < self.unsent.len()
    }

    /// Queues a request.
    pub(super) fn begin(&mut self, op: Op, offset: u64, start: Instant) {
        let asked = Request { op, offset, start };
        let cookie = self.free.pop().unwrap_or(self.asked.len() as u32);
        match self.asked.get_mut(cookie as usize) {
            Some(place) => *place = asked,
            None => self.asked.push(asked),
        }
        self.queue.push_back(cookie);
    }

    /// Sends the queued requests, until the socket takes no more bytes.
    pub(super) fn send(&mut self) -> Result<(), LoadError> {
        while self.has_unsent() || self.encode() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(&self.socket, &self.unsent[self.sent..], flags) {
                Ok(sent) => self.sent += sent,
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(LoadError::of(error.into())),
            }
        }
        Ok(())
    }

    /// Encodes the next requests, until there are [`SEND_LENGTH`] bytes or more. Returns false if there are
    /// none.
    fn encode(&mut self) -> bool {
        self.unsent.clear();
        self.sent = 0;
        while self.unsent.len() < SEND_LENGTH
            && let Some(cookie) = self.queue.pop_front()
        {
            let Request { op, offset, .. } = self.asked[cookie as usize];
            let (command, offset, length) = match op {
                Op::Write => (command::WRITE, offset, self.block),
                Op::Flush => (command::FLUSH, 0, 0),
                _ => (command::READ, offset, self.block),
            };
            let request = RequestHeader {
                flags: 0,
                command,
                cookie: u64::from(cookie),
                offset,
                length,
            };
            self.unsent.extend_from_slice(&encode(&request));
            if op == Op::Write {
                put_pattern(offset, length as usize, &mut self.unsent);
            }
        }
        self.has_unsent()
    }

    /// Takes the replies that have arrived.
    pub(super) fn receive(&mut self, report: &mut LoadReport) -> Result<(), LoadError> {
        self.received.reserve(RECEIVE_LENGTH);
        let spare = spare_capacity(&mut self.received);
        match rustix::net::recv(&self.socket, spare, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(LoadError::Closed),
            Ok(_) => {}
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(LoadError::of(error.into())),
        }
        let now = now();
        report.heard = now;
        let mut taken = 0;
        while let Some(length) = self.take_reply(taken, now, report)? {
            taken += length;
        }
        self.received.drain(..taken);
        Ok(())
    }

    /// Takes the reply that begins at `at`. Returns its length, or `None` if it is not complete yet.
    fn take_reply(
        &mut self,
        at: usize,
        now: Instant,
        report: &mut LoadReport,
    ) -> Result<Option<usize>, LoadError> {
        let rest = &self.received[at..];
        let Some((header, data)) = rest.split_first_chunk::<SIMPLE_REPLY_LEN>() else {
            return Ok(None);
        };
        let (cookie, error) = parse_reply(header).ok_or(LoadError::OutOfStep)?;
        let asked = self
            .asked
            .get(cookie as usize)
            .ok_or(LoadError::OutOfStep)?;
        let length = match (asked.op, error) {
            (Op::Read, 0) => self.block as usize,
            _ => 0,
        };
        let Some(data) = data.get(..length) else {
            return Ok(None);
        };
        let op = report
            .ops
            .get_mut(asked.op as usize)
            .ok_or(LoadError::OutOfStep)?;
        op.record(now.since(asked.start));
        match (asked.op, error) {
            (Op::Flush, 0) => {}
            (_, 0) => op.bytes += u64::from(self.block),
            _ => op.errors += 1,
        }
        op.wrong += u64::from(self.verify && !is_as_written(asked.offset, data));
        self.free.push(cookie as u32);
        Ok(Some(SIMPLE_REPLY_LEN + length))
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Appends the pattern that a load writes at an offset: every eight bytes contain their own offset.
fn put_pattern(offset: u64, length: usize, bytes: &mut Vec<u8>) {
    let end = bytes.len() + length;
    let mut words = pattern(offset);
    while bytes.len() < end {
        let page: [[u8; 8]; 512] = array::from_fn(|_| words.next().unwrap_or_default());
        let part = page.as_flattened();
        bytes.extend_from_slice(&part[..part.len().min(end - bytes.len())]);
    }
}

/// Whether a block has the pattern for its offset, or is all zeroes, as if never written.
fn is_as_written(offset: u64, block: &[u8]) -> bool {
    let (words, rest) = block.as_chunks();
    let last = offset + 8 * words.len() as u64;
    let is_pattern = words
        .iter()
        .zip(pattern(offset))
        .all(|(word, pattern)| *word == pattern)
        && *rest == last.to_le_bytes()[..rest.len()];
    is_pattern || block.iter().all(|byte| *byte == 0)
}

fn pattern(offset: u64) -> impl Iterator<Item = [u8; 8]> {
    (offset..).step_by(8).map(u64::to_le_bytes)
}

/// The link encodes no further request once it has this many bytes to send.
const SEND_LENGTH: usize = 256 << 10;
/// The room that the link makes before it receives, in bytes.
const RECEIVE_LENGTH: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::{is_as_written, put_pattern};

    #[test]
    fn a_block_of_any_length_is_known_again() {
        for length in [1, 7, 8, 21, 4096, 9000] {
            assert!(is_as_written(512, &vec![0; length]), "zeroes, {length}");
            let mut block = Vec::new();
            put_pattern(512, length, &mut block);
            assert_eq!(block.len(), length);
            assert!(is_as_written(512, &block), "{length}");
            for at in [0, length / 2, length - 1] {
                block[at] ^= 0x80;
                assert!(!is_as_written(512, &block), "{length}, byte {at}");
                block[at] ^= 0x80;
            }
        }
    }
}
