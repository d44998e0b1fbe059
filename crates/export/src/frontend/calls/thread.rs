//! Identifies the thread that makes a call, because the kernel reuses the numbers of threads that have ended.

use std::io::Read;
use std::os::fd::OwnedFd;

use dashpot_sys::seccomp::{Call, Listener};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::Pid;

/// A thread that has made a call: its directory in `/proc`. Once the thread has ended, the directory is empty,
/// also if another thread gets the same number.
#[derive(Debug)]
pub(super) struct Thread(OwnedFd);

impl Thread {
    /// The thread that waits in a call. `None` if the thread has ended, or if this process can open no more
    /// files.
    pub(super) fn that_calls(call: &Call, listener: &Listener) -> Option<Thread> {
        let thread = Thread::of(call.thread?).ok()?;
        // If the call still waits, this is the directory of its thread, and not of a later one.
        listener.waits(call.id).then_some(thread)
    }

    fn of(number: Pid) -> Result<Thread, Errno> {
        let path = format!("/proc/{}", number.as_raw_nonzero());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, path, flags, Mode::empty()).map(Thread)
    }

    /// Whether the thread still lives.
    pub(super) fn lives(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(file) = openat(&self.0, "stat", flags, Mode::empty()) else {
            return false;
        };
        let mut stat = Vec::new();
        let read = std::fs::File::from(file).read_to_end(&mut stat);
        read.is_ok() && lives(&String::from_utf8_lossy(&stat))
    }
}

/// Whether a thread lives, by the text of its `stat`. The state is the first field after the program's name,
/// which is in parentheses, and may itself have spaces and parentheses.
fn lives(stat: &str) -> bool {
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, fields)| fields.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::{Thread, lives};
    use rustix::process::{Pid, getpid};
    use std::process::Command;

    #[test]
    fn a_thread_lives_until_it_ends() {
        assert!(lives("7 (a ) b) S 1 2"));
        assert!(!lives("7 (a) Z 1 2"));
        assert!(!lives(""));
        assert!(Thread::of(getpid()).unwrap().lives());
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let thread = Thread::of(Pid::from_child(&child)).unwrap();
        assert!(thread.lives());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!thread.lives());
    }
}
