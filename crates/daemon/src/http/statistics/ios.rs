//! Individual zios that the collector remembers, and statistics that are counted from them.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Arc;

use dashpot_api::Column;
use dashpot_export::{DeviceId, FinishedZio};
use dashpot_observe::{FinishedIo, Layer, Question, Statistic, Tally};

use super::asked::{Ios, panicked};
use super::interval::{Counted, Interval, SECOND_NS};
use super::parts::parts;
use crate::answers::AnswerBuilder;
use crate::collector::{Copied, Kept};
use crate::http::memory::Wanted;
use crate::wire::{io_of, put};
use crate::{Daemon, Refusal, RefusalKind};

/// Zios of a layer, as I/Os.
pub(crate) struct CopiedIos {
    copied: Copied,
    /// The names of the devices, by index.
    devices: Vec<Arc<str>>,
    other: Arc<str>,
    /// No zio from this second on was forgotten.
    pub(crate) since: u64,
}

impl CopiedIos {
    /// Copies the zios of a layer that ended in these seconds, or of one device, out of the collector's
    /// memory. The zios are copied in parts, so that the daemon can answer other callers between two parts.
    pub(crate) async fn copy(
        daemon: &Arc<Daemon>,
        wanted: &Wanted,
        device: Option<DeviceId>,
        making: &mut AnswerBuilder,
    ) -> Result<CopiedIos, Refusal> {
        let is_volume = wanted.layer == Layer::Volume;
        let wants = |zio: &FinishedZio| {
            zio.is_of_volume() == is_volume && device.is_none_or(|device| device == zio.device)
        };
        let mut copied =
            daemon.collected(|view| view.collected.recent().begin_copy(&wanted.seconds));
        making.copy(copied.bytes_max()).await?;
        // No part of the memory is touched before it is filled, and the copy never moves.
        let room = copied.zios.try_reserve_exact(copied.zios_max());
        room.map_err(|error| {
            let error = format!("the host has no memory for a copy of the I/Os: {error}");
            Refusal::new(RefusalKind::Full, error).remedy("ask about a shorter time")
        })?;
        loop {
            let (is_over, since) = daemon.collected(|view| {
                let recent = view.collected.recent();
                let is_over = recent.copy(&mut copied, &wanted.seconds, PART, wants);
                (is_over, recent.since())
            });
            if is_over {
                return Ok(CopiedIos {
                    copied,
                    devices: daemon.device_names(),
                    other: "other".into(),
                    since,
                });
            }
            tokio::task::yield_now().await;
        }
    }

    /// Calls `look` for each I/O.
    pub(crate) fn each(&self, look: impl FnMut(&FinishedIo)) {
        self.look(&self.copied.zios, look);
    }

    /// Sorts the zios by their arrival.
    pub(crate) fn sort_by_arrival(&mut self) {
        self.copied
            .zios
            .sort_unstable_by_key(|kept| kept.zio.arrived);
    }

    /// Calls `look` for each zio as an I/O. One record serves for all zios, because copying names for each of
    /// a million zios would take longer than everything else.
    fn look(&self, zios: &[Kept], mut look: impl FnMut(&FinishedIo)) {
        let Some(first) = zios.first() else { return };
        let mut last = (first.zio.device, first.client);
        let mut io = self.io(first);
        for kept in zios {
            if (kept.zio.device, kept.client) == last {
                io = put(io, &kept.zio);
            } else {
                last = (kept.zio.device, kept.client);
                io = self.io(kept);
            }
            look(&io);
        }
    }

    fn io(&self, kept: &Kept) -> FinishedIo {
        let zio = &kept.zio;
        let client = self.copied.name_of(kept.client).unwrap_or(&self.other);
        let device = self.devices.get(zio.device.index());
        let device = Arc::clone(device.unwrap_or(&self.other));
        io_of(zio, device, Arc::clone(client))
    }

    /// Sorts the zios by second.
    fn sort(&mut self) {
        if !self.copied.zios.is_sorted_by_key(second_of) {
            self.copied.zios.sort_unstable_by_key(second_of);
        }
    }
}

impl Ios for CopiedIos {
    fn each(&self, look: &mut dyn FnMut(&FinishedIo)) -> Result<u64, Refusal> {
        self.look(&self.copied.zios, look);
        Ok(self.since)
    }
}

fn second_of(kept: &Kept) -> u64 {
    kept.zio.ended().as_nanos() / SECOND_NS
}

/// Counts a statistic over an interval, piece by piece, so that the copies stay small.
pub(super) async fn count(
    daemon: &Arc<Daemon>,
    statistic: &Statistic,
    interval: &Interval,
    making: &mut AnswerBuilder,
) -> Result<Counted, Refusal> {
    let mut all = Counted {
        columns: BTreeMap::new(),
        since: 0,
    };
    for seconds in interval.pieces(interval.columns().div_ceil(PIECES)) {
        let wanted = Wanted {
            names_devices: statistic.names_devices(),
            layer: statistic.layer,
            seconds,
        };
        let mut ios = CopiedIos::copy(daemon, &wanted, None, making).await?;
        all.since = all.since.max(ios.since);
        let (statistic, interval) = (statistic.clone(), interval.clone());
        let counted = tokio::task::spawn_blocking(move || {
            ios.sort();
            columns(&ios, &statistic, &interval)
        });
        all.columns.extend(counted.await.map_err(panicked)?);
    }
    Ok(all)
}

/// The columns of these zios, which are sorted by second. Each of two threads counts half of the seconds.
fn columns(ios: &CopiedIos, statistic: &Statistic, interval: &Interval) -> BTreeMap<u64, Column> {
    let zios = &ios.copied.zios;
    let column_of = |kept: &Kept| interval.column(second_of(kept));
    let middle = zios.get(zios.len() / 2).map_or(0, column_of);
    let (early, late) = zios.split_at(zios.partition_point(|kept| column_of(kept) < middle));
    std::thread::scope(|scope| {
        let early = (!early.is_empty())
            .then(|| scope.spawn(|| columns_of(ios, early, statistic, interval)));
        let mut columns = columns_of(ios, late, statistic, interval);
        // A thread that has panicked has printed its message. The panic continues here, and the request
        // fails.
        let counted = early.map(|early| early.join().unwrap_or_else(|panic| resume_unwind(panic)));
        columns.extend(counted.into_iter().flatten());
        columns
    })
}

/// The columns of some zios.
fn columns_of(
    ios: &CopiedIos,
    zios: &[Kept],
    statistic: &Statistic,
    interval: &Interval,
) -> BTreeMap<u64, Column> {
    let column_of = |kept: &Kept| interval.column(second_of(kept));
    let mut tally = Tally::of(&question(statistic));
    let mut columns: BTreeMap<u64, Column> = BTreeMap::new();
    for zios in zios.chunk_by(|one, next| column_of(one) == column_of(next)) {
        ios.look(zios, |io| tally.add(io));
        let parts = parts(tally.take_groups(), statistic);
        if !parts.is_empty() {
            columns.entry(column_of(&zios[0])).or_default().parts = parts;
        }
    }
    columns
}

/// The question that a column answers for a statistic. The column needs only one of an I/O's times: the time
/// that the statistic measures.
pub(super) fn question(statistic: &Statistic) -> Question {
    Question {
        by: statistic.by,
        measure: statistic.measure(),
        counts_only: true,
        ..statistic.question()
    }
}

/// In how many pieces the columns of an interval are counted.
const PIECES: u64 = 16;
/// How many zios the daemon examines without a pause, in about 2 ms.
const PART: usize = 100_000;
