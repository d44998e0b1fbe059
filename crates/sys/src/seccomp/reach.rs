//! The descriptors and the memory of a thread whose call waits.

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::slice::from_ref;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::thread::{CapabilitySet, capabilities};

use super::lookup::content;

/// A copy of a thread's descriptor. Both have the same position in the file.
pub fn descriptor_of(thread: Pid, number: i32) -> Result<OwnedFd, Errno> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    // include/uapi/linux/pidfd.h: PIDFD_THREAD.
    let of_thread = PidfdFlags::from_bits_retain(OFlags::EXCL.bits());
    let handle = match pidfd_open(thread, of_thread) {
        Err(Errno::INVAL) => handle_of_process(thread)?,
        opened => opened?,
    };
    pidfd_getfd(handle, number, PidfdGetfdFlags::empty())
}

/// A handle of a thread's process. Before Linux 6.9, there are none of threads. Fails if the thread has descriptors of
/// its own.
fn handle_of_process(thread: Pid) -> Result<OwnedFd, Errno> {
    let status = content(&format!("/proc/{thread}/status"))?;
    let status = String::from_utf8_lossy(&status);
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let process = process.and_then(|number| Pid::from_raw(number.trim().parse().ok()?));
    let process = process.ok_or(Errno::SRCH)?;
    if have_same_descriptors(thread, process) {
        pidfd_open(process, PidfdFlags::empty())
    } else {
        Err(Errno::INVAL)
    }
}

fn have_same_descriptors(one: Pid, other: Pid) -> bool {
    // include/uapi/linux/kcmp.h: KCMP_FILES.
    const FILES: libc::c_int = 2;
    let [one, other] = [one, other].map(|thread| thread.as_raw_nonzero().get());
    // SAFETY: the kernel only compares, and touches no memory of this process.
    one == other || unsafe { libc::syscall(libc::SYS_kcmp, one, other, FILES, 0, 0) } == 0
}

/// Copies bytes from a thread's memory, at these addresses one after the other, until `into` is full. Returns how
/// many bytes were copied.
pub fn read_memory(thread: Pid, from: &[Range<u64>], into: &mut [u8]) -> Result<usize, Errno> {
    let near = vector(into.as_mut_ptr(), into.len());
    let far = vectors(from, into.len());
    // SAFETY: the kernel writes only to `into`, which `near` describes and this function has borrowed. It checks
    // the addresses of the other process itself.
    let copied = unsafe {
        let thread = thread.as_raw_nonzero().get();
        libc::process_vm_readv(
            thread,
            &raw const near,
            1,
            far.as_ptr(),
            far.len() as u64,
            0,
        )
    };
    usize::try_from(copied).map_err(|_| last_error())
}

/// Copies bytes to a thread's memory, at these addresses one after the other. Returns how many bytes were copied.
/// Like a call of the thread itself, this changes only memory that the thread may write.
pub fn write_memory(thread: Pid, to: &[Range<u64>], bytes: &[u8]) -> Result<usize, Errno> {
    let near = vector(bytes.as_ptr().cast_mut(), bytes.len());
    let far = vectors(to, bytes.len());
    // SAFETY: the kernel only reads `bytes`, which `near` describes and this function has borrowed. It checks the
    // addresses of the other process itself.
    let copied = unsafe {
        let thread = thread.as_raw_nonzero().get();
        libc::process_vm_writev(
            thread,
            &raw const near,
            1,
            far.as_ptr(),
            far.len() as u64,
            0,
        )
    };
    usize::try_from(copied).map_err(|_| last_error())
}

/// Why the descriptors and the memory of a program are out of reach here. `None` if no reason is known, although a
/// program that changes its user may still be out of reach.
pub fn why_out_of_reach() -> Option<String> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let may_trace =
        capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_PTRACE));
    if let Some(why) = barred(scope.trim(), may_trace) {
        return Some(why.to_owned());
    }
    // A sandbox may forbid the calls as such.
    let own = getpid();
    let (byte, mut into) = ([0_u8], [0]);
    let at = byte.as_ptr().addr() as u64;
    let from = at..at + 1;
    let descriptor = std::fs::File::open("/proc/self").map_err(|_| Errno::NOENT);
    let descriptor = descriptor.and_then(|file| descriptor_of(own, file.as_raw_fd()));
    if let Err(error) = descriptor {
        return Some(format!("pidfd_getfd(2) fails: {error}"));
    }
    let read = read_memory(own, from_ref(&from), &mut into);
    read.err()
        .map(|error| format!("process_vm_readv(2) fails: {error}"))
}

fn barred(scope: &str, may_trace: bool) -> Option<&'static str> {
    match (scope, may_trace) {
        ("3", _) => Some("kernel.yama.ptrace_scope is 3"),
        ("2", false) => Some("kernel.yama.ptrace_scope is 2, and dashpot lacks CAP_SYS_PTRACE"),
        _ => None,
    }
}

/// The first `length` bytes of these ranges.
fn vectors(ranges: &[Range<u64>], length: usize) -> Vec<libc::iovec> {
    let mut left = length;
    let ranges = ranges.iter().map(|range| {
        let length = left.min((range.end - range.start) as usize);
        left -= length;
        vector(
            std::ptr::without_provenance_mut(range.start as usize),
            length,
        )
    });
    ranges.collect()
}

fn vector(at: *mut u8, length: usize) -> libc::iovec {
    libc::iovec {
        iov_base: at.cast(),
        iov_len: length,
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::{barred, descriptor_of, handle_of_process, read_memory, write_memory};
    use rustix::fs::{SeekFrom, seek, tell};
    use rustix::io::Errno;
    use rustix::process::getpid;
    use rustix::thread::gettid;
    use std::os::fd::AsRawFd;

    #[test]
    fn memory_is_copied_piece_by_piece() {
        let bytes: Vec<u8> = (0..100).collect();
        let at = bytes.as_ptr().addr() as u64;
        let mut into = [0; 30];
        let pieces = [at + 10..at + 15, at + 50..at + 50, at + 40..at + 90];
        assert_eq!(read_memory(getpid(), &pieces, &mut into), Ok(30));
        let expected: Vec<u8> = (10..15).chain(40..65).collect();
        assert_eq!(into, *expected);
        let mut target = [0_u8; 20];
        let at = target.as_mut_ptr().expose_provenance() as u64;
        assert_eq!(
            write_memory(getpid(), &[at..at + 4, at + 8..at + 20], &[7; 6]),
            Ok(6)
        );
        assert_eq!(target[..12], [7, 7, 7, 7, 0, 0, 0, 0, 7, 7, 0, 0]);
        let nowhere = [8..9, 8..9];
        assert_eq!(write_memory(getpid(), &nowhere, &[1]), Err(Errno::FAULT));
    }

    #[test]
    fn yama_may_bar_programs() {
        for (scope, may_trace, is_barred) in [
            ("", false, false),
            ("1", false, false),
            ("2", false, true),
            ("2", true, false),
            ("3", true, true),
        ] {
            assert_eq!(barred(scope, may_trace).is_some(), is_barred, "{scope}");
        }
    }

    #[test]
    fn a_copied_descriptor_has_the_same_position() {
        let file = tempfile::tempfile().unwrap();
        let copy = descriptor_of(gettid(), file.as_raw_fd()).unwrap();
        seek(&copy, SeekFrom::Start(77)).unwrap();
        assert_eq!(tell(&file), Ok(77));
    }

    #[test]
    fn a_thread_with_descriptors_of_its_own_is_not_taken_for_its_process() {
        // A test runs in a thread that is not the first of its process.
        assert_ne!(gettid(), getpid());
        assert!(handle_of_process(gettid()).is_ok());
        let own = std::thread::spawn(|| {
            // SAFETY: the thread gets a copy of the table of descriptors, and ends without changing it.
            let result = unsafe { libc::unshare(libc::CLONE_FILES) };
            assert_eq!(result, 0);
            handle_of_process(gettid()).err()
        });
        assert_eq!(own.join().unwrap(), Some(Errno::INVAL));
    }
}
