//! The writing end of a ring: the shard's.

use std::sync::Arc;

use dashpot_engine::{ClientId, Device, DiskId, Event};
use rtrb::Producer;
use rtrb::chunks::ChunkError;

use super::bell::Bell;
use super::drops::Drops;
use super::record::{EventRecord, FinishedZio};

/// Puts the events of a shard into its ring.
pub(crate) struct Recorder {
    ring: Producer<EventRecord>,
    /// By [`DiskId`]: the disk's index in the configuration. The prober's disk is not in it.
    disks: Vec<u16>,
    /// Names that wait for room in the ring; for each client of a disk, the last one.
    waiting: Vec<(u16, ClientId, Box<str>)>,
    drops: Drops,
    bell: Arc<Bell>,
}

impl Recorder {
    pub(super) fn new(ring: Producer<EventRecord>, disks: Vec<u16>, bell: Arc<Bell>) -> Recorder {
        Recorder {
            ring,
            disks,
            waiting: Vec::new(),
            drops: Drops::default(),
            bell,
        }
    }

    /// Puts the events of a pass into the ring, and drops those that find no room. Takes no lock.
    /// Allocates only to count the drops of a new second.
    #[inline]
    pub(crate) fn record(&mut self, events: impl ExactSizeIterator<Item = Event>) {
        if events.len() > 0 {
            self.push(events);
        }
    }

    fn push(&mut self, events: impl ExactSizeIterator<Item = Event>) {
        self.push_names();
        let room = match self.waiting.is_empty() {
            true => events.len(),
            false => 0,
        };
        let disks = &self.disks;
        let mut zios = events.filter_map(|event| finished(&event, disks));
        let chunk = match self.ring.write_chunk_uninit(room) {
            Err(ChunkError::TooFewSlots(left)) => self.ring.write_chunk_uninit(left),
            chunk => chunk,
        };
        let told = chunk.map(|chunk| chunk.fill_from_iter(zios.by_ref().map(EventRecord::Zio)));
        let mut any = told.is_ok_and(|told| told > 0);
        for zio in zios {
            any = true;
            self.drops.add(zio.disk, zio.ended().as_nanos() / SECOND_NS);
        }
        // The prober's events do not wake the reader.
        if any {
            let capacity = self.ring.buffer().capacity();
            let fills_up = || self.ring.slots() < capacity - capacity / FILLS_UP;
            self.bell.ring(fills_up);
        }
    }

    /// Records that a client's id stands for another name from here on.
    pub(crate) fn join(&mut self, disk: DiskId, client: ClientId, name: &str) {
        let Some(disk) = self.disks.get(disk.0 as usize).copied() else {
            return;
        };
        self.waiting
            .retain(|(of, id, _)| (*of, *id) != (disk, client));
        self.waiting.push((disk, client, name.into()));
        self.push_names();
    }

    fn push_names(&mut self) {
        if self.waiting.is_empty() || self.ring.slots() < self.waiting.len() {
            return;
        }
        for (disk, client, name) in self.waiting.drain(..) {
            // The ring has room for all of these names.
            let _ = self.ring.push(EventRecord::Joined { disk, client, name });
        }
    }

    /// The events that were dropped so far.
    pub(crate) fn drops(&self) -> Drops {
        self.drops.clone()
    }
}

#[inline]
fn finished(event: &Event, disks: &[u16]) -> Option<FinishedZio> {
    match event.device {
        Device::Disk(disk) => {
            let index = disks.get(disk.0 as usize)?;
            Some(FinishedZio::of(event, *index))
        }
        Device::Volume(_) => None,
    }
}

/// The shard wakes a napping reader when one part in this many of the ring is full. On a busy host
/// it may be long before the reader runs.
const FILLS_UP: usize = 4;
const SECOND_NS: u64 = 1_000_000_000;
