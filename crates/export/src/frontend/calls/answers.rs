//! The answers to calls. A call can act on several disks, as `sync(2)` does. Its answer is then sent when the
//! last of these disks has replied.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashpot_sys::seccomp::{Answer, Call, CallId, Listener};

use super::thread::Thread;
use crate::export::Counts;

/// Sends answers to the program. The receiver and all sessions share this value.
#[derive(Debug)]
pub(super) struct Answers {
    listener: Listener,
    counts: Arc<Counts>,
    /// The calls that disks hold. The key of a call is the id that it had when the receiver handed it over.
    held: Mutex<HashMap<CallId, Held>>,
}

/// A call that is held.
#[derive(Debug)]
struct Held {
    /// How many of the call's disks have not replied yet.
    left: usize,
    /// The answer so far: the first error with which a disk has replied, or `GoOn` if no disk has replied
    /// with an error.
    answer: Answer,
    /// The path by which this process opens the call's file, if it cannot open the caller's descriptor.
    path: Option<PathBuf>,
    /// The kernel's current id of the call. A call gets another id when a signal interrupts it.
    present: CallId,
    caller: Option<Thread>,
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

    /// Counts a sync that a rule with `--mode floor` holds although dashpot could not do the sync itself
    /// first.
    pub(super) fn count_unsynced(&self) {
        self.counts.unsynced.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that `disks` disks must reply to a call.
    pub(super) fn expect(&self, call: &Call, disks: usize, path: Option<PathBuf>) {
        let held = Held {
            left: disks,
            answer: Answer::GoOn,
            path,
            present: call.id,
            caller: call.thread.map(Thread::that_calls),
        };
        self.lock().insert(call.id, held);
    }

    /// The path by which this process opens the file of a call. `None` if this process opens the caller's
    /// descriptor.
    pub(super) fn path(&self, id: CallId) -> Option<PathBuf> {
        self.lock().get(&id)?.path.clone()
    }

    /// Whether a call that was handed over still waits in the kernel, under its current id.
    pub(super) fn waits(&self, id: CallId) -> bool {
        let present = self.lock().get(&id).map(|held| held.present);
        present.is_some_and(|present| self.listener.waits(present))
    }

    /// Gives a held call, which a signal has interrupted, its new id. Returns false if no disk holds the
    /// call, or if the number of the call's thread now belongs to another thread.
    pub(super) fn rename(&self, id: CallId, now: CallId) -> bool {
        match self.lock().get_mut(&id) {
            Some(held) if held.caller.is_some_and(Thread::lives) => {
                held.present = now;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Whether disks hold any calls.
    pub(super) fn has_held(&self) -> bool {
        !self.lock().is_empty()
    }

    /// The calls that disks hold.
    pub(super) fn held(&self) -> Vec<CallId> {
        self.lock().keys().copied().collect()
    }

    /// Forgets a call if its thread was killed. Returns whether the call was forgotten.
    pub(super) fn forget_abandoned(&self, id: CallId) -> bool {
        // The lock is released before the kernel is asked, because the disks need the lock, too.
        let of_call = |held: &Held| (held.present, held.caller);
        let Some((present, caller)) = self.lock().get(&id).map(of_call) else {
            return false;
        };
        // While a signal's handler runs, the interrupted call does not wait, although its thread lives.
        let is_abandoned = !self.listener.waits(present) && !caller.is_some_and(Thread::lives);
        is_abandoned && self.lock().remove(&id).is_some()
    }

    /// Notes the answer of one disk. Answers the call if all other disks have replied.
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

    /// Answers a call that no disk holds. If the call's thread has been killed, no thread waits for this
    /// answer.
    pub(super) fn answer(&self, id: CallId, answer: Answer) {
        let _ = self.listener.answer(id, answer);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
