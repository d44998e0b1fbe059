//! `quantize`: latencies of disks in powers of two, over one stretch of time.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Duration, Op, OpSet};

use super::output::{print, print_json};
use crate::cli::QuantizeArgs;
use crate::observe::{DeviceInterval, Question, Target, Watch, elapsed_of_all, in_flight_of_all};
use crate::report::quantize::{Aggregation, Disk, Quantize, Scope};
use crate::spec::ApiAddress;

pub(crate) fn quantize(api: Option<&ApiAddress>, args: &QuantizeArgs) -> anyhow::Result<()> {
    let lasts = args.lasts.unwrap_or(Duration::MAX);
    let target = Target::find(api, &args.device)?;
    let mut watch = Watch::new(&target, &Question::default(), lasts, Some(1))?;
    let Some(intervals) = watch.next()? else {
        return Ok(());
    };
    let report = report(&intervals, args);
    if args.json {
        return print_json(&report);
    }
    print(&report.to_string())
}

/// The report of a stretch of time.
pub(super) fn report(intervals: &[DeviceInterval], args: &QuantizeArgs) -> Quantize {
    let ops = args.op.unwrap_or(OpSet::ALL);
    Quantize {
        elapsed: elapsed_of_all(intervals),
        scope: match args.by {
            Some(_) => Scope::Disks(intervals.iter().map(|one| disk(one, ops)).collect()),
            None => Scope::Total(aggregation(intervals, ops)),
        },
        in_flight: in_flight_of_all(intervals),
    }
}

fn disk(interval: &DeviceInterval, ops: OpSet) -> Disk {
    Disk {
        disk: interval.device.clone(),
        aggregation: aggregation(std::slice::from_ref(interval), ops),
    }
}

fn aggregation(intervals: &[DeviceInterval], ops: OpSet) -> Aggregation {
    let (mut latencies, mut bytes) = (Histogram::default(), 0);
    for op in intervals.iter().flat_map(|interval| &interval.ops) {
        if in_set(&op.op, ops) {
            latencies.merge(&op.disk);
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
