//! `heatmap`: latencies by time. A terminal shows them as they come, a pipe at the end.

use dashpot_engine::Duration;
use dashpot_observe::{Layer, Past, Schedule};
use dashpot_report::heatmap::{Crop, HeatMap, HeatmapReport};
use dashpot_rules::{ApiAddress, ParseError, format_ops};

use super::draft::Draft;
use super::output::usage;
use super::report::{Format, show_over};
use crate::cli::HeatmapArgs;
use crate::sources::Target;

pub(super) fn heatmap(api: Option<&ApiAddress>, args: &HeatmapArgs) -> anyhow::Result<()> {
    let mut report = report(args, Layer::Disk).unwrap_or_else(|error| usage(&error));
    let target = Target::find(api, &args.device)?;
    let svg = svg_draft(args)?;
    show_over(&target, &mut report, Format::lines(args.json), svg)
}

/// The file for the picture, if the user wants one.
pub(super) fn svg_draft(args: &HeatmapArgs) -> anyhow::Result<Option<Draft>> {
    let place = args.svg.as_deref();
    place.map(|place| Draft::create("--svg", place)).transpose()
}

pub(super) fn report(args: &HeatmapArgs, layer: Layer) -> Result<HeatmapReport, ParseError> {
    let interval = args.pace.interval.unwrap_or(INTERVAL);
    Ok(HeatmapReport {
        layer,
        schedule: Schedule::every(interval, args.pace.count),
        past: args.last.map(|last| Past {
            last,
            each_second: true,
        }),
        queued: args.queued,
        ops: args.op,
        svg: args.svg.is_some(),
        map: HeatMap {
            title: title(args, layer),
            interval,
            crop: crop(args)?,
            ..HeatMap::default()
        },
        drawn: 0,
    })
}

fn title(args: &HeatmapArgs, layer: Layer) -> String {
    let devices = match layer {
        Layer::Disk => "disks",
        Layer::Store => "stores",
        Layer::Volume => "volumes",
    };
    let whose = match args.device.devices.as_slice() {
        [] => format!("all {devices}"),
        names => names.join(", "),
    };
    let ops = args.op.map(|ops| format!(" ({})", format_ops(ops)));
    format!("Latency of {whose}{}", ops.unwrap_or_default())
}

fn crop(args: &HeatmapArgs) -> Result<Crop, ParseError> {
    if let (Some(min), Some(max)) = (args.min, args.max)
        && min >= max
    {
        return Err(ParseError::new(format!(
            "--min {min} --max {max}: there is nothing between; make --max longer"
        )));
    }
    Ok(Crop {
        min_ns: args.min.map(Duration::as_nanos),
        max_ns: args.max.map(Duration::as_nanos),
    })
}

/// The default length of a column.
const INTERVAL: Duration = Duration::from_secs(1);
