//! Statistics that are counted from the collector's memory of seconds, minutes and hours.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use dashpot_api::Column;
use dashpot_observe::{
    Dimension, FinishedIo, Group, Groups, Kind, Layer, Metric, Statistic, Value, Who,
};

use super::asked::panicked;
use super::interval::{Counted, Interval};
use super::parts::parts;
use crate::answers::AnswerBuilder;
use crate::collector::{SecondCell, SecondCells, Steps};
use crate::{Daemon, Refusal};

/// Whether the memory of seconds has all facts that a statistic asks for.
pub(super) fn has(statistic: &Statistic) -> bool {
    let has_metric = match statistic.metric {
        Metric::Ops | Metric::Bytes | Metric::Of(Dimension::Latency) => true,
        Metric::Errors | Metric::Busy | Metric::Of(_) => false,
    };
    let mut asked = statistic.predicates.dimensions().chain(statistic.by);
    has_metric && asked.all(|one| KEPT.contains(&one))
}

/// Counts a statistic over an interval.
pub(super) async fn count(
    daemon: &Arc<Daemon>,
    statistic: &Statistic,
    interval: &Interval,
    making: &mut AnswerBuilder,
) -> Result<Counted, Refusal> {
    let (since, seconds) =
        daemon.collected(|view| steps(view.collected.seconds().levels(), interval));
    making.charge(seconds.iter().map(|(_, cells)| bytes_of(cells)).sum())?;
    let (daemon, statistic, interval) = (Arc::clone(daemon), statistic.clone(), interval.clone());
    let counted =
        tokio::task::spawn_blocking(move || columns(&daemon, &statistic, &interval, seconds));
    Ok(Counted {
        columns: counted.await.map_err(panicked)?,
        since,
    })
}

/// The steps of an interval. They are minutes or hours if the interval begins with seconds that are
/// forgotten, and if its columns are whole minutes or hours. A minute or an hour that is only partly in the
/// interval is read as seconds.
fn steps(levels: &[Steps; 3], interval: &Interval) -> (u64, Vec<(u64, SecondCells)>) {
    let Range { start, end } = interval.seconds.clone();
    let [seconds, coarse @ ..] = levels;
    let is_whole = |unit: u64| interval.step.is_multiple_of(unit) && start.is_multiple_of(unit);
    let reaches = |steps: &&Steps| is_whole(steps.bounds.unit) && steps.since() < seconds.since();
    let level = if seconds.since() > start {
        coarse
            .iter()
            .filter(reaches)
            .min_by_key(|one| one.since().max(start))
    } else {
        None
    };
    let (since, to, mut found) = match level {
        Some(level) => {
            let to = end / level.bounds.unit * level.bounds.unit;
            (level.since(), to.max(start), shared(level, start..to))
        }
        None => (seconds.since(), start, Vec::new()),
    };
    found.extend(shared(seconds, to..end));
    (since, found)
}

fn shared(steps: &Steps, seconds: Range<u64>) -> Vec<(u64, SecondCells)> {
    let wanted = steps.iter().filter(|(second, _)| seconds.contains(second));
    let shared = wanted.map(|(second, cells)| (second, Arc::clone(cells)));
    shared.collect()
}

/// Roughly how many bytes these cells take in an answer.
fn bytes_of(cells: &SecondCells) -> usize {
    let each = cells
        .iter()
        .map(|cell| cell.tally.disk.buckets.len() * BUCKET);
    each.sum::<usize>() + cells.len() * size_of::<SecondCell>()
}

fn columns(
    daemon: &Daemon,
    statistic: &Statistic,
    interval: &Interval,
    seconds: Vec<(u64, SecondCells)>,
) -> BTreeMap<u64, Column> {
    let mut columns: BTreeMap<u64, Column> = BTreeMap::new();
    let columns_of =
        seconds.chunk_by(|one, next| interval.column(one.0) == interval.column(next.0));
    for seconds in columns_of {
        let mut groups = Groups::default();
        let cells = seconds.iter().flat_map(|(_, cells)| cells.iter());
        cells.for_each(|cell| add(&mut groups, daemon, statistic, cell));
        let parts = parts(groups, statistic);
        if !parts.is_empty() {
            let column = columns.entry(interval.column(seconds[0].0)).or_default();
            column.parts = parts;
        }
    }
    columns
}

/// Adds the I/O of a cell, if the statistic selects it.
fn add(groups: &mut Groups, daemon: &Daemon, statistic: &Statistic, cell: &SecondCell) {
    let layer = layer_of(daemon, cell);
    let io = sample(layer, daemon.name_of(cell.device), cell);
    if layer != statistic.layer || !statistic.predicates.select(&io) {
        return;
    }
    let value = statistic.by.and_then(|by| by.of(&io));
    let value = match value {
        Some(Value::Name(name)) => Some(name),
        Some(Value::Number(_)) | None => None,
    };
    groups.add(Group {
        value: value.unwrap_or_default().to_owned(),
        count: cell.tally.completed,
        bytes: cell.tally.bytes,
        numbers: statistic
            .measure()
            .map(|_| Box::new(cell.tally.disk.histogram())),
    });
}

fn layer_of(daemon: &Daemon, cell: &SecondCell) -> Layer {
    if daemon.is_volume(cell.device) {
        Layer::Volume
    } else {
        Layer::Disk
    }
}

/// An I/O with the facts that all I/Os of a cell share.
fn sample(layer: Layer, device: &str, cell: &SecondCell) -> FinishedIo {
    FinishedIo {
        who: Some(Who::Client(Arc::clone(&cell.client))),
        ..FinishedIo::bare(layer, device.into(), Kind::Op(cell.op))
    }
}

/// The facts that the memory of seconds distinguishes.
const KEPT: [Dimension; 3] = [Dimension::Device, Dimension::Op, Dimension::Client];
/// How many bytes a bucket takes in an answer.
const BUCKET: usize = 3 * size_of::<u64>();
