//! Identifies the thread that makes a call, because the kernel reuses the numbers of threads that have ended.

use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};

/// A thread that has made a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    number: Pid,
    /// A moment after the thread began its call, in ticks since the machine started.
    called: u64,
}

impl Thread {
    /// The thread with this number, which is waiting in a call now.
    pub(super) fn that_calls(number: Pid) -> Thread {
        let now = clock_gettime(ClockId::Boottime);
        let ticks =
            now.tv_sec * TICKS_PER_SECOND + now.tv_nsec / (1_000_000_000 / TICKS_PER_SECOND);
        Thread {
            number,
            called: ticks.cast_unsigned(),
        }
    }

    /// Whether the thread still lives. If a thread with this number started after the call, the thread that
    /// made the call has ended.
    pub(super) fn lives(self) -> bool {
        let stat = std::fs::read(format!("/proc/{}/stat", self.number.as_raw_nonzero()));
        let stat = stat.unwrap_or_default();
        let started = started(&String::from_utf8_lossy(&stat));
        started.is_some_and(|started| started <= self.called)
    }
}

/// When a thread started, in ticks, from the text of `/proc/TID/stat`. `None` if the thread has ended.
fn started(stat: &str) -> Option<u64> {
    // The program's name, which is in parentheses, may itself have spaces and parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    let started = fields.nth(STARTED - 1)?.parse().ok();
    started.filter(|_| !matches!(state, "Z" | "X"))
}

/// `USER_HZ`. This is 100 on all machines on which dashpot can hold calls.
const TICKS_PER_SECOND: i64 = 100;
/// The place of the field `starttime`, counted from the field `state`. See proc(5).
const STARTED: usize = 19;

#[cfg(test)]
mod tests {
    use super::{Thread, started};
    use rustix::process::getpid;

    #[test]
    fn a_thread_lives_until_it_ends() {
        let line = |state| {
            let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
            format!("7 (a ) b) {state} {rest}")
        };
        assert_eq!(started(&line("S")), Some(4711));
        assert_eq!(started(&line("Z")), None);
        assert_eq!(started(""), None);
        assert!(Thread::that_calls(getpid()).lives());
    }

    #[test]
    fn a_later_thread_with_the_same_number_is_another() {
        let own = Thread::that_calls(getpid());
        let earlier = Thread { called: 0, ..own };
        assert!(!earlier.lives());
    }
}
