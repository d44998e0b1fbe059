//! When a report looks: at multiples of its interval after the first look, on the daemon's clock,
//! so that neither the looks nor the reports drift.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::client::{Client, ClientError};

/// The looks of one report.
pub(crate) struct Pace<'a> {
    client: &'a Client,
    signals: Vec<Signal>,
    interval_ns: u64,
    /// Looks to come, if not until Ctrl-C.
    left: Option<u64>,
    /// The daemon's time of the next look.
    next_ns: u64,
    interrupted: bool,
}

impl<'a> Pace<'a> {
    /// Looks that begin at the daemon's time `start_ns`. Ctrl-C and its like end them, not the
    /// program: a report that has begun is worth its end.
    pub(crate) fn new(
        client: &'a Client,
        start_ns: u64,
        interval_ns: u64,
        count: Option<u64>,
    ) -> anyhow::Result<Pace<'a>> {
        Ok(Pace {
            client,
            signals: client.block_on(async { signals() })?,
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
    /// A signal brings the last one forward. An error if the daemon is gone meanwhile: who waits for
    /// an hour, or for Ctrl-C, is told at once.
    pub(crate) fn wait(&mut self, now_ns: u64) -> Result<bool, ClientError> {
        if self.is_over() {
            return Ok(false);
        }
        self.left = self.left.map(|left| left - 1);
        let rest = Duration::from_nanos(self.next_ns.saturating_sub(now_ns));
        let (client, signals) = (self.client, &mut self.signals);
        self.interrupted = client.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(rest) => Ok(false),
                () = poll_fn(|context| poll(signals, context)) => Ok(true),
                gone = client.until_gone() => Err(gone),
            }
        })?;
        self.next_ns = self.next_ns.saturating_add(self.interval_ns);
        Ok(true)
    }
}

/// Those that end the reports of the kernel's disks, too.
fn signals() -> io::Result<Vec<Signal>> {
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ];
    kinds.into_iter().map(signal).collect()
}

/// Ready when one of them has come.
fn poll(signals: &mut [Signal], context: &mut Context<'_>) -> Poll<()> {
    let has_come = |signal: &mut Signal| signal.poll_recv(context).is_ready();
    match signals.iter_mut().any(has_come) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    }
}
