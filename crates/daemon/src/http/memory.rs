//! The memory behind the page's statistics when no daemon runs: finished I/Os of the kernel's disks, of a
//! simulation, or of a recording.

use std::ops::Range;

use dashpot_api::{Clock, Source};
use dashpot_observe::{Dimension, FinishedIo, Knows, Layer};

/// A memory of finished I/Os, on one clock. Callers ask only for seconds that are over.
pub trait Memory: Send + Sync {
    /// The source of the I/Os.
    fn source(&self) -> Source;

    /// The facts that the source knows about an I/O of this layer; `None` if it has no such I/Os.
    fn knows(&self, layer: Layer) -> Option<Knows>;

    /// The clock of the I/Os: all I/Os that ended before the clock's present time are in the memory.
    fn clock(&self) -> Clock;

    /// The values of a dimension among all I/Os so far; empty if the values are too many to list.
    fn values(&self, dimension: Dimension) -> Vec<String>;

    /// The memory has all I/Os from this second on.
    fn since(&self) -> u64;

    /// Calls `look` for each wanted I/O. Returns the second from which on the memory had all I/Os.
    fn each(&self, wanted: &Wanted, look: &mut dyn FnMut(&FinishedIo)) -> anyhow::Result<u64>;

    /// The numbers of I/Os or events of a layer that were lost, by second.
    fn lost(&self, layer: Layer, seconds: &Range<u64>) -> Vec<(u64, u64)>;
}

/// The I/Os that a question looks at.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The layer of the I/Os.
    pub layer: Layer,
    /// The seconds in which the I/Os ended.
    pub seconds: Range<u64>,
    /// Whether the question is about single devices. Otherwise the I/Os of devices over others are not wanted, because
    /// they are also those of the devices beneath.
    pub names_devices: bool,
}
