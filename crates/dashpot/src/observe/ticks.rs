//! Intervals on this machine's monotonic clock: they end at multiples of their length after the
//! beginning, and signals end the last one early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::report::in_flight::Mention;

/// The intervals of one report.
pub(crate) struct Ticks {
    stopped: Arc<AtomicBool>,
    interval_ns: u64,
    /// Intervals to come, if not until a signal.
    left: Option<u64>,
    /// The end of the present interval.
    pub(crate) end_ns: u64,
}

impl Ticks {
    /// From now on, signals end the intervals and not the program: something in the kernel is to be
    /// put away first, and a report that has begun is worth its end.
    pub(crate) fn new(interval_ns: u64, count: Option<u64>) -> anyhow::Result<Ticks> {
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&stopped))?;
        }
        Ok(Ticks {
            stopped,
            interval_ns,
            left: count,
            end_ns: now_ns(),
        })
    }

    /// Begins anew: what took time before the first interval is not in it.
    pub(crate) fn restart(&mut self) {
        self.end_ns = now_ns();
    }

    /// What ends the present interval, and all that follow, when it is set.
    pub(crate) fn stopper(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopped)
    }

    /// Whether no interval comes after the present one.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopped() || self.left == Some(0)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether the present interval has ended, or was ended.
    pub(crate) fn is_due(&self) -> bool {
        self.is_stopped() || now_ns() >= self.end_ns
    }

    /// Goes on to the next interval, unless there is none.
    pub(crate) fn begin(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        self.left = self.left.map(|left| left - 1);
        self.end_ns = self.end_ns.saturating_add(self.interval_ns);
        true
    }

    /// Makes the present interval as long as it has become by now, in whole intervals.
    pub(crate) fn catch_up(&mut self) {
        let missed = now_ns().saturating_sub(self.end_ns) / self.interval_ns.max(1);
        let missed = missed.min(self.left.unwrap_or(u64::MAX));
        self.left = self.left.map(|left| left - missed);
        self.end_ns += missed * self.interval_ns;
    }

    /// Sleeps for a moment, but not beyond the end of the interval.
    pub(crate) fn sleep(&self) {
        let rest = Duration::from_nanos(self.end_ns.saturating_sub(now_ns()));
        thread::sleep(rest.min(MOMENT));
    }

    pub(crate) fn mention(&self) -> Mention {
        match self.is_over() {
            true => Mention::All,
            false => Mention::WholeInterval,
        }
    }
}

/// `CLOCK_MONOTONIC`, which the kernel stamps its events by.
pub(crate) fn now_ns() -> u64 {
    dashpot_export::now().as_nanos()
}

/// How long a signal may have to wait, and events in the kernel's buffers.
pub(super) const MOMENT: Duration = Duration::from_millis(50);
