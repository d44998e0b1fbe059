//! The common interface of sources.

use dashpot_observe::{FinishedIo, Seen};

/// Watches devices, one interval after another. The caller gives a source its question and its schedule
/// when it makes the source.
pub trait Source {
    /// The I/O of the devices from their start until the first interval; `None` if the source does not know
    /// that I/O.
    fn since_start(&mut self) -> anyhow::Result<Option<Seen>> {
        Ok(None)
    }

    /// The I/Os that were in flight at the last reading; `None` if they are not known, because a daemon does not
    /// answer. The list is empty unless the source returns I/Os one by one and knows which are in flight.
    fn in_flight(&mut self) -> Option<Vec<FinishedIo>> {
        Some(Vec::new())
    }

    /// How many sync calls on unknown devices were in flight at the last [`Source::in_flight`]; `None` if the source
    /// watches no sync calls.
    fn unplaced_in_flight(&self) -> Option<u64> {
        None
    }

    /// How many I/Os in flight began before the watch, so that nothing else is known of them; `None` if the kernel
    /// does not count them.
    fn earlier(&self) -> Option<u64> {
        Some(0)
    }

    /// Puts the times of I/Os on the axis of another source of this host. On that axis, a moment in
    /// nanoseconds since 1970 is its time on `CLOCK_MONOTONIC` plus `ahead_ns`. Returns by how many
    /// nanoseconds the times may be off that axis, which is 0 unless the source has another clock.
    fn put_on(&mut self, _ahead_ns: u64) -> u64 {
        0
    }

    /// Whether I/Os are left that the last reading did not return, so that the next reading need not wait.
    fn is_behind(&self) -> bool {
        false
    }

    /// Ends the watch as a signal does: the source still returns the I/Os that ended before. A source that
    /// does not return I/Os one by one has nothing to return.
    fn end(&mut self) {}

    /// Waits until the next interval has ended. `None` after the last interval, or if Ctrl-C has
    /// ended the watch.
    fn next(&mut self) -> anyhow::Result<Option<Seen>>;
}
