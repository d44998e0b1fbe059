//! `heatmap`: latencies by time, as they come on a terminal, and at the end in a pipe.

use std::io::{self, IsTerminal};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Duration, OpSet};
use rustix::termios::tcgetwinsize;

use super::output::{print, print_json_line};
use super::picture::PictureFile;
use super::quantize::in_set;
use crate::cli::HeatmapArgs;
use crate::observe::{
    DeviceInterval, Question, Target, Watch, elapsed_of_all, in_flight_of_all,
};
use crate::report::chart::{Screen, heat_svg, heat_text};
use crate::report::heatmap::{Column, Crop, HeatMap};
use crate::spec::{ApiAddress, ParseError};

const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn heatmap(api: Option<&ApiAddress>, args: &HeatmapArgs) -> anyhow::Result<()> {
    let mut heat = begin(args)?;
    heat.zone_ns = zone_ns();
    let picture = args.svg.as_deref().map(PictureFile::create).transpose()?;
    let target = Target::find(api, &args.device)?;
    let question = Question {
        by: None,
        queued: args.queued,
    };
    let mut watch = Watch::new(&target, &question, heat.interval, args.pace.count)?;
    let mut view = View::new(args.json);
    while let Some(intervals) = watch.next()? {
        say_lost(watch.lost());
        let elapsed = elapsed_of_all(&intervals);
        let start_ns = unix_ns().saturating_sub(elapsed.as_nanos() as u64);
        heat.columns.push(column(&intervals, args, start_ns));
        view.show(&heat)?;
    }
    if let Some(picture) = picture {
        picture.publish(&heat_svg(&heat))?;
    }
    view.end(&heat)
}

/// A heat map without columns.
pub(super) fn begin(args: &HeatmapArgs) -> Result<HeatMap, ParseError> {
    let crop = Crop {
        min_ns: args.min.map(Duration::as_nanos),
        max_ns: args.max.map(Duration::as_nanos),
    };
    if let (Some(min), Some(max)) = (args.min, args.max)
        && min >= max
    {
        return Err(ParseError::new(format!(
            "--min {min} --max {max}: there is nothing between; make --max longer"
        )));
    }
    let whose = match args.device.devices.as_slice() {
        [] => "all disks".to_owned(),
        names => names.join(", "),
    };
    let ops = args.op.map_or(String::new(), |ops| format!(" ({})", format_ops(ops)));
    Ok(HeatMap {
        title: format!("Latency of {whose}{ops}"),
        interval: args.pace.interval.unwrap_or(INTERVAL),
        crop,
        ..HeatMap::default()
    })
}

/// The column of an interval that began at a moment.
pub(super) fn column(intervals: &[DeviceInterval], args: &HeatmapArgs, start_ns: u64) -> Column {
    let ops = args.op.unwrap_or(OpSet::ALL);
    let mut latencies = Histogram::default();
    let each = intervals.iter().flat_map(|interval| &interval.ops);
    for op in each.filter(|op| in_set(&op.op, ops)) {
        latencies.merge(if args.queued { &op.total } else { &op.disk });
    }
    Column::new(
        &latencies,
        start_ns,
        elapsed_of_all(intervals),
        in_flight_of_all(intervals),
    )
}
