//! Sentences about the system calls of a program.

/// A sentence about calls that a signal ended before dashpot received them, or before their hold was over.
/// `None` if there were none.
pub fn interrupted(calls: u64) -> Option<String> {
    match calls {
        0 => None,
        1 => Some(format!("1 call was {FATE}, or its thread was killed")),
        calls => Some(format!(
            "{calls} calls were {FATE}, or their threads were killed"
        )),
    }
}

/// The fate of calls that a signal reached first.
const FATE: &str = "interrupted by a signal before dashpot could make the signal wait, and began again, failed \
    with EINTR";
