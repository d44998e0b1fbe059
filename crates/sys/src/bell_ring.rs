//! A ring of the kernel's io_uring that signals an event descriptor.
//!
//! Only one thread uses the ring, so that the kernel can complete the ring's work during that thread's own
//! calls, and need not interrupt the thread for it. A ring of this kind needs Linux 6.1 or later. The ring
//! does not wake a poller itself: it signals the event descriptor, and the poller watches this descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use io_uring::{IoUring, cqueue};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// A ring, and the event descriptor that it signals.
pub(crate) struct BellRing {
    pub(crate) ring: IoUring,
    bell: OwnedFd,
}

impl BellRing {
    /// Makes a ring whose submission queue holds this many operations. Only the thread that
    /// [enables](BellRing::enable) the ring may use the ring.
    pub(crate) fn new(entries: u32) -> io::Result<BellRing> {
        let mut builder = IoUring::builder();
        builder.setup_r_disabled().setup_single_issuer();
        builder.setup_defer_taskrun().setup_taskrun_flag();
        let ring = builder.build(entries)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        ring.submitter().register_eventfd(bell.as_raw_fd())?;
        Ok(BellRing { ring, bell })
    }

    /// Makes the calling thread the only user of the ring.
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.ring.submitter().register_enable_rings()
    }

    /// Clears the signal, so that a poller finds the descriptor readable only when the kernel has signalled
    /// it again.
    pub(crate) fn hear(&self) {
        let mut rings = [0; 8];
        // This may fail because there is nothing to read. Either way, the caller then takes the completions.
        let _ = rustix::io::read(&self.bell, &mut rings);
    }

    /// Signals the descriptor, as the kernel does.
    #[cfg(feature = "ublk")]
    pub(crate) fn ring_bell(&self) {
        // The write fails only if the descriptor is readable already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// The kernel's next completion. At most `in_flight` operations are in flight. If the kernel holds
    /// completions back, this method makes system calls to get them.
    ///
    /// A call may yield no completion although the kernel still holds some back. Since Linux 6.13 a call runs
    /// at most 20 pieces of work, and a piece may complete nothing: if its operation would block, the piece
    /// only moves the operation to a thread of the kernel. So this method makes enough calls for `in_flight`
    /// operations. The kernel signals the descriptor again for later completions. The number of calls is
    /// bounded, because the kernel's flag may stay set although nothing is held back.
    pub(crate) fn next_entry(&mut self, in_flight: usize) -> Option<cqueue::Entry> {
        for _ in 0..in_flight / WORK_OF_A_CALL + 2 {
            if let Some(entry) = self.ring.completion().next() {
                return Some(entry);
            }
            let queue = self.ring.submission();
            let keeps_some = queue.taskrun() || queue.cq_overflow();
            drop(queue);
            if !keeps_some {
                return None;
            }
            self.enter().ok()?;
        }
        self.ring.completion().next()
    }

    /// Lets the kernel post completions that it has held back.
    fn enter(&mut self) -> io::Result<()> {
        match self.ring.submit() {
            Err(error) if !is_transient(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// The descriptor becomes readable when the kernel signals it, and stays so until the owner calls
/// [`BellRing::hear`].
impl AsFd for BellRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// `IO_LOCAL_TW_DEFAULT_MAX` of the kernel.
const WORK_OF_A_CALL: usize = 20;

/// Whether a later call may succeed.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    let error = Errno::from_io_error(error);
    matches!(error, Some(Errno::INTR | Errno::AGAIN | Errno::BUSY))
}
