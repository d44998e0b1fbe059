//! The zios of a daemon's disks or volumes.

use anyhow::ensure;
use dashpot_api::{Client, FinishedZio, InFlightZio, STARTED_AGAIN, WantedZios};
use dashpot_engine::Waits;
use dashpot_observe::{FinishedIo, IoWaits, Kind, Wanted, Who};
use dashpot_rules::format_ops;

use super::{Progress, Stream};

/// The zios of a daemon's disks or volumes.
pub(in crate::sources) struct ZioStream<'a> {
    client: &'a Client,
    /// Their names.
    names: &'a [String],
    wanted: WantedZios,
    next: u64,
    /// The start of the daemon to which the cursor belongs.
    since_ns: u64,
    /// How many events the daemon had dropped at the last reading.
    dropped: u64,
}

impl<'a> ZioStream<'a> {
    /// Begins with I/Os that finish from now on.
    pub(in crate::sources) fn new(
        client: &'a Client,
        names: &'a [String],
        wanted: &Wanted,
    ) -> anyhow::Result<ZioStream<'a>> {
        let wanted = WantedZios {
            disk: match names {
                [name] => Some(name.clone()),
                _ => None,
            },
            ops: wanted.ops.map(format_ops),
            min_ns: wanted.min_ns,
            limit: LIMIT,
        };
        let now = client.finished(&wanted, None)?;
        Ok(ZioStream {
            client,
            names,
            wanted,
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
        let is_named = |zio: &FinishedZio| self.names.contains(&zio.disk);
        ios.extend(answer.zios.into_iter().filter(is_named).map(finished));
        Ok(Progress {
            missed,
            more,
            vanished: Vec::new(),
        })
    }

    /// The oldest zios in flight of each device. If the daemon does not answer, there are none to tell of, and
    /// the next reading says why.
    fn in_flight(&self) -> Vec<FinishedIo> {
        let Ok(status) = self.client.status(OLDEST) else {
            return Vec::new();
        };
        let disks = status.disks.iter().map(|disk| (&disk.name, &disk.io));
        let volumes = status
            .volumes
            .iter()
            .map(|volume| (&volume.name, &volume.io));
        let named = disks
            .chain(volumes)
            .filter(|(name, _)| self.names.contains(name));
        let zios = named.flat_map(|(name, io)| {
            io.oldest
                .iter()
                .map(|zio| begun(name, zio, io.at_ns.saturating_sub(zio.age_ns)))
        });
        zios.collect()
    }
}

/// A zio in flight, as if it ended when it began.
fn begun(device: &str, zio: &InFlightZio, begun_ns: u64) -> FinishedIo {
    FinishedIo {
        device: device.to_owned(),
        kind: Kind::of_word(&zio.op),
        fua: false,
        letters: None,
        offset_bytes: zio.offset_bytes,
        length_bytes: zio.length_bytes.into(),
        begun_ns,
        ended_ns: begun_ns,
        at_ns: begun_ns,
        waits: IoWaits::Zio(Waits::default()),
        who: Some(Who::Client(zio.client.clone())),
        rule: zio.rule,
        lane: None,
        merged: 0,
        requeued: 0,
        error: None,
    }
}

fn finished(zio: FinishedZio) -> FinishedIo {
    FinishedIo {
        device: zio.disk,
        kind: Kind::of_word(&zio.op),
        fua: zio.fua,
        letters: None,
        offset_bytes: zio.offset_bytes,
        length_bytes: zio.length_bytes.into(),
        begun_ns: zio.arrived_ns,
        ended_ns: zio.ended_ns,
        at_ns: zio.ended_ns,
        waits: IoWaits::Zio(zio.waits.waits()),
        who: Some(Who::Client(zio.client)),
        rule: zio.rule,
        lane: zio.lane,
        merged: 0,
        requeued: 0,
        error: zio.error,
    }
}

/// The most zios in an answer of the daemon.
const LIMIT: usize = 10_000;
/// The most zios in flight of a device that are told.
const OLDEST: usize = 1_000;
