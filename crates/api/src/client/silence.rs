//! How long a call waits for a silent daemon, and the state of that daemon's process: stopped, or
//! running and busy.
//!
//! At intervals of [`PATIENCE`], a waiting call looks at the daemon's process and asks the daemon for
//! `/healthz`. A call that may take a long time, such as `suspend`, therefore waits until the daemon answers
//! or ends.

use std::fmt;
use std::time::Duration;

use dashpot_rules::short_time;

/// How long a daemon may be silent before the call looks at its process.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The time limit of a call that the daemon answers as soon as it can.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// How long a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// At most [`ANSWER_MAX`], because the daemon answers as soon as it can.
    Answer,
    /// At most this time in all.
    Within(Duration),
    /// As long as the daemon lives, because the daemon answers only after an event, such as the end of the
    /// last zio.
    Long,
}

impl Wait {
    /// The time left for a call that has already taken `lasted`.
    pub(super) fn left(self, lasted: Duration) -> Duration {
        match self {
            Wait::Answer => ANSWER_MAX.saturating_sub(lasted),
            Wait::Within(limit) => limit.saturating_sub(lasted),
            Wait::Long => Duration::MAX,
        }
    }
}

/// The state of a daemon that has not answered, and how long it has been silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    pub(super) pid: Option<i32>,
    pub(super) state: State,
    pub(super) lasted: Duration,
}

/// The state of a silent daemon's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A signal or a debugger has stopped it.
    Stopped,
    /// The process runs or sleeps, but does not answer. The letter is its state in `/proc/PID/stat`.
    Busy(char),
    /// The process answers other calls, but not this one.
    BusyWithThis,
    /// Not known, because the daemon listens on TCP or this process cannot see the daemon's process.
    Unknown,
}

impl State {
    /// The state of the process, as the kernel shows it.
    pub(super) fn of(pid: Option<i32>) -> State {
        let stat = pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok());
        match stat.as_deref().and_then(letter) {
            Some('T' | 't') => State::Stopped,
            Some(letter) => State::Busy(letter),
            None => State::Unknown,
        }
    }
}

/// The letter for the process's state in `/proc/PID/stat`. The letter follows the command's name, which may
/// contain any characters and ends with the last parenthesis.
fn letter(stat: &str) -> Option<char> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.trim_start().chars().next()
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lasted = short_time(u64::try_from(self.lasted.as_nanos()).unwrap_or(u64::MAX));
        if let Some(pid) = self.pid {
            write!(f, "(process {pid}) ")?;
        }
        match self.state {
            State::Stopped => write!(
                f,
                "is stopped, by a signal or a debugger: 'kill -CONT {}' lets it go on",
                self.pid.unwrap_or_default()
            ),
            State::Busy(letter) => write!(
                f,
                "has not answered for {lasted}: it is busy (state {letter}); try again, or see \
                 its log"
            ),
            State::BusyWithThis => write!(
                f,
                "has not answered this request for {lasted}, though it answers other requests: a disk's \
                 shard is busy or hangs; 'dashpot doctor' and the daemon's log may say why"
            ),
            State::Unknown => write!(
                f,
                "has not answered for {lasted}: it is busy or stopped, or another program listens \
                 there"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Silence, State, Wait, letter};
    use std::time::Duration;

    #[test]
    fn the_state_is_behind_the_command() {
        assert_eq!(letter("7 (dashpot) S 1 7 7 0"), Some('S'));
        assert_eq!(letter("7 (a) R (b)) T 1"), Some('T'));
        assert_eq!(letter("nothing"), None);
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(matches!(State::of(Some(own)), State::Busy(_)));
        assert_eq!(State::of(None), State::Unknown);
    }

    #[test]
    fn a_call_may_last_as_long_as_it_says() {
        let second = Duration::from_secs(1);
        assert_eq!(Wait::Within(3 * second).left(second), 2 * second);
        assert_eq!(Wait::Within(second).left(3 * second), Duration::ZERO);
        assert_eq!(Wait::Long.left(1_000_000 * second), Duration::MAX);
    }

    #[test]
    fn a_stopped_daemon_is_named_with_its_remedy() {
        let silence = Silence {
            pid: Some(7),
            state: State::Stopped,
            lasted: Duration::from_secs(5),
        };
        let said = silence.to_string();
        assert!(said.starts_with("(process 7) is stopped"), "{said}");
        assert!(said.contains("'kill -CONT 7'"), "{said}");
    }
}
