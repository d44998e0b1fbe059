//! A ring of the kernel's io_uring for reads, writes and syncs of files opened for direct I/O.
//!
//! While an operation is in flight, the ring owns the buffer and the file that the kernel uses, so that a
//! caller can neither free nor change them too early.
//!
//! Only the thread that [enables](Ring::enable) a ring uses the ring, and a poller watches the ring's
//! event descriptor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use io_uring::squeue::Entry;
use io_uring::{opcode, types};
use rustix::io::Errno;

use crate::bell_ring::{BellRing, is_transient};
use crate::buffer::Buffer;

/// A ring of io_uring for direct I/O.
pub struct Ring {
    base: BellRing,
    flights: Vec<Option<Flight>>,
    /// The indices in `flights` that are free.
    free: Vec<usize>,
    in_flight: usize,
    spare: Vec<Buffer>,
}

/// An operation on a file.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// Reads `length` bytes.
    Read {
        /// The offset of the first byte.
        offset: u64,
        /// The number of bytes.
        length: u32,
    },
    /// Writes bytes.
    Write {
        /// The offset of the first byte.
        offset: u64,
        /// The bytes. The ring copies them.
        from: &'a [u8],
        /// Whether the bytes must be durable before the write is complete.
        durable: bool,
    },
    /// Makes all completed writes durable.
    Sync,
}

/// An operation that has ended.
#[derive(Debug)]
pub struct Completion {
    /// The caller's number for the operation.
    pub token: u64,
    /// The number of bytes read or written, or the kernel's error.
    pub result: Result<usize, Errno>,
    /// The bytes of a read or a write. [`Ring::give`] takes the buffer back.
    pub buffer: Buffer,
}

/// An operation that is queued, or that the kernel is doing.
struct Flight {
    token: u64,
    buffer: Buffer,
    /// Keeps the descriptor open until the kernel has seen the operation.
    _file: Arc<File>,
}

impl Ring {
    /// Makes a ring that can queue this many operations between two calls of [`Ring::submit`]. More
    /// operations than that may be in flight.
    pub fn new(entries: u32) -> io::Result<Ring> {
        Ok(Ring {
            base: BellRing::new(entries)?,
            flights: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            spare: Vec::new(),
        })
    }

    /// Makes the calling thread the only user of the ring.
    pub fn enable(&self) -> io::Result<()> {
        self.base.enable()
    }

    /// Queues an operation on a file that is open for direct I/O. `token` comes back with the operation's
    /// [`Completion`]. Fails if the kernel cannot take more operations at the moment.
    pub fn start(&mut self, file: &Arc<File>, token: u64, work: Work<'_>) -> io::Result<()> {
        if self.base.ring.submission().is_full() {
            self.submit()?;
        }
        let mut buffer = self.buffer(&work);
        let place = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        let entry = entry(file, &work, &mut buffer).user_data(place as u64);
        // SAFETY: the entry names memory and a descriptor. The memory and the descriptor belong to
        // the flight, which stays in `flights` until the kernel has completed the entry. Moving a
        // `Buffer` does not move its bytes, and no reference to these bytes is given out before
        // then.
        let pushed = unsafe { self.base.ring.submission().push(&entry) };
        if pushed.is_err() {
            self.free.push(place);
            self.give(buffer);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.in_flight += 1;
        self.flights[place] = Some(Flight {
            token,
            buffer,
            _file: Arc::clone(file),
        });
        Ok(())
    }

    /// Gives the queued operations to the kernel. Makes no system call if no operations are queued.
    /// Operations that the kernel does not accept yet stay queued.
    ///
    /// If one call submits more than two operations, the kernel merges neighbouring operations. The device
    /// would then see fewer and larger requests than the caller has started, so each call submits at most two
    /// operations.
    pub fn submit(&mut self) -> io::Result<()> {
        let mut queued = self.base.ring.submission().len();
        while queued > 0 {
            let few = queued.min(UNMERGED);
            // SAFETY: the call has no argument. `start` made the queued entries, and its comment says why the
            // kernel may have them.
            let entered = unsafe {
                self.base
                    .ring
                    .submitter()
                    .enter::<()>(few as u32, 0, 0, None)
            };
            match entered {
                Ok(0) => return Ok(()),
                Ok(taken) => queued = queued.saturating_sub(taken),
                Err(error) if is_transient(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether operations are queued that the kernel does not have yet.
    pub fn has_queued(&mut self) -> bool {
        !self.base.ring.submission().is_empty()
    }

    /// Clears the signal, so that a poller finds the descriptor readable only when another operation has
    /// ended. Afterwards the caller takes completions until there are no more.
    pub fn hear(&self) {
        self.base.hear();
    }

    /// The next of the operations that have ended.
    pub fn next_completion(&mut self) -> Option<Completion> {
        let entry = self.base.next_entry(self.in_flight)?;
        let place = usize::try_from(entry.user_data()).ok()?;
        let flight = self.flights.get_mut(place)?.take()?;
        self.free.push(place);
        self.in_flight -= 1;
        let result = usize::try_from(entry.result());
        Some(Completion {
            token: flight.token,
            result: result.map_err(|_| Errno::from_raw_os_error(-entry.result())),
            buffer: flight.buffer,
        })
    }

    /// Takes a buffer back, for a later operation.
    pub fn give(&mut self, buffer: Buffer) {
        if (1..=SPARE_LENGTH).contains(&buffer.capacity()) && self.spare.len() < SPARES {
            self.spare.push(buffer);
        }
    }

    /// A buffer for an operation. If the operation is a write, the buffer already has the bytes to write.
    fn buffer(&mut self, work: &Work<'_>) -> Buffer {
        match *work {
            Work::Read { length, .. } => self.spare(length as usize),
            Work::Write { from, .. } => {
                let mut buffer = self.spare(from.len());
                buffer.bytes_mut().copy_from_slice(from);
                buffer
            }
            Work::Sync => Buffer::default(),
        }
    }

    fn spare(&mut self, length: usize) -> Buffer {
        let spare = if length <= SPARE_LENGTH {
            self.spare.pop()
        } else {
            None
        };
        spare.unwrap_or_default().of(length)
    }

    /// Waits until the kernel has completed all operations.
    fn drain(&mut self) -> io::Result<()> {
        while self.in_flight > 0 {
            match self.base.ring.submit_and_wait(1) {
                Err(error) if !is_transient(&error) => return Err(error),
                _ => {}
            }
            while self.next_completion().is_some() {}
        }
        Ok(())
    }
}

/// The descriptor becomes readable when an operation ends, and stays so until the owner calls [`Ring::hear`].
impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.base.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.drain().is_err() {
            // The kernel may still write to these buffers, so they must stay for ever.
            std::mem::forget(std::mem::take(&mut self.flights));
        }
    }
}

/// The kernel's form of an operation. The entry contains the address of the bytes of `buffer`.
fn entry(file: &File, work: &Work<'_>, buffer: &mut Buffer) -> Entry {
    let file = types::Fd(file.as_raw_fd());
    let bytes = buffer.bytes_mut();
    match *work {
        Work::Read { offset, length } => opcode::Read::new(file, bytes.as_mut_ptr(), length)
            .offset(offset)
            .build(),
        Work::Write {
            offset,
            from,
            durable,
        } => opcode::Write::new(file, bytes.as_ptr(), from.len() as u32)
            .offset(offset)
            .rw_flags(if durable { RWF_DSYNC } else { 0 })
            .build(),
        Work::Sync => opcode::Fsync::new(file)
            .flags(types::FsyncFlags::DATASYNC)
            .build(),
    }
}

/// The reason that [`Ring::new`] failed, in words.
pub fn why_no_ring(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::PERM) => {
            "io_uring is forbidden here (kernel.io_uring_disabled, or a seccomp filter)".to_owned()
        }
        Some(Errno::NOSYS) => "this kernel has no io_uring, or a filter hides it".to_owned(),
        Some(Errno::INVAL) => "this kernel's io_uring is older than Linux 6.1".to_owned(),
        _ => format!("there is no io_uring ({error})"),
    }
}

/// The most operations that one call may submit without the kernel merging any of them.
const UNMERGED: usize = 2;
/// `RWF_DSYNC` of `linux/fs.h`.
const RWF_DSYNC: i32 = 2;
/// The ring keeps no buffer that is longer than this, in bytes.
const SPARE_LENGTH: usize = 128 << 10;
/// How many buffers the ring keeps.
const SPARES: usize = 128;

#[cfg(test)]
mod tests;
