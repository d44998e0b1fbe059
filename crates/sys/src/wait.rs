//! Waiting for the events of an epoll descriptor, exact to the nanosecond on every kernel.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::{Errno, Result};

/// Waits until `epoll` has events, and appends as many of them as the spare capacity of `events` holds.
/// `events` must have spare capacity. The wait ends without events after `timeout`, or when a signal
/// interrupts it.
///
/// # Errors
/// Returns the kernel's error if `epoll` is not an epoll descriptor.
pub fn wait_for_events(
    epoll: BorrowedFd<'_>,
    events: &mut Vec<epoll::Event>,
    timeout: Option<&Timespec>,
) -> Result<()> {
    let waited = match epoll::wait(epoll, spare_capacity(events), timeout) {
        // The call is epoll_pwait2. Linux before 5.11 lacks it, and it was added to user-mode emulators and
        // to the filters of containers only years later.
        Err(Errno::NOSYS | Errno::PERM) => wait_with_older_calls(epoll, events, timeout),
        waited => waited.map(|_| ()),
    };
    match waited {
        Err(Errno::INTR) => Ok(()),
        waited => waited,
    }
}

/// Waits with two older calls: ppoll, which takes a timeout in nanoseconds but returns no events, and then
/// epoll_wait, which returns events but takes no such timeout.
fn wait_with_older_calls(
    epoll: BorrowedFd<'_>,
    events: &mut Vec<epoll::Event>,
    timeout: Option<&Timespec>,
) -> Result<()> {
    poll(&mut [PollFd::new(&epoll, PollFlags::IN)], timeout)?;
    let spare = events.spare_capacity_mut();
    let room = i32::try_from(spare.len()).unwrap_or(i32::MAX);
    // SAFETY: rustix's event is the kernel's `epoll_event`. The kernel writes at most `room` events to
    // the spare capacity, and says how many it has written.
    unsafe {
        let count = libc::epoll_wait(epoll.as_raw_fd(), spare.as_mut_ptr().cast(), room, 0);
        let Ok(count) = usize::try_from(count) else {
            let error = std::io::Error::last_os_error();
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        };
        events.set_len(events.len() + count);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{wait_for_events, wait_with_older_calls};
    use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
    use rustix::io::{Errno, Result};
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::time::{Duration, Instant};

    type Wait = fn(BorrowedFd<'_>, &mut Vec<epoll::Event>, Option<&Timespec>) -> Result<()>;

    const BOTH: [Wait; 2] = [wait_for_events, wait_with_older_calls];

    /// An epoll descriptor, and the descriptors that it watches. The watched descriptors are all ready, and
    /// numbered from 0.
    fn ready(count: u64) -> (OwnedFd, Vec<OwnedFd>) {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let add = |number| {
            let fd = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
            let data = epoll::EventData::new_u64(number);
            epoll::add(&epoll, &fd, data, epoll::EventFlags::IN).unwrap();
            fd
        };
        let fds = (0..count).map(add).collect();
        (epoll, fds)
    }

    #[test]
    fn both_ways_add_the_same_events_up_to_the_capacity() {
        for wait in BOTH {
            let (epoll, _fds) = ready(5);
            let mut events = Vec::with_capacity(4);
            wait(epoll.as_fd(), &mut events, None).unwrap();
            let numbers: Vec<u64> = events.iter().map(|event| event.data.u64()).collect();
            assert_eq!(numbers, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn neither_way_ends_early() {
        for wait in BOTH {
            let (epoll, _fds) = ready(0);
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: 1_234_567,
            };
            let (mut events, begun) = (Vec::with_capacity(1), Instant::now());
            wait(epoll.as_fd(), &mut events, Some(&timeout)).unwrap();
            assert!(begun.elapsed() >= Duration::from_nanos(1_234_567));
            assert!(events.is_empty());
        }
    }

    #[test]
    fn other_descriptors_are_refused() {
        for wait in BOTH {
            let (_epoll, fds) = ready(1);
            let not_epoll = wait(fds[0].as_fd(), &mut Vec::with_capacity(1), None);
            assert_eq!(not_epoll, Err(Errno::INVAL));
        }
    }
}
