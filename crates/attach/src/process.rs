//! A process, identified by its id and its start time, because a later process may get the same id.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process that was alive when this value was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pid: u32,
    /// The time at which the process started, in ticks since boot.
    began: u64,
}

impl Process {
    /// The process with this id, if there is one.
    pub(crate) fn of(pid: u32) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (state, began) = state_and_begin(&stat)?;
        // A zombie counts as dead, because it has no descriptors any more.
        (state != 'Z').then_some(Process { pid, began })
    }

    pub(crate) fn pid(self) -> u32 {
        self.pid
    }

    pub(crate) fn is_alive(self) -> bool {
        Process::of(self.pid) == Some(self)
    }
}

/// The state and the start time of a process. In `/proc/PID/stat` the program's name comes before both, and
/// may contain spaces and parentheses.
fn state_and_begin(stat: &str) -> Option<(char, u64)> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let state = fields.chars().next()?;
    let began = fields.split(' ').nth(BEGAN)?.parse().ok()?;
    Some((state, began))
}

/// The index of the field `starttime` of proc(5), if the field `state` has index 0.
const BEGAN: usize = 19;

#[cfg(test)]
mod tests {
    use super::{Process, state_and_begin};

    #[test]
    fn a_name_may_look_like_the_fields_behind_it() {
        let fields: Vec<String> = (4..=52).map(|at| at.to_string()).collect();
        let stat = format!("7 (a) R (b) 1) S {}\n", fields.join(" "));
        assert_eq!(state_and_begin(&stat), Some(('S', 22)));
        assert_eq!(state_and_begin("7 (a"), None);
    }

    #[test]
    fn this_process_lives_and_an_earlier_one_does_not() {
        let own = Process::of(std::process::id()).expect("this one");
        assert!(own.is_alive());
        let earlier = Process {
            began: own.began - 1,
            ..own
        };
        assert!(!earlier.is_alive());
    }
}
