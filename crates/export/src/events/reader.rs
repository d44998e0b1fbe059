//! The reading end of all rings.

use std::sync::Arc;

use rtrb::Consumer;

use super::bell::Bell;
use super::record::EventRecord;

/// Reads the events of all shards.
pub struct EventReader {
    rings: Vec<Consumer<EventRecord>>,
    bell: Arc<Bell>,
}

impl EventReader {
    pub(super) fn new(rings: Vec<Consumer<EventRecord>>, bell: Arc<Bell>) -> EventReader {
        EventReader { rings, bell }
    }

    /// The bell that wakes a thread that waits for events.
    pub fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    /// Whether there is nothing to read now.
    pub fn is_empty(&self) -> bool {
        self.rings.iter().all(Consumer::is_empty)
    }

    /// Calls `take` for each record that is in the rings now, shard by shard, and in order within each shard.
    /// Returns whether there were any records.
    pub fn drain(&mut self, mut take: impl FnMut(&EventRecord)) -> bool {
        let mut any = false;
        for ring in &mut self.rings {
            // Records that arrive during this call are left for the next call.
            let mut left = ring.slots();
            any |= left > 0;
            // The reader frees the records in small parts, because freeing a record reads it again, and a
            // small part is then still in the processor's cache.
            while let Ok(chunk) = ring.read_chunk(left.min(PART))
                && left > 0
            {
                left -= chunk.len();
                let (first, second) = chunk.as_slices();
                first.iter().chain(second).for_each(&mut take);
                chunk.commit_all();
            }
        }
        any
    }
}

/// How many records the reader takes before it frees their space in the ring.
const PART: usize = 128;
