//! The transport: a socket from the receiver to the shard, and the listener for replies.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use dashpot_sys::seccomp::{Answer, CallId};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType};
use zerocopy::{FromBytes, IntoBytes};

use super::answers::Answers;
use super::wire::{MESSAGE, Message, Reply};
use crate::frontend::boundary::Arrival;

/// The shard's end.
#[derive(Debug)]
pub(super) struct Transport {
    socket: OwnedFd,
    answers: Arc<Answers>,
    /// The calls that wait for the shard's reply, and whether each is on several disks.
    waiting: HashMap<CallId, bool>,
}

/// The receiver's end.
#[derive(Debug)]
pub(super) struct Sender(OwnedFd);

impl Transport {
    pub(super) fn new(answers: Arc<Answers>) -> io::Result<(Sender, Transport)> {
        let flags = SocketFlags::CLOEXEC;
        let (near, far) = net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let transport = Transport {
            socket: far,
            answers,
            waiting: HashMap::new(),
        };
        Ok((Sender(near), transport))
    }

    /// Appends messages to the spare capacity of `into`.
    pub(super) fn receive(&mut self, into: &mut Vec<u8>) -> Arrival {
        // The sender sends whole messages, so a buffer of whole messages cuts none.
        let mut buffer = [0; 16 * MESSAGE];
        let most = (into.capacity() - into.len()) / MESSAGE * MESSAGE;
        let room = buffer.len().min(most);
        match net::recv(&self.socket, &mut buffer[..room], RecvFlags::DONTWAIT) {
            Ok((0, _)) if room > 0 => Arrival::End,
            Ok((length, _)) => {
                self.note(&buffer[..length]);
                into.extend_from_slice(&buffer[..length]);
                Arrival::Bytes
            }
            Err(Errno::AGAIN | Errno::INTR) => Arrival::Nothing,
            Err(_) => Arrival::End,
        }
    }

    fn note(&mut self, messages: &[u8]) {
        for message in messages.chunks_exact(MESSAGE) {
            if let Ok(Message { id, several }) = Message::read_from_bytes(message) {
                self.waiting.insert(CallId(id), several != 0);
            }
        }
    }

    /// Answers a call as a reply says. Returns how many bytes were taken: all of them.
    pub(super) fn send(&mut self, bytes: &[IoSlice<'_>]) -> usize {
        for reply in bytes {
            if let Ok(Reply { id, error }) = Reply::read_from_bytes(reply) {
                self.reply(CallId(id), answer(error));
            }
        }
        bytes.iter().map(|part| part.len()).sum()
    }

    fn reply(&mut self, id: CallId, answer: Answer) {
        match self.waiting.remove(&id) {
            Some(true) => self.answers.answer_one_of(id, answer),
            Some(false) => self.answers.answer(id, answer),
            None => {}
        }
    }
}

/// A call whose disk is gone goes on. No call may wait for a reply that never comes.
impl Drop for Transport {
    fn drop(&mut self) {
        // From here on the receiver cannot send, and learns that.
        let _ = net::shutdown(&self.socket, Shutdown::Read);
        while self.receive(&mut Vec::with_capacity(16 * MESSAGE)) == Arrival::Bytes {}
        let waiting: Vec<CallId> = self.waiting.keys().copied().collect();
        for id in waiting {
            self.reply(id, Answer::GoOn);
        }
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Sender {
    /// Hands a call to the shard, and waits while the shard does not take calls. An error: the disk is gone.
    pub(super) fn send(&self, id: CallId, several: bool) -> Result<(), Errno> {
        let message = Message {
            id: id.0,
            several: several.into(),
        };
        loop {
            match net::send(&self.0, message.as_bytes(), SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                result => return result.map(|_| ()),
            }
        }
    }
}

fn answer(error: u64) -> Answer {
    match i32::try_from(error) {
        Ok(0) | Err(_) => Answer::GoOn,
        Ok(error) => Answer::Fail(Errno::from_raw_os_error(error)),
    }
}
