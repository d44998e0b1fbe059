//! The answers to calls. A call can act on several disks, as `sync(2)` does. Its answer is then sent when the
//! last of these disks has replied.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashpot_engine::Instant;
use dashpot_sys::seccomp::{Answer, Call, CallId, Listener};
use rustix::io::Errno;

use super::mapped::Mapped;
use super::restarts::Restarts;
use super::short::shorten;
use super::thread::Thread;
use crate::export::{Counts, Follower};

/// Sends answers to the program. The receiver and all sessions share this value.
#[derive(Debug)]
pub(super) struct Answers {
    listener: Listener,
    follower: Box<dyn Follower>,
    counts: Arc<Counts>,
    /// The calls that disks hold. The key of a call is the id that it had when the receiver handed it over.
    held: Mutex<HashMap<CallId, Held>>,
    restarts: Mutex<Restarts>,
    clock: fn() -> Instant,
}

/// A call that is held.
#[derive(Debug)]
struct Held {
    /// How many of the call's disks have not replied yet.
    left: usize,
    /// The answer so far: the first error with which a disk has replied, or `GoOn` if no disk has replied
    /// with an error. If dashpot has done a part of the call itself, the number of the bytes.
    answer: Answer,
    /// The mapped file that an msync acts on.
    mapped: Option<Mapped>,
    /// The call, until dashpot does a part of it itself.
    call: Option<Call>,
    /// The kernel's current id of the call. A call gets another id when a signal interrupts it.
    present: CallId,
    /// The thread that makes the call, if a signal may interrupt the call.
    caller: Option<Arc<Thread>>,
    /// Whether all of the call's disks have it.
    is_handed_over: bool,
}

impl Answers {
    pub(super) fn new(
        listener: Listener,
        follower: Box<dyn Follower>,
        counts: Arc<Counts>,
        clock: fn() -> Instant,
    ) -> Answers {
        Answers {
            listener,
            follower,
            counts,
            held: Mutex::default(),
            restarts: Mutex::default(),
            clock,
        }
    }

    pub(super) fn listener(&self) -> &Listener {
        &self.listener
    }

    pub(super) fn follower(&self) -> &dyn Follower {
        &*self.follower
    }

    pub(super) fn now(&self) -> Instant {
        (self.clock)()
    }

    /// Counts a sync that a rule with `--mode floor` holds although dashpot could not do the sync itself
    /// first.
    pub(super) fn count_unsynced(&self) {
        self.counts.unsynced.fetch_add(1, Ordering::Relaxed);
    }

    /// Does less of a call than the program has asked for, as `seed` decides, and makes the call return the number
    /// of the bytes. Otherwise the call goes on as a whole. Returns whether the call was shortened.
    pub(super) fn shorten(&self, id: CallId, seed: u64) -> bool {
        let call = lock(&self.held)
            .get_mut(&id)
            .and_then(|held| held.call.take());
        // Of several disks that have the file, only one shortens the call.
        let Some(call) = call else {
            return false;
        };
        // If a signal could interrupt the call, it might be done twice.
        let shortened = if self.listener.holds_signals() {
            shorten(&call, seed, || self.listener.waits(id))
        } else {
            Err(Errno::NOSYS)
        };
        match shortened {
            Ok(Some(bytes)) => {
                if let Some(held) = lock(&self.held).get_mut(&id) {
                    held.answer = Answer::Return(bytes);
                }
            }
            Ok(None) => {}
            Err(_) => self.count_unshortened(),
        }
        matches!(shortened, Ok(Some(_)))
    }

    /// Counts a read or a write that goes on whole, although a rule with `--short` has chosen it.
    pub(super) fn count_unshortened(&self) {
        self.counts.unshortened.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts calls that a signal has interrupted.
    pub(super) fn count_interrupted(&self, calls: u64) {
        self.counts.add_interrupted(calls);
    }

    /// Counts a call that no disk holds, and that has nevertheless waited for dashpot since `from`, if it has
    /// waited long.
    pub(super) fn count_wait(&self, from: Instant) {
        let waited = self.now().since(from).as_nanos();
        if waited >= LONG_NS {
            self.counts.slow.fetch_add(1, Ordering::Relaxed);
            self.counts.slowest_ns.fetch_max(waited, Ordering::Relaxed);
        }
    }

    /// Notes that `disks` disks must reply to a call.
    pub(super) fn expect(&self, call: &Call, disks: usize, mapped: Option<Mapped>) {
        let caller = if self.listener.holds_signals() {
            None
        } else {
            Thread::that_calls(call, &self.listener).map(Arc::new)
        };
        let held = Held {
            left: disks,
            answer: Answer::GoOn,
            mapped,
            call: Some(*call),
            present: call.id,
            caller,
            is_handed_over: false,
        };
        lock(&self.held).insert(call.id, held);
    }

    /// Notes that all disks of a call have it.
    pub(super) fn handed_over(&self, id: CallId) {
        if let Some(held) = lock(&self.held).get_mut(&id) {
            held.is_handed_over = true;
        }
    }

    /// The mapped file of a held msync.
    pub(super) fn mapped(&self, id: CallId) -> Option<Mapped> {
        lock(&self.held).get(&id)?.mapped.clone()
    }

    /// Whether a call that was handed over still waits in the kernel, under its current id.
    pub(super) fn waits(&self, id: CallId) -> bool {
        let present = lock(&self.held).get(&id).map(|held| held.present);
        present.is_some_and(|present| self.listener.waits(present))
    }

    /// Whether a call is one that disks hold, and that begins again because a signal has interrupted it. Gives
    /// the held call its new id then.
    pub(super) fn is_restart(&self, call: &Call) -> bool {
        if self.listener.holds_signals() {
            return false;
        }
        let mut restarts = lock(&self.restarts);
        if let Some(first) = restarts.first_name(call)
            && let Some(before) = self.rename(first, call.id)
        {
            self.follower.answered(before);
            return true;
        }
        restarts.note(call);
        false
    }

    /// Gives a held call another id, and returns the id that it had. `None` if no disk holds the call, or if
    /// the thread that made it has ended: then another thread has the number of that thread.
    fn rename(&self, id: CallId, now: CallId) -> Option<CallId> {
        let mut calls = lock(&self.held);
        let held = calls.get_mut(&id)?;
        let lives = held.caller.as_ref().is_some_and(|caller| caller.lives());
        lives.then(|| {
            self.count_interrupted(1);
            std::mem::replace(&mut held.present, now)
        })
    }

    /// Whether disks hold any calls.
    pub(super) fn has_held(&self) -> bool {
        !lock(&self.held).is_empty()
    }

    /// The calls that disks hold.
    pub(super) fn held(&self) -> Vec<CallId> {
        let calls = lock(&self.held);
        let handed = calls.iter().filter(|(_, held)| held.is_handed_over);
        handed.map(|(id, _)| *id).collect()
    }

    /// Forgets a call if its thread was killed. Returns whether the call was forgotten.
    pub(super) fn forget_abandoned(&self, id: CallId) -> bool {
        // The lock is released before the kernel is asked, because the disks need the lock, too.
        let of_call = |held: &Held| (held.present, held.caller.clone());
        let Some((present, caller)) = lock(&self.held).get(&id).map(of_call) else {
            return false;
        };
        // While a signal's handler runs, the interrupted call does not wait, although its thread lives.
        let lives = || caller.is_some_and(|caller| caller.lives());
        let is_abandoned = !self.listener.waits(present) && !lives();
        if is_abandoned {
            self.follower.answered(present);
        }
        is_abandoned && lock(&self.held).remove(&id).is_some()
    }

    /// Notes the answer of one disk. Answers the call if all other disks have replied.
    pub(super) fn answer_one_of(&self, id: CallId, answer: Answer) {
        let mut calls = lock(&self.held);
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
            let is_gone = !self.answer(held.present, held.answer);
            if is_gone && held.caller.is_some_and(|caller| caller.lives()) {
                self.count_interrupted(1);
            }
        }
    }

    /// Answers a call that no disk holds any more. Returns false if the call has ended: its thread was killed,
    /// or a signal has interrupted it.
    pub(super) fn answer(&self, id: CallId, answer: Answer) -> bool {
        let answered = self.listener.answer(id, answer);
        self.follower.answered(id);
        answered.unwrap_or(false)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that dashpot does not hold has waited long if it waited for this many nanoseconds.
const LONG_NS: u64 = 1_000_000;
