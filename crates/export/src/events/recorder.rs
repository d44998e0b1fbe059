//! The writing end of a shard's ring.

use std::sync::Arc;

use dashpot_engine::{ClientId, Device, Event};
use rtrb::Producer;
use rtrb::chunks::ChunkError;

use super::bell::Bell;
use super::drops::Drops;
use super::record::{DeviceId, EventRecord, FinishedZio};

/// Puts the events of a shard into its ring.
pub(crate) struct Recorder {
    ring: Producer<EventRecord>,
    devices: DeviceIds,
    /// Names that wait for room in the ring. If a client id of a device gets a new name meanwhile, the new
    /// name replaces the old one.
    waiting: Vec<(DeviceId, ClientId, Box<str>)>,
    drops: Drops,
    bell: Arc<Bell>,
}

/// The ids of a shard's devices. Events of a device without an id are discarded.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceIds {
    /// For each disk, in the order of the engine's disks: its id, and whether its zios are a program's calls.
    /// The prober's disk is not in this list.
    disks: Vec<(DeviceId, bool)>,
    volumes: Vec<DeviceId>,
    /// The names of the clients that exist from the start. For each disk of a pool, these clients are the
    /// pool and its volumes.
    names: Vec<(DeviceId, ClientId, Box<str>)>,
}

impl DeviceIds {
    /// Adds the id of the engine's next disk.
    pub(crate) fn push_disk(&mut self, id: DeviceId, has_calls: bool) {
        self.disks.push((id, has_calls));
    }

    /// Adds the id of the engine's next volume.
    pub(crate) fn push_volume(&mut self, id: DeviceId) {
        self.volumes.push(id);
    }

    /// Adds the name of a client that exists from the start.
    pub(crate) fn push_name(&mut self, device: Device, client: ClientId, name: &str) {
        let named = self.of(device).map(|device| (device, client, name.into()));
        self.names.extend(named);
    }

    fn of(&self, device: Device) -> Option<DeviceId> {
        self.find(device).map(|(id, _)| id)
    }

    /// The id of a device, and whether its zios are the calls of a program.
    #[inline]
    fn find(&self, device: Device) -> Option<(DeviceId, bool)> {
        match device {
            Device::Disk(disk) => self.disks.get(disk.0 as usize).copied(),
            Device::Volume(volume) => {
                let id = self.volumes.get(volume.0 as usize).copied();
                id.map(|id| (id, false))
            }
        }
    }

    #[inline]
    fn finished(&self, event: &Event) -> Option<FinishedZio> {
        let (device, has_calls) = self.find(event.device)?;
        let zio = FinishedZio::of(event, device);
        Some(if has_calls { zio.at_calls() } else { zio })
    }
}

impl Recorder {
    pub(super) fn new(
        ring: Producer<EventRecord>,
        mut devices: DeviceIds,
        bell: Arc<Bell>,
    ) -> Recorder {
        Recorder {
            ring,
            waiting: std::mem::take(&mut devices.names),
            devices,
            drops: Drops::default(),
            bell,
        }
    }

    /// Puts the events of a pass into the ring, and drops those that do not fit. Takes no lock. Allocates
    /// memory only for the count of drops in a new second.
    #[inline]
    pub(crate) fn record(&mut self, events: impl ExactSizeIterator<Item = Event>) {
        if events.len() > 0 {
            self.push(events);
        }
    }

    fn push(&mut self, events: impl ExactSizeIterator<Item = Event>) {
        self.push_names();
        let room = if self.waiting.is_empty() {
            events.len()
        } else {
            0
        };
        let devices = &self.devices;
        let mut zios = events.filter_map(|event| devices.finished(&event));
        let chunk = match self.ring.write_chunk_uninit(room) {
            Err(ChunkError::TooFewSlots(left)) => self.ring.write_chunk_uninit(left),
            chunk => chunk,
        };
        let told = chunk.map(|chunk| chunk.fill_from_iter(zios.by_ref().map(EventRecord::Zio)));
        let mut any = told.is_ok_and(|told| told > 0);
        for zio in zios {
            any = true;
            self.drops
                .add(zio.device, zio.ended().as_nanos() / SECOND_NS);
        }
        // The prober's events do not wake the reader.
        if any {
            let capacity = self.ring.buffer().capacity();
            let fills_up = || self.ring.slots() < capacity - capacity / FILLS_UP;
            self.bell.ring(fills_up);
        }
    }

    /// Records that a client's id stands for this name from here on.
    pub(crate) fn join(&mut self, device: Device, client: ClientId, name: &str) {
        let Some(device) = self.devices.of(device) else {
            return;
        };
        self.waiting
            .retain(|(of, id, _)| (*of, *id) != (device, client));
        self.waiting.push((device, client, name.into()));
        self.push_names();
    }

    fn push_names(&mut self) {
        if self.waiting.is_empty() || self.ring.slots() < self.waiting.len() {
            return;
        }
        for (device, client, name) in self.waiting.drain(..) {
            // The room was checked above, so this push does not fail.
            let _ = self.ring.push(EventRecord::Joined {
                device,
                client,
                name,
            });
        }
    }

    /// The counts of the events that were dropped so far.
    pub(crate) fn drops(&self) -> Drops {
        self.drops.clone()
    }
}

/// The shard wakes a napping reader when a quarter of the ring is full. The shard wakes the reader this
/// early, because on a busy host the reader may need a long time to start running.
const FILLS_UP: usize = 4;
const SECOND_NS: u64 = 1_000_000_000;
