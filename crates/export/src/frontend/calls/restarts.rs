//! Recognizes a held call that a signal has interrupted and that has begun again. Kernels before 5.19 cannot
//! make the signal wait until the call is answered. After the signal's handler, the call begins again with
//! another id. The call keeps its deadline if the deadline is later than the end of the handler. Otherwise
//! the disk holds the call again, as a new call.

use std::collections::HashMap;

use dashpot_sys::seccomp::{Call, CallId, Caller};
use rustix::process::Pid;

/// For each thread, the last call that the receiver has looked up. A thread makes one call at a time.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    handed_over: HashMap<Pid, HandedOver>,
}

#[derive(Clone, Copy, Debug)]
struct HandedOver {
    first: CallId,
    caller: Caller,
    arguments: [u64; 6],
}

impl Restarts {
    /// The id of the thread's last call, if this call is equal to it. If a disk still
    /// holds the earlier call, this call is the earlier one, which has begun again.
    pub(super) fn first_name(&self, call: &Call) -> Option<CallId> {
        let before = self.handed_over.get(&call.thread?)?;
        let is_same = before.caller == call.caller && before.arguments == call.arguments;
        is_same.then_some(before.first)
    }

    /// Notes a call that the receiver looks up.
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

/// The largest number of threads in the map.
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
