//! When a report looks: at multiples of its interval after the first look, on the daemon's clock,
//! so that neither the looks nor the reports drift.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::client::Client;

/// The looks of one report.
pub(crate) struct Pace<'a> {
    client: &'a Client,
    interrupt: Signal,
    interval_ns: u64,
    /// Looks to come, if not until Ctrl-C.
    left: Option<u64>,
    /// The daemon's time of the next look.
    next_ns: u64,
    interrupted: bool,
}

impl<'a> Pace<'a> {
    /// Looks that begin at the daemon's time `start_ns`. Ctrl-C ends them, not the program.
    pub(crate) fn new(
        client: &'a Client,
        start_ns: u64,
        interval_ns: u64,
        count: Option<u64>,
    ) -> anyhow::Result<Pace<'a>> {
        Ok(Pace {
            client,
            interrupt: client.block_on(async { signal(SignalKind::interrupt()) })?,
            interval_ns,
            left: count,
            next_ns: start_ns.saturating_add(interval_ns),
            interrupted: false,
        })
    }

    /// Whether the look that was waited for last is the last one.
    pub(crate) fn is_over(&self) -> bool {
        self.interrupted || self.left == Some(0)
    }

    /// Waits for the next look; it is now `now_ns` or later at the daemon. `false`: there is none.
    /// Ctrl-C brings the last one forward.
    pub(crate) fn wait(&mut self, now_ns: u64) -> bool {
        if self.is_over() {
            return false;
        }
        self.left = self.left.map(|left| left - 1);
        let rest = Duration::from_nanos(self.next_ns.saturating_sub(now_ns));
        self.interrupted = self.client.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(rest) => false,
                _ = self.interrupt.recv() => true,
            }
        });
        self.next_ns = self.next_ns.saturating_add(self.interval_ns);
        true
    }
}
