//! Decodes the records of one kind of event. The event may be of any group.

use super::{events, syncs, tasks};
use crate::record::Entry;

/// The decoder of an event.
#[derive(Debug)]
pub(crate) enum Decoder {
    /// A decoder for an event of the block layer.
    Block(events::Decoder),
    /// A decoder for an event of tasks.
    Task(tasks::Decoder),
    /// A decoder for an event of calls that sync.
    Sync(syncs::Decoder),
}

impl Decoder {
    /// Reads a record; `None` if the record is too short.
    pub(crate) fn read(&self, at_ns: u64, record: &[u8]) -> Option<Entry> {
        match self {
            Decoder::Block(decoder) => decoder.read(at_ns, record).map(Entry::Block),
            Decoder::Sync(decoder) => decoder.read(at_ns, record).map(Entry::Sync),
            Decoder::Task(decoder) => decoder.read(record).map(|event| Entry::Task(at_ns, event)),
        }
    }
}
