//! Syncs that dashpot does itself, before a rule with `--mode floor` holds the program's own sync. Threads of
//! dashpot do these syncs. Each sync uses a descriptor of its own.
//!
//! For each open file description, the kernel remembers which errors it has reported. So the program's own
//! sync, which follows, still reports each error that dashpot's sync has seen.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use dashpot_sys::seccomp::{CallId, Status, SystemCall};
use rustix::fs::{CWD, FileType, Mode, OFlags, fdatasync, fsync, openat, syncfs};
use rustix::io::Errno;

use super::answers::Answers;
use super::subject::as_its_user;
use crate::frontend::boundary::Done;

/// The sync that dashpot does itself for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Way {
    /// dashpot cannot do this sync itself.
    None = 0,
    Fsync = 1,
    Fdatasync = 2,
    Syncfs = 3,
    Sync = 4,
}

impl Way {
    pub(super) const fn of(call: SystemCall) -> Way {
        match call {
            SystemCall::Fsync => Way::Fsync,
            SystemCall::Fdatasync | SystemCall::SyncFileRange | SystemCall::Msync => Way::Fdatasync,
            SystemCall::Syncfs => Way::Syncfs,
            SystemCall::Sync => Way::Sync,
            // dashpot cannot sync a write's bytes before the call, because they are not in the file yet.
            _ => Way::None,
        }
    }

    pub(super) const fn of_word(word: u32) -> Way {
        match word {
            1 => Way::Fsync,
            2 => Way::Fdatasync,
            3 => Way::Syncfs,
            4 => Way::Sync,
            _ => Way::None,
        }
    }
}

/// A sync that a thread has to do.
pub(super) struct Job {
    pub(super) id: CallId,
    pub(super) way: Way,
    pub(super) thread: u32,
    pub(super) descriptor: u32,
    /// Called when the sync has ended, or turns out to be impossible.
    pub(super) done: Done,
}

/// The threads that do syncs. A thread is added when there are more waiting syncs than idle threads.
#[derive(Clone, Debug)]
pub(super) struct Syncs(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    answers: Arc<Answers>,
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Syncs {
    pub(super) fn new(answers: Arc<Answers>) -> Syncs {
        Syncs(Arc::new(Shared {
            answers,
            state: Mutex::default(),
            more: Condvar::new(),
        }))
    }

    /// Queues a sync for a thread.
    pub(super) fn submit(&self, job: Job) {
        let mut state = self.0.lock();
        state.jobs.push_back(job);
        if state.idle < state.jobs.len() && state.threads < THREADS_MAX {
            let shared = Arc::clone(&self.0);
            let name = Builder::new().name("dashpot-sync".to_owned());
            match name.stack_size(STACK).spawn(move || shared.work()) {
                Ok(_) => state.threads += 1,
                // If no further thread can start, an existing thread does the sync. If there is no thread at
                // all, dashpot holds the call without a sync of its own.
                Err(_) if state.threads > 0 => {}
                Err(_) => return self.0.give_up(state),
            }
        }
        drop(state);
        self.0.more.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_up(&self, mut state: MutexGuard<'_, State>) {
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        for job in jobs {
            self.answers.count_unsynced();
            (job.done)();
        }
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                if self.sync(&job).is_err() {
                    self.answers.count_unsynced();
                }
                (job.done)();
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let waited = self.more.wait_timeout(state, IDLE);
            let (again, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
            state = again;
            state.idle -= 1;
            if timed_out.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    /// Does the sync. Fails only if the file cannot be opened. If the sync itself fails, the program's own
    /// sync will report the error.
    fn sync(&self, job: &Job) -> Result<(), Errno> {
        if job.way == Way::Sync {
            rustix::fs::sync();
            return Ok(());
        }
        let file = self.open(job)?;
        let _ = match job.way {
            Way::Fsync => fsync(&file),
            Way::Fdatasync => fdatasync(&file),
            Way::Syncfs => syncfs(&file),
            Way::None | Way::Sync => Ok(()),
        };
        Ok(())
    }

    /// Opens the file of a sync. The program may change what is at a path between two looks at it, so each path
    /// is used once: first for a handle of the file, which this function checks and then opens.
    fn open(&self, job: &Job) -> Result<OwnedFd, Errno> {
        let thread = job.thread.cast_signed();
        let mapped = self.answers.mapped(job.id);
        let handle = match &mapped {
            Some(mapped) => opened(&mapped.path, OFlags::PATH | OFlags::NOFOLLOW)?,
            None => {
                let path = PathBuf::from(format!("/proc/{thread}/fd/{}", job.descriptor));
                let open = || opened(&path, OFlags::PATH);
                open().or_else(|error| as_its_user(thread, error, open))?
            }
        };
        let path = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        let status = Status::of(&path)?;
        let is_it = mapped.is_none_or(|it| it.identity == (status.device, status.inode));
        // Opening a device or a pipe can have effects.
        let kind = FileType::from_raw_mode(status.mode);
        let is_plain = matches!(kind, FileType::RegularFile | FileType::Directory);
        // If the call still waits, the handle is that of the caller's file, and not that of the file of a
        // later thread with the same number.
        if !is_it || !is_plain || !self.answers.waits(job.id) {
            return Err(Errno::SRCH);
        }
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let open = || match opened(&path, flags | OFlags::RDONLY) {
            Err(Errno::ACCESS) => opened(&path, flags | OFlags::WRONLY),
            opened => opened,
        };
        open().or_else(|error| as_its_user(thread, error, open))
    }
}

fn opened(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())
}

/// The largest number of threads that do syncs.
const THREADS_MAX: usize = 512;
/// The size of a thread's stack in bytes. A sync needs little stack.
const STACK: usize = 128 << 10;
/// How long a thread without work waits for more work.
const IDLE: Duration = Duration::from_secs(5);
