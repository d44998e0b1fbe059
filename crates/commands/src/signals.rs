//! Signals that end a program in an orderly way, or that the program passes on to its command.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;
use std::{fs, io};

use rustix::process::Signal as UnixSignal;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::parent::Parent;

/// The signals by which people and service managers end a program.
pub(crate) const ENDS: [UnixSignal; 4] = [
    UnixSignal::HUP,
    UnixSignal::INT,
    UnixSignal::QUIT,
    UnixSignal::TERM,
];

/// The user signals. These signals, too, end a program that does not catch them.
pub(crate) const USERS: [UnixSignal; 2] = [UnixSignal::USR1, UnixSignal::USR2];

/// The exit status that a shell gives to a program that SIGINT has ended.
pub const INTERRUPTED: u8 = 130;

/// A flag that SIGINT or SIGTERM sets, for work that still prints its figures when it is stopped.
pub fn stop_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // A second signal ends the program, as if dashpot did not catch it.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stopped))?;
        signal_hook::flag::register(signal, Arc::clone(&stopped))?;
    }
    Ok(stopped)
}

/// Signals that are caught for as long as the program lives.
pub(crate) struct Signals {
    caught: Vec<(UnixSignal, Signal)>,
    parent: Option<Parent>,
}

impl Signals {
    /// Begins to catch `wanted`, except signals that this program was started to ignore, for example by
    /// `nohup`. Call this function within a runtime.
    pub(crate) fn catch(wanted: impl IntoIterator<Item = UnixSignal>) -> io::Result<Signals> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let wanted = wanted.into_iter().filter(|one| !ignores(&status, *one));
        let catch = |one: UnixSignal| Ok((one, signal(SignalKind::from_raw(one.as_raw()))?));
        let caught = wanted.map(catch).collect::<io::Result<_>>()?;
        Ok(Signals {
            caught,
            parent: None,
        })
    }

    /// If `wanted`, the end of the parent counts as a signal, too.
    pub(crate) fn with_parent(mut self, wanted: bool) -> anyhow::Result<Signals> {
        self.parent = wanted.then(Parent::watch).transpose()?;
        Ok(self)
    }

    /// The next signal that comes, or that has come since the last call.
    pub(crate) async fn next(&mut self) -> UnixSignal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.caught {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            match &mut self.parent {
                Some(parent) => parent.poll_signal(context),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Waits for a signal that ends the program.
    pub(crate) async fn end(&mut self) {
        while USERS.contains(&self.next().await) {}
    }
}

/// Whether a process with this `/proc/PID/status` ignores a signal.
fn ignores(status: &str, signal: UnixSignal) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::{UnixSignal, ignores};

    #[test]
    fn what_nohup_ignores_is_known() {
        let status = "Name:\tdashpot\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, UnixSignal::HUP));
        assert!(!ignores(status, UnixSignal::INT));
        assert!(!ignores("", UnixSignal::HUP));
    }
}
