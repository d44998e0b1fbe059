//! The work that dashpot does itself for calls, before they go on or instead: [syncs](super::syncs) and
//! [shortened calls](super::short). Threads do this work, because it may wait.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use dashpot_sys::seccomp::CallId;

use super::answers::Answers;
use super::syncs::{Way, sync};
use crate::frontend::boundary::Done;

/// Work that a thread has to do for a call.
pub(super) struct Job {
    pub(super) id: CallId,
    pub(super) work: Work,
    /// Called when the work has ended, or turns out to be impossible.
    pub(super) done: Done,
}

/// The work for a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// Sync the file of the thread's descriptor, or the files that the call maps.
    Sync {
        way: Way,
        thread: u32,
        descriptor: u32,
    },
    /// Do less of the call than the program has asked for.
    Short { seed: u64 },
}

/// The threads that do the work. A thread is added when there are more waiting jobs than idle threads.
#[derive(Clone, Debug)]
pub(super) struct Jobs(Arc<Shared>);

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

impl Jobs {
    pub(super) fn new(answers: Arc<Answers>) -> Jobs {
        Jobs(Arc::new(Shared {
            answers,
            state: Mutex::default(),
            more: Condvar::new(),
        }))
    }

    /// Queues a job for a thread.
    pub(super) fn submit(&self, job: Job) {
        let mut state = self.0.lock();
        state.jobs.push_back(job);
        if state.idle < state.jobs.len() && state.threads < THREADS_MAX {
            let shared = Arc::clone(&self.0);
            let name = Builder::new().name("dashpot-work".to_owned());
            match name.stack_size(STACK).spawn(move || shared.work()) {
                Ok(_) => state.threads += 1,
                // If no further thread can start, an existing thread does the job. If there is no thread at
                // all, the call goes on without the work.
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
            match job.work {
                Work::Sync { .. } => self.answers.count_unsynced(),
                Work::Short { .. } => self.answers.count_unshortened(),
            }
            (job.done)(false);
        }
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                let did = self.run(&job);
                (job.done)(did);
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

    /// Does the work. Returns whether it could be done.
    fn run(&self, job: &Job) -> bool {
        match job.work {
            Work::Sync {
                way,
                thread,
                descriptor,
            } => {
                let synced = sync(&self.answers, job.id, way, (thread, descriptor));
                if synced.is_err() {
                    self.answers.count_unsynced();
                }
                synced.is_ok()
            }
            Work::Short { seed } => self.answers.shorten(job.id, seed),
        }
    }
}

/// The largest number of threads.
const THREADS_MAX: usize = 512;
/// The size of a thread's stack in bytes. The work needs little stack.
const STACK: usize = 128 << 10;
/// How long a thread without work waits for more work.
const IDLE: Duration = Duration::from_secs(5);
