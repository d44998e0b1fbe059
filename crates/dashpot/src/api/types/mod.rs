//! What the API says and is told: one set of types for the server, the client and the document.
//!
//! Times are integers of nanoseconds (`_ns`), sizes integers of bytes (`_bytes`). Ages count back
//! from the moment `at_ns` of the daemon's monotonic clock.

mod change;
mod crash;
mod disk;
mod event;
mod export;
mod host;
mod latency;
mod memory;
mod rule;
mod rule_latency;
mod second;
mod shard;
mod wide;

pub(crate) use change::{
    Cleared, Error, Failure, Inject, Resumed, RulesReset, Suspend, Suspended, Update, VersionInfo,
};
#[cfg(test)]
pub(crate) use crash::WriteSum;
pub(crate) use crash::{ClientLoss, Crash, Crashed, KeepWord, LostWrite, ThenWord};
pub(crate) use disk::{Disk, InFlightZio, Status, View, wait_word};
pub(crate) use event::{FinishedZio, FinishedZios, ZioWaits};
pub(crate) use export::{Clock, Export, STARTED_AGAIN};
pub(crate) use host::Host;
pub(crate) use latency::{Bucket, By, DiskLatency, LatencyHistogram, OpLatency};
pub(crate) use memory::{ClientMemory, Memory};
pub(crate) use rule::RuleCounters;
pub(crate) use rule::{Rule, RuleEffect, RuleState, op_words};
pub(crate) use rule_latency::RuleLatency;
pub(crate) use second::{Second, SecondLatency, Seconds};
pub(crate) use shard::{Load, Shard, Stops};
#[cfg(test)]
pub(crate) use shard::{Probe, StopTotals};
pub(crate) use wide::Wide;
