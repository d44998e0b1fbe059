//! Watching devices of a daemon or of the kernel: one interval after another until the last, or Ctrl-C.

use dashpot_engine::Duration;
use dashpot_observe::{DeviceInterval, Length, Mention, Question, Span, elapsed_of_all};

use super::daemon::DaemonWatch;
use super::kernel::KernelWatch;
use super::target::Target;

/// Devices being watched.
pub(crate) enum Watch<'a> {
    Daemon(DaemonWatch<'a>),
    Kernel(Box<KernelWatch>),
}

impl<'a> Watch<'a> {
    /// Begins to watch, for `count` intervals or until Ctrl-C.
    pub(crate) fn new(
        target: &'a Target,
        question: &Question,
        interval: Duration,
        count: Option<u64>,
    ) -> anyhow::Result<Watch<'a>> {
        Ok(match target {
            Target::Daemon(client, names) => {
                Watch::Daemon(DaemonWatch::new(client, names, question, interval, count)?)
            }
            Target::Kernel(devices) => {
                let watch = KernelWatch::new(devices, question, interval, count)?;
                Watch::Kernel(Box::new(watch))
            }
        })
    }

    /// What a daemon's disks have done since they are served; of the kernel's nothing is known
    /// from before the watch.
    pub(crate) fn since_start(&self) -> anyhow::Result<Vec<DeviceInterval>> {
        match self {
            Watch::Daemon(watch) => watch.since_start(),
            Watch::Kernel(_) => Ok(Vec::new()),
        }
    }

    /// Waits until the next interval has ended; `None` if the last one has. Every device that is
    /// watched is in it, in the same order each time, but for those that have vanished.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Vec<DeviceInterval>>> {
        match self {
            Watch::Daemon(watch) => watch.next(),
            Watch::Kernel(watch) => watch.next(),
        }
    }

    /// The interval that ended last, on the clock of whoever is watched.
    pub(crate) fn span(&self) -> Span {
        match self {
            Watch::Daemon(watch) => watch.span(),
            Watch::Kernel(watch) => watch.span(),
        }
    }

    /// How long the interval that ended last was for its devices.
    pub(crate) fn length(&self, intervals: &[DeviceInterval]) -> Length {
        let length = self.span().length();
        match intervals.is_empty() {
            true => length,
            false => length.seen(elapsed_of_all(intervals)),
        }
    }

    /// How long ago the interval that ended last has ended.
    pub(crate) fn age(&self) -> std::time::Duration {
        match self {
            // It is told as soon as it has ended.
            Watch::Daemon(_) => std::time::Duration::ZERO,
            Watch::Kernel(watch) => watch.age(),
        }
    }

    /// Of which I/Os in flight the report of the interval that ended last speaks.
    pub(crate) fn mention(&self) -> Mention {
        self.span().mention()
    }

    /// Devices that are gone.
    pub(crate) fn gone(&self) -> &[String] {
        match self {
            Watch::Daemon(_) => &[],
            Watch::Kernel(watch) => watch.gone(),
        }
    }

    /// Devices that have vanished in the interval that ended last.
    pub(crate) fn vanished(&self) -> &[String] {
        match self {
            Watch::Daemon(_) => &[],
            Watch::Kernel(watch) => watch.vanished(),
        }
    }

    /// Events that the interval that ended last misses, because there was no room for them.
    pub(crate) fn lost(&self) -> u64 {
        match self {
            Watch::Daemon(watch) => watch.lost(),
            Watch::Kernel(watch) => watch.lost(),
        }
    }

    /// Completions in the interval that ended last whose beginning was not seen, because it was lost
    /// or came before the watch. A daemon knows the beginning of all.
    pub(crate) fn unmatched(&self) -> Option<u64> {
        match self {
            Watch::Daemon(_) => None,
            Watch::Kernel(watch) => Some(watch.unmatched()),
        }
    }
}
