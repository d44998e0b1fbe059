//! Signals that end a report, but not the program: dashpot must first clean up in the kernel and
//! complete the report.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{io, thread};

use dashpot_api::{Client, ClientError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use tokio::signal::unix::{Signal, SignalKind, signal};

const SIGNALS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Whether a signal has come. Threads check this flag from time to time.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Begins to catch the signals.
    pub fn new() -> io::Result<Stop> {
        let stopped = Arc::new(AtomicBool::new(false));
        for number in SIGNALS {
            signal_hook::flag::register(number, Arc::clone(&stopped))?;
        }
        Ok(Stop(stopped))
    }

    /// Has the same effect as a signal.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a signal, or [`set`](Stop::set), has asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps for `MOMENT`, or only until `at_ns` if that comes earlier. If `at_ns` has passed, sleeps for
    /// `MOMENT`, too.
    pub(crate) fn sleep_until(&self, at_ns: u64) {
        self.pause_until(at_ns, MOMENT);
    }

    /// Like [`Stop::sleep_until`], for a longer time than `MOMENT`, unless a signal comes.
    pub(crate) fn pause_until(&self, at_ns: u64, pause: Duration) {
        let mut left = pause;
        while !left.is_zero() && !self.is_set() {
            self.nap(at_ns, left.min(MOMENT));
            left = if now_ns() < at_ns {
                left.saturating_sub(MOMENT)
            } else {
                Duration::ZERO
            };
        }
    }

    fn nap(&self, at_ns: u64, longest: Duration) {
        let rest = Duration::from_nanos(at_ns.saturating_sub(now_ns()));
        thread::sleep(if rest.is_zero() {
            longest
        } else {
            rest.min(longest)
        });
    }
}

/// The signals, for reports that wait for a daemon.
pub(crate) struct Signals(Vec<Signal>);

impl Signals {
    /// Begins to catch the signals.
    pub(crate) fn new(client: &Client) -> io::Result<Signals> {
        let take = |number| signal(SignalKind::from_raw(number));
        let taken: io::Result<_> =
            client.block_on(async { SIGNALS.into_iter().map(take).collect() });
        Ok(Signals(taken?))
    }

    /// Waits for `rest`. Returns whether a signal has ended the wait. Fails at once if the daemon ends, so
    /// that a user who waits for an hour, or for Ctrl-C, learns of the daemon's end.
    pub(crate) fn wait(&mut self, client: &Client, rest: Duration) -> Result<bool, ClientError> {
        let signals = &mut self.0;
        client.block_on(async {
            tokio::select! {
                biased;
                () = poll_fn(|context| poll(signals, context)) => Ok(true),
                () = tokio::time::sleep(rest) => Ok(false),
                gone = client.until_gone() => Err(gone),
            }
        })
    }
}

/// Ready when a signal has come.
fn poll(signals: &mut [Signal], context: &mut Context<'_>) -> Poll<()> {
    let has_come = |signal: &mut Signal| signal.poll_recv(context).is_ready();
    if signals.iter_mut().any(has_come) {
        Poll::Ready(())
    } else {
        Poll::Pending
    }
}

/// `CLOCK_MONOTONIC`, the clock of the kernel's events.
pub fn now_ns() -> u64 {
    dashpot_export::now().as_nanos()
}

/// How long a signal, or events in the kernel's buffers, may have to wait until a thread looks for them.
pub(crate) const MOMENT: Duration = Duration::from_millis(50);
