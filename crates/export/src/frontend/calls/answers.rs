//! The answers to calls. `sync(2)` is a call on several disks: the last of them answers it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashpot_sys::seccomp::{Answer, CallId, Listener};

use crate::export::Counts;

/// The way back to the program, which the receiver and all sessions share.
#[derive(Debug)]
pub(super) struct Answers {
    listener: Listener,
    counts: Arc<Counts>,
    /// The calls that disks hold, by the names that they had when they were handed over.
    held: Mutex<HashMap<CallId, Held>>,
}

/// A call that is held.
#[derive(Debug)]
struct Held {
    /// How many disks have not replied.
    left: usize,
    /// The first error.
    answer: Answer,
    /// The path by which this process finds the file, if it is not the descriptor's.
    path: Option<PathBuf>,
    /// The kernel's present name for the call: another one if a signal has interrupted the call.
    present: CallId,
}

impl Answers {
    pub(super) fn new(listener: Listener, counts: Arc<Counts>) -> Answers {
        Answers {
            listener,
            counts,
            held: Mutex::default(),
        }
    }

    pub(super) fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Counts a sync that could not be done before it was held.
    pub(super) fn count_unsynced(&self) {
        self.counts.unsynced.fetch_add(1, Ordering::Relaxed);
    }

    /// Expects the replies of this many disks.
    pub(super) fn expect(&self, id: CallId, disks: usize, path: Option<PathBuf>) {
        let held = Held {
            left: disks,
            answer: Answer::GoOn,
            path,
            present: id,
        };
        self.lock().insert(id, held);
    }

    /// The path by which this process finds the file of a call, if it is not the descriptor's.
    pub(super) fn path(&self, id: CallId) -> Option<PathBuf> {
        self.lock().get(&id)?.path.clone()
    }

    /// Whether a call that was handed over still waits, under its present name.
    pub(super) fn waits(&self, id: CallId) -> bool {
        let present = self.lock().get(&id).map(|held| held.present);
        present.is_some_and(|present| self.listener.waits(present))
    }

    /// Gives a call that is held, and that a signal has interrupted, its new name. False if it is not held.
    pub(super) fn rename(&self, id: CallId, now: CallId) -> bool {
        match self.lock().get_mut(&id) {
            Some(held) => {
                held.present = now;
                true
            }
            None => false,
        }
    }

    /// Answers for one disk, and answers the call if no other disk is left.
    pub(super) fn answer_one_of(&self, id: CallId, answer: Answer) {
        let mut calls = self.lock();
        let Some(held) = calls.get_mut(&id) else {
            return;
        };
        held.left -= 1;
        if held.answer == Answer::GoOn {
            held.answer = answer;
        }
        if held.left == 0
            && let Some(held) = calls.remove(&id)
        {
            drop(calls);
            self.answer(held.present, held.answer);
        }
    }

    /// Answers a call that no disk holds. Its thread may have been killed: then nothing waits.
    pub(super) fn answer(&self, id: CallId, answer: Answer) {
        let _ = self.listener.answer(id, answer);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
