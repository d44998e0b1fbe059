//! The listener, which is the descriptor over which the kernel reports notified calls and takes the answers
//! to them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::process::Pid;

use super::abi::{Abi, NUMBERINGS, SystemCall, find};
use super::filter::{Notified, borrowed, program};

/// A listener. A poller finds the listener readable when a call waits, and hung up when no filtered thread is
/// left.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    holds_signals: bool,
}

/// The kernel's number for a call that waits. Each later call has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The call's number in the kernel.
    pub id: CallId,
    /// The thread that makes the call, if this process sees the thread's namespace.
    pub thread: Option<Pid>,
    /// The call, and the kind of program that makes it.
    pub caller: Caller,
    pub arguments: [u64; 6],
}

/// A system call, and the kind of program that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A program of the machine's own word size makes this call.
    Native(SystemCall),
    /// A program of another word size makes this call.
    Foreign(SystemCall),
    /// A program of an unknown architecture makes the call with this number.
    Unknown(i32),
}

/// The answer to a call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The kernel does the call, and does not report when the call ends.
    GoOn,
    /// The call fails at once.
    Fail(Errno),
    /// The kernel does not do the call, which returns this number.
    Return(u32),
}

/// The reason that no filter was installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotInstalled {
    /// A filter of this thread already has a listener. The kernel does not allow a second one.
    HasListener,
    /// The kernel, or a sandbox around this process, does not offer the user notification of seccomp.
    Missing,
    /// A sandbox around this process forbids filters.
    Forbidden,
    /// The numbers of this machine's system calls are not known to this program.
    UnknownMachine,
    /// The kernel refused for another reason.
    Failed(Errno),
}

impl Listener {
    /// Installs a filter for the calling thread and its later descendants. When one of them makes one of
    /// these calls, the kernel reports the call to the listener. From then on, these threads cannot gain
    /// privileges by execve.
    pub fn install(calls: &[Notified]) -> Result<Listener, NotInstalled> {
        if NUMBERINGS.is_empty() {
            return Err(NotInstalled::UnknownMachine);
        }
        rustix::thread::set_no_new_privs(true).map_err(NotInstalled::Failed)?;
        let mut program = program(calls);
        let listens = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        // With the flag `WAIT_KILLABLE_RECV`, a signal to the caller of a received call waits until the call
        // is answered, unless the signal kills the caller. Kernels before 5.19 do not have this flag.
        let holding = listens | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        let (fd, holds_signals) = match set_filter(&mut program, holding) {
            Err(Errno::INVAL) => (set_filter(&mut program, listens), false),
            result => (result, true),
        };
        let fd = fd.map_err(NotInstalled::of)?;
        Ok(Listener { fd, holds_signals })
    }

    /// Takes over a listener that another process has installed.
    pub fn from_fd(fd: OwnedFd, holds_signals: bool) -> Listener {
        Listener { fd, holds_signals }
    }

    /// Closes the descriptor in a thread with the filter, and makes no call that a filter notifies. If the
    /// thread owned the listener while its call waits, the call might wait for ever.
    pub fn leave(self) {
        let fd = self.fd.into_raw_fd();
        // SAFETY: the kernel closes this one descriptor, which nothing else uses from here on.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, fd, fd, 0) };
        if closed != 0 {
            // SAFETY: the descriptor is still open, and nothing else has it. Kernels before 5.9 have only this way.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }

    /// Whether a signal waits until a received call is answered. If false, a signal with a handler ends the
    /// wait: the call begins again as another call, or fails with `EINTR`. A call that no owner has received
    /// yet is always interrupted so.
    pub fn holds_signals(&self) -> bool {
        self.holds_signals
    }

    /// Asks the kernel to wake the receiver on the caller's CPU, and the caller on the receiver's, because
    /// only one of the two works at a time. Kernels before 6.6 refuse the request, and wake both on any CPU.
    pub fn wake_nearby(&self) {
        // include/uapi/linux/seccomp.h: SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP.
        const SYNC_WAKE_UP: libc::c_ulong = 1;
        // SAFETY: the kernel takes the value of the argument as flags, and touches no memory of this process.
        let _ = unsafe { libc::ioctl(self.raw(), SET_FLAGS, SYNC_WAKE_UP) };
    }

    /// The next call that waits. If no call waits yet, this method blocks, so ask the poller first. Returns
    /// `None` if the thread of the call was killed meanwhile, or if a signal has interrupted this method.
    pub fn receive(&self) -> io::Result<Option<Call>> {
        // SAFETY: all-zero bytes are a valid value of this struct of integers, and the kernel demands them.
        let mut message: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one `seccomp_notif` to its argument, whose size is a part of the
        // request's number, and the message lives until the call returns.
        let result = unsafe { libc::ioctl(self.raw(), RECEIVE, &raw mut message) };
        match check(result.into()) {
            Ok(_) => Ok(Some(Call::of(&message))),
            Err(Errno::NOENT | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a call still waits. If so, all facts that were gathered since the call was received are about
    /// the call's own thread, and not about a later thread with the same number.
    pub fn waits(&self, id: CallId) -> bool {
        // SAFETY: the kernel reads one u64 from its argument, which lives until the call returns.
        let result = unsafe { libc::ioctl(self.raw(), IS_VALID, &raw const id.0) };
        result == 0
    }

    /// Answers a call. Returns false if the call does not wait for this answer, because its thread was
    /// killed, another owner has answered, or no owner has received the call yet.
    pub fn answer(&self, id: CallId, answer: Answer) -> rustix::io::Result<bool> {
        let (val, error, flags) = match answer {
            Answer::GoOn => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Answer::Fail(errno) => (0, -errno.raw_os_error(), 0),
            Answer::Return(number) => (number.into(), 0, 0),
        };
        let mut message = libc::seccomp_notif_resp {
            id: id.0,
            val,
            error,
            flags,
        };
        // SAFETY: the kernel reads one `seccomp_notif_resp` from its argument, whose size is a part of the
        // request's number, and the message lives until the call returns.
        let result = unsafe { libc::ioctl(self.raw(), ANSWER, &raw mut message) };
        match check(result.into()) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::INPROGRESS) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Another owner of the same listener.
    pub fn share(&self) -> io::Result<Listener> {
        let fd = self.fd.try_clone()?;
        Ok(Listener::from_fd(fd, self.holds_signals))
    }

    fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Call {
    fn of(message: &libc::seccomp_notif) -> Call {
        let data = &message.data;
        let caller = match find(data.arch, data.nr.cast_unsigned()) {
            Some((call, Abi::Native)) => Caller::Native(call),
            Some((call, Abi::Foreign)) => Caller::Foreign(call),
            None => Caller::Unknown(data.nr),
        };
        Call {
            id: CallId(message.id),
            thread: Pid::from_raw(message.pid.cast_signed()),
            caller,
            arguments: data.args,
        }
    }
}

impl NotInstalled {
    fn of(errno: Errno) -> NotInstalled {
        match errno {
            Errno::BUSY => NotInstalled::HasListener,
            Errno::NOSYS | Errno::INVAL => NotInstalled::Missing,
            Errno::PERM | Errno::ACCESS => NotInstalled::Forbidden,
            error => NotInstalled::Failed(error),
        }
    }
}

/// Makes a call that every filter with notified calls notifies, and that changes nothing: it fails.
pub fn make_first_call() {
    let nothing = std::ptr::null::<libc::c_char>();
    // SAFETY: without a name, execve(2) fails, and touches no memory.
    unsafe { libc::syscall(libc::SYS_execve, nothing, nothing, nothing) };
}

fn set_filter(program: &mut [libc::sock_filter], flags: libc::c_ulong) -> Result<OwnedFd, Errno> {
    let borrowed = borrowed(program);
    // SAFETY: the kernel reads the instructions that the struct points to, and both live until the call
    // returns. Once installed, the filter only lets calls of this thread wait or go on.
    let result = unsafe {
        let operation = libc::SECCOMP_SET_MODE_FILTER;
        libc::syscall(libc::SYS_seccomp, operation, flags, &raw const borrowed)
    };
    let fd = check(result)? as RawFd;
    // SAFETY: the kernel has just made this descriptor for its caller, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    match result {
        -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        result => Ok(result),
    }
}

const RECEIVE: libc::Ioctl = libc::SECCOMP_IOCTL_NOTIF_RECV;
const SET_FLAGS: libc::Ioctl = libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS;
const ANSWER: libc::Ioctl = libc::SECCOMP_IOCTL_NOTIF_SEND;
const IS_VALID: libc::Ioctl = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
