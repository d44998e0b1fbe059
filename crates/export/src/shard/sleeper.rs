//! Waits for deadlines as exactly as the host allows.
//!
//! Waking a halted CPU takes 25 to 115 µs, regardless of the system call in which the thread sleeps. So the
//! sleeper wakes early, by as much as its last wake-ups took, and spins for the rest of the time: it polls
//! the sockets without sleeping until the deadline. Spinning takes at most a fixed share of a core. If a CPU
//! quota is in force, the sleeper does not spin, because spinning would use up the quota, and then the kernel
//! would stop the daemon.

use std::io;
use std::os::fd::BorrowedFd;

use dashpot_engine::{Duration, Instant};
use dashpot_sys::wait_for_events;
use rustix::event::epoll;

use crate::clock;

#[derive(Debug)]
pub(super) struct Sleeper {
    spins: bool,
    /// How long the last wake-ups took, as an estimate for the next.
    lead: Duration,
    budget: SpinBudget,
}

impl Sleeper {
    pub(super) fn new(spins: bool) -> Sleeper {
        Sleeper {
            spins,
            lead: LEAD_MIN,
            budget: SpinBudget::default(),
        }
    }

    /// Waits for events, at most until `deadline` or `beat`. Spins only for a deadline, and calls `prepare`
    /// before spinning; `prepare` must return by the deadline. The last pass ended at `from`. Returns the
    /// moment by which the wait should have ended even if no event came. If the wait ended later, the host
    /// kept the shard from running in between.
    pub(super) fn wait(
        &mut self,
        epoll: BorrowedFd<'_>,
        events: &mut Vec<epoll::Event>,
        from: Instant,
        deadline: Option<Instant>,
        beat: Option<Instant>,
        prepare: impl FnOnce(Instant),
    ) -> io::Result<Option<Instant>> {
        let Some(until) = deadline.into_iter().chain(beat).min() else {
            poll(epoll, events, None)?;
            return Ok(None);
        };
        let is_beat = deadline.is_none_or(|deadline| until < deadline);
        // Without a deadline, the wait may end late by the time since `from`.
        let now = deadline.map_or(from, |_| clock::now());
        if is_beat || until <= now || !self.spins || !self.budget.has_left(now) {
            poll(epoll, events, Some(until.since(now)))?;
            return Ok(Some(until.max(from)));
        }
        let sleep = until.since(now + self.lead);
        if sleep > Duration::ZERO {
            poll(epoll, events, Some(sleep))?;
            let (woke, meant) = (clock::now(), now + sleep);
            if events.is_empty() {
                self.learn(woke.since(meant));
            }
            if !events.is_empty() || woke >= until {
                return Ok(Some(meant));
            }
        }
        self.spin(epoll, events, until, prepare).map(Some)
    }

    /// Polls the sockets until an event or the deadline comes. Returns the moment before the last poll. If
    /// that poll took long, the host has kept the shard from running since then.
    fn spin(
        &mut self,
        epoll: BorrowedFd<'_>,
        events: &mut Vec<epoll::Event>,
        deadline: Instant,
        prepare: impl FnOnce(Instant),
    ) -> io::Result<Instant> {
        let begun = clock::now();
        prepare(deadline);
        let (mut looked, mut now) = (begun, clock::now());
        while now < deadline && events.is_empty() {
            poll(epoll, events, Some(Duration::ZERO))?;
            looked = now;
            now = clock::now();
        }
        self.budget.spend(now, now.since(begun));
        Ok(looked)
    }

    /// Updates the estimate of how long a wake-up takes. The estimate rises quickly and falls slowly, because
    /// waking late is worse than waking early. A single stop by the host changes the estimate only a little.
    fn learn(&mut self, overshoot: Duration) {
        let (seen, lead) = (overshoot.as_nanos(), self.lead.as_nanos());
        let next = match seen.min(LEAD_MAX.as_nanos()) {
            more if more > lead => lead + (more - lead) / 8,
            less => lead - (lead - less) / 32,
        };
        self.lead = Duration::from_nanos(next).max(LEAD_MIN);
    }
}

/// How much time of the current window the sleeper has spent spinning.
#[derive(Debug, Default)]
struct SpinBudget {
    window: Instant,
    spun: Duration,
}

impl SpinBudget {
    fn has_left(&mut self, now: Instant) -> bool {
        if now.since(self.window) >= WINDOW {
            self.window = now;
            self.spun = Duration::ZERO;
        }
        self.spun < SPIN_MAX
    }

    fn spend(&mut self, now: Instant, spun: Duration) {
        if now.since(self.window) < WINDOW {
            self.spun += spun;
        }
    }
}

fn poll(
    epoll: BorrowedFd<'_>,
    events: &mut Vec<epoll::Event>,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let timeout = timeout.map(clock::timespec);
    Ok(wait_for_events(epoll, events, timeout.as_ref())?)
}

/// In each window of this length, the sleeper spins for at most [`SPIN_MAX`].
const WINDOW: Duration = Duration::from_millis(100);
/// How long the sleeper may spin in each [`WINDOW`].
const SPIN_MAX: Duration = Duration::from_millis(25);
/// The sleeper wakes early by at least this time.
const LEAD_MIN: Duration = Duration::from_micros(10);
/// The sleeper wakes early by at most this time.
const LEAD_MAX: Duration = Duration::from_micros(250);

#[cfg(test)]
mod tests {
    use super::{LEAD_MAX, LEAD_MIN, SPIN_MAX, Sleeper, SpinBudget, WINDOW};
    use crate::clock;
    use dashpot_engine::{Duration, Instant};
    use rustix::event::epoll;
    use std::os::fd::AsFd;

    #[test]
    fn a_stop_between_the_end_of_a_pass_and_the_wait_is_the_hosts_doing() {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let ended = Instant::from_nanos(clock::now().as_nanos() - 5_000_000_000);
        let beat = ended + Duration::from_millis(20);
        let wait = |deadline| {
            Sleeper::new(true)
                .wait(
                    epoll.as_fd(),
                    &mut Vec::with_capacity(1),
                    ended,
                    deadline,
                    Some(beat),
                    |_| (),
                )
                .unwrap()
        };
        assert_eq!(wait(None), Some(beat));
        let overdue = Instant::from_nanos(ended.as_nanos() - 1);
        assert_eq!(
            wait(Some(overdue)),
            Some(ended),
            "the time before `ended` belongs to the last pass"
        );
    }

    #[test]
    fn the_lead_follows_the_cost_of_waking_within_its_bounds() {
        let mut sleeper = Sleeper::new(true);
        for _ in 0..100 {
            sleeper.learn(Duration::from_micros(80));
        }
        assert!(sleeper.lead > Duration::from_micros(75), "{}", sleeper.lead);
        for _ in 0..1_000 {
            sleeper.learn(Duration::from_millis(36));
        }
        assert!(sleeper.lead <= LEAD_MAX);
        for _ in 0..10_000 {
            sleeper.learn(Duration::ZERO);
        }
        assert_eq!(sleeper.lead, LEAD_MIN);
    }

    #[test]
    fn no_window_is_spun_for_more_than_its_share() {
        let mut budget = SpinBudget::default();
        let start = Instant::ZERO + WINDOW;
        assert!(budget.has_left(start));
        budget.spend(start, SPIN_MAX);
        assert!(!budget.has_left(start));
        assert!(budget.has_left(start + WINDOW));
    }
}
