//! The I/O of each second. While the daemon reads the collected events, the collector cannot empty the
//! rings, so the daemon copies only what the answer needs. Another thread converts the result afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use dashpot_api::{Bucket, Error, Second, SecondLatency, Seconds};
use dashpot_engine::histogram::LAYOUT;
use dashpot_export::DeviceId;
use serde::Deserialize;
use tokio::task::spawn_blocking;
use utoipa::IntoParams;

use super::events::device_of;
use crate::answers::AnswerBuilder;
use crate::collector::{SecondCell, SecondCells, View};
use crate::http::charged::JsonAnswer;
use crate::http::error::Options;
use crate::http::statistics::panicked;
use crate::wire::second_latency;
use crate::{Daemon, Refusal};

/// The seconds that the caller wants.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WantedSeconds {
    /// Only seconds that began after this moment, which is `next_ns` of an earlier answer [all that the
    /// daemon remembers]. Ask again while `more` is true: an answer has only the first of the seconds if they
    /// are long.
    after_ns: Option<u64>,
    /// Only I/O of the disk or the volume with this name.
    disk: Option<String>,
}

/// The I/O of each second, in histograms by disk, client and operation.
#[utoipa::path(get, path = "/v1/seconds", operation_id = "list_seconds", tag = "events",
    params(WantedSeconds),
    responses(
        (status = 200, body = Seconds, description = "The seconds that were asked for."),
        (status = 400, body = Error),
        (status = 404, body = Error),
    ))]
pub(crate) async fn seconds(
    State(daemon): State<Arc<Daemon>>,
    Options(wanted): Options<WantedSeconds>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let device = device_of(&daemon, wanted.disk.as_deref())?;
    // Zios that end later are not in the answer, so a second that is over now is complete.
    let scope = Scope {
        device,
        after_ns: wanted.after_ns,
        now_ns: daemon.now().as_nanos(),
    };
    let seen = daemon.events(device, |view| Seen::of(view, &scope)).await;
    making.charge(seen.bytes)?;
    let written = spawn_blocking(move || making.json(&seen.seconds(&daemon, &scope)));
    written.await.map_err(panicked)?.map(JsonAnswer)
}

/// The device and the seconds of an answer.
#[derive(Clone, Copy, Debug)]
struct Scope {
    device: Option<DeviceId>,
    after_ns: Option<u64>,
    now_ns: u64,
}

/// The seconds of an answer, as copied from the collector.
struct Seen {
    since_ns: u64,
    seconds: Vec<(u64, SecondCells)>,
    dropped: Vec<(u64, u64)>,
    /// Roughly how many bytes these seconds take after conversion.
    bytes: usize,
    /// Whether seconds are left for the next answer.
    more: bool,
}

impl Scope {
    /// The number of the current second.
    fn running(&self) -> u64 {
        self.now_ns / SECOND_NS
    }

    fn has(&self, number: u64) -> bool {
        let is_new = self.after_ns.is_none_or(|after| number * SECOND_NS > after);
        number == self.running() || (number < self.running() && is_new)
    }
}

impl Seen {
    /// Takes the running second, and the oldest of the others that fit into an answer.
    fn of(view: &View<'_>, scope: &Scope) -> Seen {
        let asked = view.collected.seconds().iter();
        let asked: Vec<_> = asked.filter(|(number, _)| scope.has(*number)).collect();
        let converted = |cells| converted_bytes(cells, scope.device);
        let sizes = asked
            .iter()
            .map(|(number, cells)| (*number, converted(cells)));
        let left = first_left(sizes.filter(|(number, _)| *number != scope.running()));
        let is_here = |number| number == scope.running() || left.is_none_or(|left| number < left);
        let here = asked.into_iter().filter(|(number, _)| is_here(*number));
        let seconds: Vec<_> = here.map(|(number, it)| (number, Arc::clone(it))).collect();
        let dropped = view.dropped_by_second(scope.device);
        let dropped = dropped.filter(|(number, _)| scope.has(*number) && is_here(*number));
        Seen {
            since_ns: view.collected.seconds().since() * SECOND_NS,
            bytes: seconds.iter().map(|(_, cells)| converted(cells)).sum(),
            seconds,
            dropped: dropped.collect(),
            more: left.is_some(),
        }
    }

    fn seconds(self, daemon: &Daemon, scope: &Scope) -> Seconds {
        let since_ns = self.since_ns.max(daemon.started().as_nanos());
        let more = self.more;
        let mut seconds = self.by_second(daemon, scope.device);
        let current = seconds.remove(&scope.running()).unwrap_or_default();
        let last = seconds.keys().next_back().map(|number| number * SECOND_NS);
        Seconds {
            layout: LAYOUT.to_owned(),
            next_ns: last.or(scope.after_ns).unwrap_or_default(),
            more,
            seconds: seconds.into_values().collect(),
            running: Second {
                start_ns: scope.running() * SECOND_NS,
                ..current
            },
            since_ns,
            now_ns: scope.now_ns,
        }
    }

    fn by_second(self, daemon: &Daemon, device: Option<DeviceId>) -> BTreeMap<u64, Second> {
        let mut seconds: BTreeMap<u64, Second> = BTreeMap::new();
        for (number, cells) in self.seconds {
            let cells = cells.iter();
            let cells = cells.filter(|cell| device.is_none_or(|device| cell.device == device));
            let latency = |cell| second_latency(cell, daemon.name_of(cell.device));
            let latencies: Vec<SecondLatency> = cells.map(latency).collect();
            if !latencies.is_empty() {
                seconds.entry(number).or_default().latencies = latencies;
            }
        }
        for (number, dropped) in self.dropped {
            seconds.entry(number).or_default().dropped += dropped;
        }
        for (number, second) in &mut seconds {
            second.start_ns = number * SECOND_NS;
        }
        seconds
    }
}

/// The first of some seconds that an answer leaves for the next, if it must. The seconds have their sizes.
fn first_left(seconds: impl Iterator<Item = (u64, usize)>) -> Option<u64> {
    let mut bytes = 0;
    for (number, size) in seconds {
        if bytes > 0 && bytes + size > ANSWER {
            return Some(number);
        }
        bytes += size;
    }
    None
}

/// Roughly how many bytes a device's I/O of a second takes after conversion.
fn converted_bytes(cells: &SecondCells, device: Option<DeviceId>) -> usize {
    let cells = cells.iter();
    let cells = cells.filter(|cell| device.is_none_or(|device| cell.device == device));
    let bytes = |cell: &SecondCell| {
        size_of::<SecondLatency>() + cell.tally.disk.buckets.len() * size_of::<Bucket>()
    };
    cells.map(bytes).sum()
}

/// The most bytes that the seconds of an answer take after conversion, unless a single second takes more.
const ANSWER: usize = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::{ANSWER, first_left};
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn answers_have_each_second_once_and_are_bounded(sizes in vec(0..ANSWER * 3 / 2, 1..40)) {
            let all: Vec<(u64, usize)> = (0..).zip(sizes).collect();
            let (mut from, mut seen) = (0, Vec::new());
            loop {
                let rest = all.iter().copied().filter(|(number, _)| *number >= from);
                let left = first_left(rest.clone());
                let part: Vec<_> = rest.filter(|(it, _)| left.is_none_or(|left| *it < left)).collect();
                let large = part.iter().filter(|(_, size)| *size > 0).count();
                let bytes: usize = part.iter().map(|(_, size)| size).sum();
                prop_assert!(bytes <= ANSWER || large == 1);
                seen.extend(part);
                match left {
                    Some(left) => from = left,
                    None => break,
                }
            }
            prop_assert_eq!(seen, all);
        }
    }
}
