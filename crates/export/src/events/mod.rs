//! Carries finished zios from the shards to the reader.
//!
//! Each shard has a ring. Once per pass, the shard's [`Recorder`] puts the finished zios into the ring. One
//! [`EventReader`] empties all rings. A shard never waits for the reader. When its ring is full, the shard
//! drops events, and counts the drops by device and second ([`Drops`]).
//!
//! The names of clients travel in the same stream as the events. Each name comes before the first event of
//! its client, because ids are reused. While a name waits for room in the ring, the recorder drops all
//! events, so that none is attributed to the previous client with the same id.

mod bell;
mod drops;
mod reader;
mod record;
mod recorder;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rtrb::RingBuffer;

pub use bell::Bell;
pub use drops::Drops;
pub use reader::EventReader;
pub use record::{DeviceId, EventRecord, FinishedZio};
pub(crate) use recorder::{DeviceIds, Recorder};

/// Makes a ring of `capacity` records for each shard, and the reader of all rings. Each element of `shards`
/// holds the ids of one shard's devices.
pub(crate) fn rings(
    capacity: usize,
    shards: impl Iterator<Item = DeviceIds>,
) -> (Vec<Recorder>, EventReader) {
    let bell = Arc::new(Bell::default());
    let ring = |devices| {
        let (producer, consumer) = RingBuffer::new(capacity);
        (
            Recorder::new(producer, devices, Arc::clone(&bell)),
            consumer,
        )
    };
    let (recorders, consumers) = shards.map(ring).unzip();
    (recorders, EventReader::new(consumers, bell))
}

/// How many records a ring holds. The ring takes 6 MiB. At a million events per second, it fills up in 65 ms.
pub(crate) const RING: usize = 1 << 16;
