//! The memory that the statistics of the page ask, where no daemon is: finished I/Os of the kernel's disks, of a
//! simulation, or of a recording.

use std::ops::Range;

use dashpot_api::{Clock, Source};
use dashpot_observe::{Dimension, FinishedIo, Knows, Layer};

/// A memory of finished I/Os, on one clock. Only seconds that are over are asked for.
pub trait Memory: Send + Sync {
    /// The source whose I/Os it has.
    fn source(&self) -> Source;

    /// The facts that it knows about an I/O.
    fn knows(&self) -> Knows;

    /// Its clock: all I/Os that ended before its present time are in the memory.
    fn clock(&self) -> Clock;

    /// The values of a dimension that it has seen; empty if they are too many to list.
    fn values(&self, dimension: Dimension) -> Vec<String>;

    /// The first second of which no I/O was forgotten.
    fn since(&self) -> u64;

    /// Calls for each I/O that is wanted. Returns the first second of which none was forgotten.
    fn each(&self, wanted: &Wanted, look: &mut dyn FnMut(&FinishedIo)) -> anyhow::Result<u64>;

    /// The numbers of I/Os or events that were lost, by second.
    fn lost(&self, seconds: &Range<u64>) -> Vec<(u64, u64)>;
}

/// The I/Os that a question looks at.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Their layer.
    pub layer: Layer,
    /// The seconds in which they ended.
    pub seconds: Range<u64>,
}
