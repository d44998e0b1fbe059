//! The transport: the queue of a device, and its character device for the data of requests.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use dashpot_engine::Outcome;
use dashpot_sys::ublk::{Descriptor, Event, Queue, op};
use dashpot_sys::why_no_ring;
use rustix::fs::{FileType, fstat, major, minor, readlink};
use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use super::decode::decode;
use super::encode;
use super::handshake::DEPTH;
use super::wire::{DATA_MAX, Head, MESSAGE_MAX, REPLY_MAX, Reply, SECTOR};
use crate::export::ExportInfo;
use crate::frontend::boundary::{
    Arrival, Decoded, Frontend, NotServed, ReceiveLimits, Request, SendLimits,
};

/// The connection to the driver for one device: this process serves the device through its queue.
pub(crate) struct Session {
    queue: Box<Queue>,
    /// Whether the device answers every request with an error.
    fails: bool,
}

impl Session {
    /// Takes the open character device of a new device.
    pub(crate) fn new(fd: OwnedFd) -> Result<Session, NotServed> {
        if !is_ublk(&fd) {
            return Err(NOT_UBLK);
        }
        let queue = Queue::serve(fd, DEPTH).map_err(|error| NotServed::Refused(why_not(&error)))?;
        Ok(Session {
            queue: Box::new(queue),
            fails: false,
        })
    }

    fn fail_arrived(&mut self) -> Arrival {
        while self.queue.next_event().is_some() {}
        self.queue.fail_held();
        if self.queue.is_used() {
            Arrival::Nothing
        } else {
            Arrival::End
        }
    }

    /// Appends the message for a request to `into`.
    fn take(&mut self, into: &mut Vec<u8>, tag: u16, descriptor: Descriptor) {
        let begin = into.len();
        let data = match descriptor.op() {
            op::WRITE => u64::from(descriptor.sectors) * SECTOR,
            _ => 0,
        };
        // If a write is too long, its message gets no data, so the decoder refuses it.
        let data = if data > DATA_MAX.into() {
            0
        } else {
            data as u32
        };
        let head = Head {
            tag: tag.into(),
            data,
            descriptor,
        };
        into.extend_from_slice(head.as_bytes());
        if data == 0 {
            return;
        }
        if self.queue.read_data(tag, into, data as usize).is_err() {
            into.truncate(begin);
            // If this fails, the device is about to go, or the answer stays queued until the next call.
            let _ = self.queue.finish(tag, Err(Errno::IO));
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Session").finish_non_exhaustive()
    }
}

impl Frontend for Session {
    /// Appends messages to the spare capacity of `into`, while there is room for the longest message.
    fn receive(&mut self, into: &mut Vec<u8>) -> Arrival {
        self.queue.hear();
        if self.queue.submit().is_err() {
            return Arrival::End;
        }
        if self.fails {
            return self.fail_arrived();
        }
        let before = into.len();
        for _ in 0..MESSAGES_PER_CALL {
            if into.capacity() - into.len() < MESSAGE_MAX {
                break;
            }
            match self.queue.next_event() {
                Some(Event::Request { tag, descriptor }) => self.take(into, tag, descriptor),
                // Messages that were received earlier in this call are dropped, because the session can no
                // longer reply to them.
                Some(Event::End) => return Arrival::End,
                None => return arrived(into.len() > before),
            }
        }
        self.queue.ring_again();
        arrived(into.len() > before)
    }

    fn receive_limits(&self) -> ReceiveLimits {
        ReceiveLimits::of_messages(MESSAGE_MAX)
    }

    #[inline]
    fn decode(&mut self, received: &[u8], export: &ExportInfo) -> Decoded {
        decode(received, export)
    }

    #[inline]
    fn put_head(&self, heads: &mut Vec<u8>, request: &Request, outcome: Outcome) {
        encode::put_head(heads, request, outcome);
    }

    /// Copies the data of a reply to the kernel, and queues the command that ends the request.
    fn send(&mut self, bytes: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        let whole = bytes.iter().map(|part| part.len()).sum();
        let Some((reply, data)) = split(bytes) else {
            return Ok(whole);
        };
        let tag = reply.tag as u16;
        let mut result = match reply.result {
            0.. => Ok(reply.result.cast_unsigned()),
            error => Err(Errno::from_raw_os_error(-error)),
        };
        if !data.is_empty() && self.queue.write_data(tag, data).is_err() {
            result = Err(Errno::IO);
        }
        match self.queue.finish(tag, result) {
            Ok(()) => Ok(whole),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)),
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::of_replies(REPLY_MAX)
    }

    fn flush(&mut self) -> rustix::io::Result<()> {
        let submitted = self.queue.submit();
        submitted.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// Fails the requests that the driver has sent, and all that it will send. A session that closed its ring
    /// at once crashed Linux 6.12: the kernel cancelled the driver's commands in the ring while the driver
    /// still had requests for them.
    fn fail_all(&mut self) -> bool {
        self.fails = true;
        self.queue.fail_held();
        self.queue.ring_again();
        self.queue.is_used()
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

fn arrived(any: bool) -> Arrival {
    if any {
        Arrival::Bytes
    } else {
        Arrival::Nothing
    }
}

/// Splits a chunk, which has one reply, into the beginning of the reply and the parts with the reply's data.
fn split<'a, 'b>(bytes: &'a [IoSlice<'b>]) -> Option<(Reply, &'a [IoSlice<'b>])> {
    let (first, data) = bytes.split_first()?;
    let reply = Reply::read_from_bytes(first).ok()?;
    Some((reply, data))
}

/// Whether a descriptor is the character device of a ublk device. Asks sysfs, because the major number of
/// these devices is not fixed.
fn is_ublk(fd: &OwnedFd) -> bool {
    let Ok(found) = fstat(fd) else {
        return false;
    };
    let (major, minor) = (major(found.st_rdev), minor(found.st_rdev));
    let link = readlink(
        format!("/sys/dev/char/{major}:{minor}/subsystem"),
        Vec::new(),
    );
    FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice
        && link.is_ok_and(|link| link.to_bytes().ends_with(b"/ublk-char"))
}

/// The reason that a queue cannot be served.
fn why_not(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::NOSYS) => why_no_ring(error),
        _ => format!("the queue of the ublk device cannot be served: {error}"),
    }
}

const NOT_UBLK: NotServed = NotServed::WrongDescriptor("ublk device");
/// The largest number of messages that one call of [`Session::receive`] takes. Each further message in a batch
/// delays the messages before it.
const MESSAGES_PER_CALL: usize = 16;

#[cfg(test)]
mod tests {
    use super::{NOT_UBLK, Session, split};
    use std::fs::File;
    use std::io::IoSlice;

    #[test]
    fn other_descriptors_are_refused() {
        for path in ["/dev/null", "/proc/self/exe", "/"] {
            let file = File::open(path).unwrap();
            assert_eq!(Session::new(file.into()).unwrap_err(), NOT_UBLK, "{path}");
        }
    }

    #[test]
    fn a_reply_has_its_beginning_in_the_first_part() {
        let parts = [[7, 0, 0, 0, 0, 2, 0, 0].as_slice(), &[1; 512], &[]].map(IoSlice::new);
        let (reply, data) = split(&parts).unwrap();
        assert_eq!((reply.tag, reply.result, data[0].len()), (7, 512, 512));
        assert!(split(&parts[1..]).is_none() && split(&[]).is_none());
    }
}
