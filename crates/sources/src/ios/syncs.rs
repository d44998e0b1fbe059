//! The calls of this host's processes that sync files, as records.

use std::collections::HashMap;
use std::sync::Arc;

use dashpot_engine::Op;
use dashpot_export::complain;
use dashpot_observe::{FinishedIo, IoWaits, Kind, Layer, Who};
use dashpot_probe::{Device, FileId, GONE, Number, Sync, SyncCall, SyncTracer};

use super::{Progress, Stream};
use crate::errno::errno_name;
use crate::priority;
use crate::signals::now_ns;

/// A stream of the calls that sync files.
pub(crate) struct SyncStream<'a> {
    tracer: SyncTracer,
    places: Places<'a>,
}

/// Finds the watched device on which a file lies.
struct Places<'a> {
    devices: &'a [Device],
    /// The name under which calls on all other devices count; `None` if they do not count.
    others: Option<Arc<str>>,
    known: HashMap<Number, Option<Arc<str>>>,
}

impl<'a> SyncStream<'a> {
    /// A stream of the calls that begin from now on.
    pub(crate) fn new(
        devices: &'a [Device],
        others: Option<&str>,
    ) -> anyhow::Result<SyncStream<'a>> {
        let tracer = SyncTracer::start()?;
        priority::raise();
        complain(format_args!("{NOTE}"));
        Ok(SyncStream {
            tracer,
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
        let places = &mut self.places;
        let progress = self.tracer.read(u64::MAX, |sync| {
            ios.extend(
                sync.ended_ns
                    .and_then(|ended_ns| record(places, sync, ended_ns)),
            );
        })?;
        Ok(Progress {
            missed: progress.missing(),
            more: false,
        })
    }

    fn in_flight(&mut self, now_ns: u64) -> Option<Vec<FinishedIo>> {
        let places = &mut self.places;
        let calls = self.tracer.in_flight();
        let calls = calls.filter_map(|sync| record(places, sync, now_ns.max(sync.began_ns)));
        Some(calls.collect())
    }
}

impl Places<'_> {
    /// The name of the watched device on which a file is.
    fn name(&mut self, file: Option<FileId>) -> Option<Arc<str>> {
        let Some(FileId { device: number, .. }) = file else {
            return self.others.clone();
        };
        let devices = self.devices;
        let found = || {
            let found = devices.iter().find(|device| is_on(device, number));
            found.map(|device| device.name.as_str().into())
        };
        let known = self.known.entry(number).or_insert_with(found).clone();
        known.or_else(|| self.others.clone())
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

/// The record of a call; `None` if its device is not watched.
fn record(places: &mut Places<'_>, sync: &Sync, ended_ns: u64) -> Option<FinishedIo> {
    let (offset_bytes, length_bytes) = sync.range.unwrap_or_default();
    let comm = sync.comm.as_ref().map(ToString::to_string);
    Some(FinishedIo {
        layer: Layer::Fs,
        device: places.name(sync.file)?,
        kind: match sync.call {
            // This call makes nothing durable.
            SyncCall::SyncFileRange => Kind::Other,
            _ => Kind::Op(Op::Flush),
        },
        fua: false,
        letters: Some(sync.call.name().into()),
        offset_bytes,
        length_bytes,
        depth: None,
        begun_ns: sync.began_ns,
        ended_ns,
        at_ns: ended_ns,
        waits: IoWaits::Kernel {
            queue_ns: None,
            device_ns: ended_ns.saturating_sub(sync.began_ns),
        },
        who: Some(Who::Thread {
            pid: sync.pid,
            comm: comm.as_deref().unwrap_or(GONE).into(),
            cgroup: sync.cgroup.clone(),
        }),
        rule: None,
        lane: None,
        class: None,
        txg_syncing: None,
        inode: sync.file.map(|file| file.inode),
        merged: 0,
        requeued: 0,
        error: (sync.error != 0).then(|| errno_name(sync.error)),
    })
}

/// The cost of the watch, and what the watch does not see.
const NOTE: &str = "\
note: while this watches, each system call of this host takes a little longer; calls of
32-bit programs, syncs by io_uring and writes with O_SYNC are not seen";
