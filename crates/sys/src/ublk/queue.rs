//! The queue of a device, as its server uses it.

use std::io::{self, IoSlice};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use io_uring::{cqueue, opcode, types};
use memmap2::{MmapOptions, MmapRaw};
use rustix::io::Errno;
use rustix::ioctl::{Direction, opcode as ioctl};

use super::layout::{Descriptor, QueueCommand, data_offset};
use crate::bell_ring::{BellRing, is_transient};

/// The queue of a device, which this process serves. Only the thread that made the queue may use it, because
/// the driver takes commands from no other thread.
///
/// The driver keeps the server's commands until it has requests for them. A command that never gets a request
/// ends when the block device or the thread ends. If a queue is dropped earlier, its ring stays until the
/// thread ends. If the ring were dropped, the kernel would cancel the commands while the driver completes
/// them.
pub struct Queue {
    ring: ManuallyDrop<BellRing>,
    descriptors: MmapRaw,
    device: OwnedFd,
    /// For each tag, whether the server holds a request with that tag.
    held: Vec<bool>,
    /// How many commands the driver has, or will get.
    commands: usize,
}

/// An event that the driver reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request has arrived. The server answers it with [`Queue::finish`].
    Request {
        /// The driver's number for the request, below the depth of the queue.
        tag: u16,
        /// The driver's description of the request.
        descriptor: Descriptor,
    },
    /// The device is being removed, and the driver sends no more requests.
    End,
}

impl Queue {
    /// Begins to serve the queue of a new device. `device` is the open character device, which was made with
    /// this `depth`.
    ///
    /// # Errors
    /// Fails if the kernel refuses a ring of io_uring (see [`why_no_ring`](crate::why_no_ring)), if `device`
    /// is not a character device of ublk, or if the device has another depth.
    pub fn serve(device: OwnedFd, depth: u16) -> io::Result<Queue> {
        let ring = BellRing::new(depth.into())?;
        ring.enable()?;
        let length = usize::from(depth) * size_of::<Descriptor>();
        let length = length.next_multiple_of(rustix::param::page_size());
        let descriptors = MmapOptions::new().len(length).map_raw_read_only(&device)?;
        let mut queue = Queue {
            ring: ManuallyDrop::new(ring),
            descriptors,
            device,
            held: vec![false; depth.into()],
            commands: 0,
        };
        for tag in 0..depth {
            queue.push(FETCH, tag, 0)?;
        }
        queue.submit()?;
        // The block device does not exist yet, so a completion can only be a refusal, not a request.
        match queue.next_entry().map(|entry| entry.result()) {
            None => Ok(queue),
            Some(error) => Err(io::Error::from_raw_os_error(-error)),
        }
    }

    /// The next event. There is an [`Event::End`] for each command that the driver gives back unused.
    pub fn next_event(&mut self) -> Option<Event> {
        let entry = self.next_entry()?;
        let tag = entry.user_data() as u16;
        let held = self.held.get_mut(usize::from(tag));
        Some(match (entry.result(), held) {
            (0, Some(held)) => {
                *held = true;
                let descriptor = self.descriptor(tag);
                Event::Request { tag, descriptor }
            }
            _ => Event::End,
        })
    }

    /// Answers a request: with the number of bytes that were read or written, with 0 for other operations, or
    /// with an error. Does nothing if the server has no request with this tag. The driver takes the answer
    /// with the next [`Queue::submit`].
    pub fn finish(&mut self, tag: u16, result: Result<u32, Errno>) -> io::Result<()> {
        let at = usize::from(tag);
        if self.held.get(at) != Some(&true) {
            return Ok(());
        }
        let result = match result {
            Ok(bytes) => i32::try_from(bytes).unwrap_or(i32::MAX),
            Err(errno) => -errno.raw_os_error(),
        };
        self.push(COMMIT_AND_FETCH, tag, result)?;
        self.held[at] = false;
        Ok(())
    }

    /// Gives the queued answers to the driver. Makes no system call if no answers are queued.
    pub fn submit(&mut self) -> io::Result<()> {
        while !self.ring.ring.submission().is_empty() {
            match self.ring.ring.submit() {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::INTR) => {}
                Err(error) if is_transient(&error) => return Ok(()),
                Err(error) => return Err(error),
                Ok(0) => return Ok(()),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Fails all requests that the server holds.
    pub fn fail_held(&mut self) {
        for tag in 0..self.held.len() as u16 {
            // A failure means that the driver takes no more answers.
            let _ = self.finish(tag, Err(Errno::IO));
        }
        let _ = self.submit();
    }

    /// Whether the driver still has commands of this server.
    pub fn is_used(&self) -> bool {
        self.commands > 0
    }

    /// Clears the signal, so that a poller finds the descriptor readable only when the driver has another
    /// event. Afterwards the caller takes events until there are no more. If it stops before that, it must
    /// call [`Queue::ring_again`].
    pub fn hear(&self) {
        self.ring.hear();
    }

    /// Makes the descriptor readable again.
    pub fn ring_again(&self) {
        self.ring.ring_bell();
    }

    /// Appends the data of a write to `into`, which has room for this many bytes.
    ///
    /// # Errors
    /// Fails if the request is gone, or has another length. In this case `into` is unchanged.
    pub fn read_data(&self, tag: u16, into: &mut Vec<u8>, length: usize) -> io::Result<()> {
        // If there were more room than the request has bytes, the driver would report a wrong number of
        // bytes.
        let room = into.spare_capacity_mut().get_mut(..length);
        let room = room.ok_or(io::ErrorKind::InvalidInput)?;
        let (read, _) = rustix::io::pread(&self.device, room, data_offset(tag))?;
        if read.len() != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the call has filled as many bytes of the spare capacity as it returns.
        unsafe { into.set_len(into.len() + length) };
        Ok(())
    }

    /// Gives the driver the data of a read.
    ///
    /// # Errors
    /// Fails if the request is gone, or has another length.
    pub fn write_data(&self, tag: u16, data: &[IoSlice<'_>]) -> io::Result<()> {
        let length: usize = data.iter().map(|part| part.len()).sum();
        match rustix::io::pwritev(&self.device, data, data_offset(tag))? {
            written if written == length => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    fn next_entry(&mut self) -> Option<cqueue::Entry> {
        let entry = self.ring.next_entry(self.commands)?;
        self.commands = self.commands.saturating_sub(1);
        Some(entry)
    }

    fn push(&mut self, command: u32, tag: u16, result: i32) -> io::Result<()> {
        if self.ring.ring.submission().is_full() {
            self.submit()?;
        }
        let bytes = QueueCommand {
            queue: 0,
            tag,
            result,
            address: 0,
        };
        let entry = opcode::UringCmd16::new(types::Fd(self.device.as_raw_fd()), command);
        let entry = entry
            .cmd(zerocopy::transmute!(bytes))
            .build()
            .user_data(tag.into());
        // SAFETY: the entry names no memory. The descriptor stays open until the kernel has the entry,
        // because the ring is dropped first. From then on, the kernel has its own reference to the device.
        let pushed = unsafe { self.ring.ring.submission().push(&entry) };
        pushed.map_err(|_| io::ErrorKind::WouldBlock)?;
        self.commands += 1;
        Ok(())
    }

    /// The description of the request with a tag below the depth.
    fn descriptor(&self, tag: u16) -> Descriptor {
        let all = self.descriptors.as_ptr().cast::<Descriptor>();
        // SAFETY: the mapping has room for a descriptor per tag, is aligned to a page, and stays until the
        // queue is dropped. All bytes are valid descriptors. The driver writes a descriptor only before it
        // sends the request, and it has sent this request.
        unsafe { ptr::read_volatile(all.add(tag.into())) }
    }
}

/// The descriptor becomes readable when the driver has an event, and stays so until the owner calls
/// [`Queue::hear`].
impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

impl Drop for Queue {
    /// The driver notices the end of a thread only if the driver has commands from that thread. This method
    /// therefore fails all requests that the server holds, which gives the driver a command for each of them.
    fn drop(&mut self) {
        while self.next_event().is_some() {}
        self.fail_held();
        if !self.is_used() {
            // SAFETY: nothing uses the ring after this.
            unsafe { ManuallyDrop::drop(&mut self.ring) };
        }
    }
}

/// The ioctl number of a command of a queue (`UBLK_F_CMD_IOCTL_ENCODE`).
const fn command(number: u8) -> u32 {
    ioctl::from_components(
        Direction::ReadWrite,
        b'u',
        number,
        size_of::<QueueCommand>(),
    )
}

/// Takes the next request with a tag. A new server begins with this command.
const FETCH: u32 = command(0x20);
/// Answers the request with a tag, and takes the next request.
const COMMIT_AND_FETCH: u32 = command(0x21);

#[cfg(test)]
mod tests {
    use super::{COMMIT_AND_FETCH, FETCH, Queue};

    #[test]
    fn commands_have_the_numbers_of_the_drivers_header() {
        assert_eq!((FETCH, COMMIT_AND_FETCH), (0xc010_7520, 0xc010_7521));
    }

    #[test]
    fn other_descriptors_are_refused() {
        for path in ["/dev/null", "/proc/self/exe"] {
            let file = std::fs::File::open(path).unwrap();
            assert!(Queue::serve(file.into(), 8).is_err(), "{path}");
        }
    }
}
