//! The calls of this host's processes that sync files, as records.

use std::collections::HashMap;
use std::sync::Arc;

use dashpot_engine::Op;
use dashpot_export::complain_lines;
use dashpot_observe::{FinishedIo, IoWaits, Kind, Layer, Predicates, Thread, Who};
use dashpot_probe::{
    Comm, Device, FileId, Number, Owner, Storage, Sync, SyncCall, SyncTracer, devices_beneath,
};

use super::{Progress, Stream};
use crate::errno::errno_name;
use crate::priority;
use crate::signals::now_ns;

/// A stream of the calls that sync files.
pub(crate) struct SyncStream<'a> {
    tracer: SyncTracer,
    /// The conditions on the calls that count.
    predicates: Predicates,
    places: Places<'a>,
    /// How many calls on unknown devices were in flight at the last look.
    unplaced_in_flight: u64,
}

/// Finds the watched device on which a call is.
struct Places<'a> {
    devices: &'a [Device],
    /// The name under which calls on all other devices count; `None` if they do not count.
    others: Option<Arc<str>>,
    known: HashMap<Storage, Known>,
}

/// The place of a file system, as it was at a look.
struct Known {
    looked_ns: u64,
    place: CallDevice,
}

/// The place of a call.
#[derive(Clone)]
enum CallDevice {
    /// A watched device.
    On(Arc<str>),
    /// Other devices, or none.
    Elsewhere,
    Unknown,
}

impl<'a> SyncStream<'a> {
    /// A stream of the calls that begin from now on.
    pub(crate) fn new(
        devices: &'a [Device],
        others: Option<&str>,
        predicates: &Predicates,
    ) -> anyhow::Result<SyncStream<'a>> {
        let tracer = SyncTracer::start()?;
        priority::raise();
        complain_lines(NOTE);
        Ok(SyncStream {
            tracer,
            unplaced_in_flight: 0,
            predicates: predicates.clone(),
            places: Places {
                devices,
                others: others.map(Into::into),
                known: HashMap::new(),
            },
        })
    }
}

impl Stream for SyncStream<'_> {
    fn now_ns(&self) -> anyhow::Result<u64> {
        Ok(now_ns())
    }

    fn read(&mut self, ios: &mut Vec<FinishedIo>) -> anyhow::Result<Progress> {
        let mut ended = Vec::new();
        let progress = self
            .tracer
            .read(u64::MAX, |sync| ended.push(sync.clone()))?;
        let mut unplaced = 0;
        for sync in &ended {
            let Some(ended_ns) = sync.ended_ns else {
                continue;
            };
            let (io, is_unknown) = self.place(sync, ended_ns);
            ios.extend(io);
            unplaced += u64::from(is_unknown);
        }
        Ok(Progress {
            missed: progress.missing(),
            more: false,
            unplaced: Some(unplaced),
        })
    }

    fn in_flight(&mut self, now_ns: u64) -> Option<Vec<FinishedIo>> {
        let calls: Vec<Sync> = self.tracer.in_flight().cloned().collect();
        self.unplaced_in_flight = 0;
        let mut ios = Vec::new();
        for sync in &calls {
            let (io, is_unknown) = self.place(sync, now_ns.max(sync.began_ns));
            ios.extend(io);
            self.unplaced_in_flight += u64::from(is_unknown);
        }
        Some(ios)
    }

    fn unplaced_in_flight(&self) -> Option<u64> {
        Some(self.unplaced_in_flight)
    }
}

impl SyncStream<'_> {
    /// The record of a call that counts, and whether the call's device is unknown.
    fn place(&mut self, sync: &Sync, ended_ns: u64) -> (Option<FinishedIo>, bool) {
        let place = self.places.of(sync, ended_ns);
        let is_unknown = matches!(place, CallDevice::Unknown);
        let name = match place {
            CallDevice::On(name) => Some(name),
            CallDevice::Elsewhere | CallDevice::Unknown => self.places.others.clone(),
        };
        let is_asked = is_unknown && self.is_asked(sync, ended_ns);
        (name.map(|name| record(name, sync, ended_ns)), is_asked)
    }

    /// Whether a call on an unknown device would meet the conditions on at least one of the watched devices.
    fn is_asked(&self, sync: &Sync, ended_ns: u64) -> bool {
        let names = self.places.devices.iter().map(|device| &*device.name);
        let mut names = names.chain(self.places.others.as_deref());
        names.any(|name| self.predicates.select(&record(name.into(), sync, ended_ns)))
    }
}

impl Places<'_> {
    fn of(&mut self, sync: &Sync, now_ns: u64) -> CallDevice {
        let Some(FileId { storage, .. }) = sync.file else {
            return CallDevice::Unknown;
        };
        let known = self.known.get(&storage);
        if let Some(Known { looked_ns, place }) = known
            && now_ns < looked_ns.saturating_add(LOOK_NS)
        {
            return place.clone();
        }
        // When a file system has been unmounted, its last calls are where the earlier calls were.
        let last = known.map_or(CallDevice::Unknown, |known| known.place.clone());
        let place = match storage.devices() {
            Some(numbers) => self.look(numbers),
            None => last,
        };
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let known = Known {
            looked_ns: now_ns,
            place: place.clone(),
        };
        self.known.insert(storage, known);
        place
    }

    /// The first watched device that is one of these, or else one of the devices beneath these.
    fn look(&self, mut numbers: Vec<Number>) -> CallDevice {
        for _ in 0..LEVELS_MAX {
            if let place @ CallDevice::On(_) = self.find(&numbers) {
                return place;
            }
            numbers = numbers.into_iter().flat_map(devices_beneath).collect();
            if numbers.is_empty() {
                break;
            }
        }
        CallDevice::Elsewhere
    }

    fn find(&self, numbers: &[Number]) -> CallDevice {
        let mut devices = self.devices.iter();
        let own = devices.find(|device| {
            numbers.iter().any(|number| is_on(device, *number)) && !is_replaced(device)
        });
        own.map_or(CallDevice::Elsewhere, |device| {
            CallDevice::On(device.name.as_str().into())
        })
    }
}

/// Whether a number is the number of a device or of one of its partitions.
fn is_on(device: &Device, number: Number) -> bool {
    let has_part = || {
        let part = Device::find(&format!("{},{}", number.major, number.minor));
        part.is_ok_and(|part| part.disk == device.number)
    };
    device.number == number || (device.part.is_none() && has_part())
}

/// Whether another disk has the number of a device now.
fn is_replaced(device: &Device) -> bool {
    let Number { major, minor } = device.number;
    Device::find(&format!("{major},{minor}")).is_ok_and(|now| !now.is_same(device))
}

fn record(device: Arc<str>, sync: &Sync, ended_ns: u64) -> FinishedIo {
    let (offset_bytes, length_bytes) = sync.range.unwrap_or_default();
    let Owner { process, cgroup } = &sync.owner;
    let name = |name: Comm| name.to_string().into();
    let kind = match sync.call {
        // This call makes nothing durable.
        SyncCall::SyncFileRange => Kind::Other,
        _ => Kind::Op(Op::Flush),
    };
    FinishedIo {
        letters: Some(sync.call.name().into()),
        offset_bytes,
        length_bytes,
        begun_ns: sync.began_ns,
        ended_ns,
        at_ns: ended_ns,
        waits: IoWaits::Kernel {
            queue_ns: None,
            device_ns: ended_ns.saturating_sub(sync.began_ns),
        },
        who: Some(Who::Thread(Thread {
            process: process.and_then(|own| own.name).map(name),
            pid: process.map(|own| own.pid),
            thread: sync.thread.map(name),
            tid: Some(sync.tid),
            cgroup: cgroup.clone(),
        })),
        inode: sync.file.and_then(|file| file.inode),
        error: (sync.error != 0).then(|| errno_name(sync.error)),
        ..FinishedIo::bare(Layer::Fs, device, kind)
    }
}

/// The time after which dashpot looks again which devices a file system has.
const LOOK_NS: u64 = 1_000_000_000;
/// More devices are never on top of each other.
const LEVELS_MAX: usize = 16;
/// The maximum number of file systems that are remembered.
const KNOWN_MAX: usize = 4_096;

/// The cost of the watch, and what the watch does not see.
const NOTE: &str = "\
note: while this watches, each system call of this host takes a little longer; calls of
32-bit programs, syncs by io_uring and writes with O_SYNC are not seen";
