//! The answers to calls. `sync(2)` is a call on several disks: the last of them answers it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use dashpot_sys::seccomp::{Answer, CallId, Listener};

/// The way back to the program, which the receiver and all sessions share.
#[derive(Debug)]
pub(super) struct Answers {
    listener: Listener,
    /// The calls on several disks that wait. No session takes this lock for any other call.
    several: Mutex<HashMap<CallId, Several>>,
}

/// A call on several disks.
#[derive(Clone, Copy, Debug)]
struct Several {
    /// How many of them have not replied.
    left: usize,
    /// The first error.
    answer: Answer,
}

impl Answers {
    pub(super) fn new(listener: Listener) -> Answers {
        Answers {
            listener,
            several: Mutex::default(),
        }
    }

    pub(super) fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Expects the replies of this many disks.
    pub(super) fn expect(&self, id: CallId, disks: usize) {
        let answer = Answer::GoOn;
        let mut several = self.several.lock().unwrap_or_else(PoisonError::into_inner);
        several.insert(
            id,
            Several {
                left: disks,
                answer,
            },
        );
    }

    /// Answers a call on one disk. Its thread may have been killed: then nothing waits.
    pub(super) fn answer(&self, id: CallId, answer: Answer) {
        let _ = self.listener.answer(id, answer);
    }

    /// Answers for one disk, and answers the call if no other disk is left.
    pub(super) fn answer_one_of(&self, id: CallId, answer: Answer) {
        let mut several = self.several.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(call) = several.get_mut(&id) else {
            return;
        };
        call.left -= 1;
        if call.answer == Answer::GoOn {
            call.answer = answer;
        }
        if call.left == 0 {
            let answer = call.answer;
            several.remove(&id);
            drop(several);
            self.answer(id, answer);
        }
    }
}
