//! The transport: calls come from the receiver to the shard over a socket, and replies go to the kernel
//! through the seccomp listener.

use std::collections::HashMap;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use dashpot_sys::seccomp::{Answer, CallId};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType};
use zerocopy::{FromBytes, IntoBytes};

use super::answers::Answers;
use super::jobs::{Job, Jobs, Work};
use super::syncs::Way;
use super::wire::{MESSAGE, Message, Reply, WITHDRAWN};
use crate::frontend::boundary::{Arrival, CallWork, Done};

/// The shard's end of the socket.
#[derive(Debug)]
pub(super) struct Transport {
    socket: OwnedFd,
    answers: Arc<Answers>,
    jobs: Jobs,
    /// The calls that wait for the shard's reply.
    waiting: HashMap<CallId, Message>,
}

/// The receiver's end of the socket.
#[derive(Debug)]
pub(super) struct Sender(OwnedFd);

impl Transport {
    pub(super) fn new(answers: Arc<Answers>, jobs: Jobs) -> Result<(Sender, Transport), Errno> {
        let flags = SocketFlags::CLOEXEC;
        let (near, far) = net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let transport = Transport {
            socket: far,
            answers,
            jobs,
            waiting: HashMap::new(),
        };
        Ok((Sender(near), transport))
    }

    /// Appends messages to the spare capacity of `into`.
    pub(super) fn receive(&mut self, into: &mut Vec<u8>) -> Arrival {
        // The sender sends whole messages, so if the room is a multiple of their length, no message is cut in
        // two.
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
            match Message::read_from_bytes(message) {
                Ok(message) if message.op == WITHDRAWN => {
                    self.waiting.remove(&CallId(message.id));
                }
                Ok(message) => {
                    self.waiting.insert(CallId(message.id), message);
                }
                Err(_) => {}
            }
        }
    }

    /// Answers a call as the reply says. Takes the whole reply, and returns its length.
    pub(super) fn send(&mut self, bytes: &[IoSlice<'_>]) -> usize {
        for reply in bytes {
            if let Ok(Reply { id, error }) = Reply::read_from_bytes(reply) {
                self.reply(CallId(id), answer(error));
            }
        }
        bytes.iter().map(|part| part.len()).sum()
    }

    fn reply(&mut self, id: CallId, answer: Answer) {
        if self.waiting.remove(&id).is_some() {
            self.answers.answer_one_of(id, answer);
        }
    }

    /// Begins work for a call that waits, unless the work is a sync that dashpot cannot do itself.
    pub(super) fn begin(&self, id: CallId, work: CallWork, done: Done) -> Option<Done> {
        let message = self.waiting.get(&id);
        let way = message.map_or(Way::None, |message| Way::of_word(message.way));
        let work = match (message, work) {
            (_, CallWork::Short { seed }) => Work::Short { seed },
            (Some(message), CallWork::Sync) if way != Way::None => Work::Sync {
                way,
                thread: message.thread,
                descriptor: message.descriptor,
            },
            (_, CallWork::Sync) => {
                self.answers.count_unsynced();
                return Some(done);
            }
        };
        self.jobs.submit(Job { id, work, done });
        None
    }
}

/// When the disk goes away, its calls go on, because no call may wait for a reply that never comes.
impl Drop for Transport {
    fn drop(&mut self) {
        // From here on, the receiver's sends fail, which tells the receiver that the disk is gone.
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
    /// Hands a call to the shard. Blocks while the socket is full, and fails if the disk is gone.
    pub(super) fn send(&self, message: &Message) -> Result<(), Errno> {
        self.send_as(message, SendFlags::empty())
    }

    /// As [`Sender::send`], but fails with `EAGAIN` while the socket is full.
    pub(super) fn try_send(&self, message: &Message) -> Result<(), Errno> {
        self.send_as(message, SendFlags::DONTWAIT)
    }

    fn send_as(&self, message: &Message, flags: SendFlags) -> Result<(), Errno> {
        loop {
            match net::send(&self.0, message.as_bytes(), flags | SendFlags::NOSIGNAL) {
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
