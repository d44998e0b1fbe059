//! Turns the zios of a daemon's disks or volumes into records.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use dashpot_api::{Client, FinishedZio, InFlightZio, STARTED_AGAIN, WantedZios};
use dashpot_observe::{Facts, FinishedIo, IoWaits, Kind, Layer, Wanted, Who};
use dashpot_rules::format_ops;

use super::{Progress, Stream};

/// The disks and volumes of a daemon: the name of each, and the layer to note in the records of its zios.
pub(crate) type Devices = HashMap<String, Layer>;

/// A stream of the zios of a daemon's disks, volumes or both. The daemon has only one count of dropped events
/// for all devices, so two streams would both report each dropped event.
pub(crate) struct ZioStream<'a> {
    client: &'a Client,
    devices: Devices,
    wanted: WantedZios,
    texts: Texts,
    next: u64,
    /// When the daemon started. The cursor `next` is valid only until the daemon is started again.
    since_ns: u64,
    /// How many events the daemon had dropped at the last reading.
    dropped: u64,
}

impl<'a> ZioStream<'a> {
    /// A stream of the I/Os that finish from now on.
    pub(crate) fn new(
        client: &'a Client,
        devices: Devices,
        wanted: &Wanted,
    ) -> anyhow::Result<ZioStream<'a>> {
        let mut names = devices.keys();
        let wanted = WantedZios {
            disk: match (names.next(), names.next()) {
                (Some(name), None) => Some(name.clone()),
                _ => None,
            },
            ops: wanted.ops.map(format_ops),
            min_ns: wanted.min_ns,
            limit: LIMIT,
        };
        let now = client.finished(&wanted, None)?;
        Ok(ZioStream {
            client,
            devices,
            wanted,
            texts: Texts::default(),
            next: now.next,
            since_ns: now.since_ns,
            dropped: now.dropped,
        })
    }
}

impl Stream for ZioStream<'_> {
    fn now_ns(&self) -> anyhow::Result<u64> {
        Ok(self.client.clock()?.now_ns)
    }

    fn read(&mut self, ios: &mut Vec<FinishedIo>) -> anyhow::Result<Progress> {
        let answer = self.client.finished(&self.wanted, Some(self.next))?;
        ensure!(answer.since_ns == self.since_ns, STARTED_AGAIN);
        let more = answer.zios.len() >= LIMIT;
        let missed = answer.forgotten + answer.dropped.saturating_sub(self.dropped);
        (self.next, self.dropped) = (answer.next, answer.dropped);
        for zio in answer.zios {
            if let Some(layer) = self.devices.get(&zio.disk) {
                ios.push(self.texts.finished(*layer, zio));
            }
        }
        Ok(Progress {
            missed,
            more,
            unplaced: None,
        })
    }

    fn pause_max(&self) -> Duration {
        PAUSE_MAX
    }

    fn in_flight(&mut self, now_ns: u64) -> Option<Vec<FinishedIo>> {
        in_flight_of(self.client, &self.devices, &mut self.texts, now_ns)
    }
}

/// The oldest zios in flight of each device, as if they ended now. `None` if the daemon does not answer; the next
/// reading then fails with the reason.
pub(crate) fn in_flight_of(
    client: &Client,
    devices: &Devices,
    texts: &mut Texts,
    now_ns: u64,
) -> Option<Vec<FinishedIo>> {
    let status = client.status(OLDEST).ok()?;
    let disks = status.disks.iter().map(|disk| (&disk.name, &disk.io));
    let volumes = status
        .volumes
        .iter()
        .map(|volume| (&volume.name, &volume.io));
    let mut zios = Vec::new();
    for (name, io) in disks.chain(volumes) {
        let Some(layer) = devices.get(name) else {
            continue;
        };
        let ages = io
            .oldest
            .iter()
            .map(|zio| (zio, io.at_ns.saturating_sub(zio.age_ns)));
        zios.extend(ages.map(|(zio, begun_ns)| texts.begun((*layer, name), zio, begun_ns, now_ns)));
    }
    Some(zios)
}

/// The names in the records of zios, each stored only once.
#[derive(Default)]
pub(crate) struct Texts {
    known: HashSet<Arc<str>>,
}

impl Texts {
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let text: Arc<str> = text.into();
        self.known.insert(Arc::clone(&text));
        text
    }

    /// A record of a zio in flight, as if the zio ended now. The record has only the time since the zio's
    /// arrival, not the single waits, because they are not over.
    fn begun(
        &mut self,
        (layer, device): (Layer, &str),
        zio: &InFlightZio,
        begun_ns: u64,
        now_ns: u64,
    ) -> FinishedIo {
        let ended_ns = now_ns.max(begun_ns);
        FinishedIo {
            letters: zio.call.as_deref().map(|call| self.text(call)),
            offset_bytes: zio.offset_bytes,
            length_bytes: zio.length_bytes.into(),
            begun_ns,
            ended_ns,
            at_ns: ended_ns,
            waits: IoWaits::Kernel {
                queue_ns: None,
                device_ns: ended_ns - begun_ns,
            },
            who: Some(Who::Client(self.text(&zio.client))),
            facts: Facts {
                rule: zio.rule,
                ..Facts::default()
            },
            ..FinishedIo::bare(layer, self.text(device), Kind::of_word(&zio.op))
        }
    }

    fn finished(&mut self, layer: Layer, zio: FinishedZio) -> FinishedIo {
        FinishedIo {
            fua: zio.fua,
            letters: zio.call.as_deref().map(|call| self.text(call)),
            offset_bytes: zio.offset_bytes,
            length_bytes: zio.length_bytes.into(),
            depth: Some(zio.depth),
            begun_ns: zio.arrived_ns,
            ended_ns: zio.ended_ns,
            at_ns: zio.ended_ns,
            waits: match zio.waits.store_ns {
                Some(_) => IoWaits::Zio(zio.waits.waits()),
                None => IoWaits::Call(zio.waits.waits()),
            },
            who: Some(Who::Client(self.text(&zio.client))),
            facts: zio.facts,
            error: zio.error,
            ..FinishedIo::bare(layer, self.text(&zio.disk), Kind::of_word(&zio.op))
        }
    }
}

/// The longest pause between two readings of an idle daemon, which remembers the I/Os that finish meanwhile. A
/// recorder that asks for the I/Os in flight at a seal waits longer than this for its answer.
const PAUSE_MAX: Duration = Duration::from_millis(150);

/// The maximum number of strings that are remembered.
const KNOWN_MAX: usize = 4_096;
/// The maximum number of zios in one answer of the daemon.
const LIMIT: usize = 10_000;
/// The maximum number of zios in flight that are reported for a device.
const OLDEST: usize = 1_000;
