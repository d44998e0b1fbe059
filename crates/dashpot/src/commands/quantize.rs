//! `quantize`: latencies of disks in powers of two, over one stretch of time.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Duration, Op, OpSet};
use dashpot_observe::{DeviceInterval, Layer, Length, Question, elapsed_of_all, in_flight_of_all};
use dashpot_rules::ApiAddress;

use super::lengths::Lengths;
use super::lost::Lost;
use super::output::{print, print_json, usage};
use super::screen::room;
use super::vanished::warn_of_vanished;
use crate::cli::QuantizeArgs;
use crate::sources::{Target, Watch};
use dashpot_report::quantize::{Aggregation, Disk, Quantize, Scope};

pub(crate) fn quantize(api: Option<&ApiAddress>, args: &QuantizeArgs) -> anyhow::Result<()> {
    let lasts = args.lasts.unwrap_or(Duration::MAX);
    let target = Target::find(api, &args.device)?;
    for layer in layers(args) {
        let seen = target.check_layer(*layer);
        seen.unwrap_or_else(|error| usage(&error));
    }
    let question = Question {
        store: layers(args).contains(&Layer::Store),
        ..Question::default()
    };
    let mut watch = Watch::new(&target, &question, lasts, Some(1))?;
    let Some(intervals) = watch.next()? else {
        return Ok(());
    };
    let watched = Watched {
        length: watch.length(&intervals),
        lost: watch.lost(),
        unmatched: watch.unmatched(),
    };
    let reports = reports(args, watched, |_| &intervals);
    match (args.json, &reports[..]) {
        (true, [one]) => print_json(one)?,
        (true, several) => print_json(&several)?,
        (false, all) => all.iter().try_for_each(|one| print(&one.to_string()))?,
    }
    if args.json {
        Lengths::default().warn(&watched.length);
    }
    Lost::default().warn(watched.lost);
    warn_of_vanished(watch.vanished());
    // Nothing comes after it, but perhaps the reason why it has ended early.
    watch.next()?;
    Ok(())
}

/// What is known of a stretch of time beside what was done in it.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    pub(super) length: Length,
    /// Events that are missing.
    lost: u64,
    /// I/Os whose beginning was not seen, where there can be some.
    unmatched: Option<u64>,
}

impl Watched {
    /// One of which nothing is missing.
    pub(super) fn whole(length: Length) -> Watched {
        Watched {
            length,
            lost: 0,
            unmatched: None,
        }
    }
}

/// The report of a stretch of time, at each layer that is named.
pub(super) fn reports<'a>(
    args: &QuantizeArgs,
    watched: Watched,
    intervals: impl Fn(Layer) -> &'a [DeviceInterval],
) -> Vec<Quantize> {
    let layers = layers(args);
    let titled = layers.len() > 1;
    let report = |layer: &Layer| Quantize {
        layer: titled.then_some(*layer),
        length: watched.length,
        lost: watched.lost,
        unmatched: watched.unmatched,
        ..report(intervals(*layer), args, *layer)
    };
    layers.iter().map(report).collect()
}

/// The layers that are looked at.
pub(super) fn layers(args: &QuantizeArgs) -> &[Layer] {
    match args.layers.is_empty() {
        true => &[Layer::Disk],
        false => &args.layers,
    }
}

fn report(intervals: &[DeviceInterval], args: &QuantizeArgs, layer: Layer) -> Quantize {
    let aggregate =
        |intervals: &[DeviceInterval]| aggregation(intervals, args.op.unwrap_or(OpSet::ALL), layer);
    let disk = |interval: &DeviceInterval| Disk {
        disk: interval.device.clone(),
        aggregation: aggregate(std::slice::from_ref(interval)),
    };
    Quantize {
        layer: None,
        length: Length::of(elapsed_of_all(intervals)),
        scope: match args.by {
            Some(_) => Scope::Disks(intervals.iter().map(disk).collect()),
            None => Scope::Total(aggregate(intervals)),
        },
        in_flight: in_flight_of_all(intervals),
        lost: 0,
        unmatched: None,
        room: room(false),
    }
}

fn aggregation(intervals: &[DeviceInterval], ops: OpSet, layer: Layer) -> Aggregation {
    let (mut latencies, mut bytes) = (Histogram::default(), 0);
    for op in intervals.iter().flat_map(|interval| &interval.ops) {
        if let Some(at_layer) = op.at(layer).filter(|_| in_set(&op.op, ops)) {
            latencies.merge(at_layer);
            bytes += op.bytes;
        }
    }
    Aggregation::new(&latencies, bytes, elapsed_of_all(intervals))
}

/// Writes that ask for durability are counted with the others.
pub(super) fn in_set(name: &str, ops: OpSet) -> bool {
    let op = Op::ALL.into_iter().find(|op| op.name() == name);
    op.is_some_and(|op| ops.meets(OpSet::of(op)))
        || (name == Op::Write.name() && ops.contains(OpSet::FUA))
}
