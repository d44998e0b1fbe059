//! Calls that a signal interrupts while disks hold them. Kernels before 5.19 cannot make the signal wait
//! until the call is answered. The call begins again after the signal's handler, as a call with another name.
//! The call keeps its deadline if the deadline falls after the handler has ended. Otherwise the disk holds
//! the call once more, as a new call.

use std::collections::HashMap;

use dashpot_sys::seccomp::{Call, CallId, Caller};
use rustix::process::Pid;

/// For each thread, its last call that the receiver has handed over. A thread has one call at a time.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    handed_over: HashMap<Pid, HandedOver>,
}

#[derive(Clone, Copy, Debug)]
struct HandedOver {
    /// The call's name when the receiver handed it over.
    first: CallId,
    caller: Caller,
    arguments: [u64; 6],
}

impl Restarts {
    /// The first name of a call, if the same thread has made the same call before. If a disk still
    /// holds the call with that name, the call has begun again.
    pub(super) fn first_name(&self, call: &Call) -> Option<CallId> {
        let before = self.handed_over.get(&call.thread?)?;
        let is_same = before.caller == call.caller && before.arguments == call.arguments;
        is_same.then_some(before.first)
    }

    /// Notes a call that the receiver hands over.
    pub(super) fn note(&mut self, call: &Call) {
        if self.handed_over.len() == THREADS_MAX {
            self.handed_over.clear();
        }
        if let Some(thread) = call.thread {
            let noted = HandedOver {
                first: call.id,
                caller: call.caller,
                arguments: call.arguments,
            };
            self.handed_over.insert(thread, noted);
        }
    }
}

/// The most threads that this map remembers.
const THREADS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::Restarts;
    use dashpot_sys::seccomp::{Call, CallId, Caller, SystemCall};
    use rustix::process::Pid;

    #[test]
    fn the_same_call_of_the_same_thread_is_known() {
        let call = |id, thread, argument| Call {
            id: CallId(id),
            thread: Pid::from_raw(thread),
            caller: Caller::Native(SystemCall::Fsync),
            arguments: [argument, 0, 0, 0, 0, 0],
        };
        let mut restarts = Restarts::default();
        restarts.note(&call(1, 7, 3));
        assert_eq!(restarts.first_name(&call(2, 7, 3)), Some(CallId(1)));
        assert_eq!(restarts.first_name(&call(2, 7, 4)), None);
        assert_eq!(restarts.first_name(&call(2, 8, 3)), None);
    }
}
