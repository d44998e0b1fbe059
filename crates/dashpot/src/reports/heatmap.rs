//! `heatmap`: latencies by time. On a terminal, the picture appears column by column; in a pipe, it appears
//! at the end.

use dashpot_cli::reports::{HeatmapArgs, IoArgs, OutputArgs};
use dashpot_engine::Duration;
use dashpot_observe::{Layer, Schedule};
use dashpot_output::Draft;
use dashpot_report::heatmap::HeatmapReport;
use dashpot_report::report::Report;
use dashpot_rules::{ParseError, format_ops};
use dashpot_text::heatmap::{Crop, HeatMap};

use super::asked::{Over, ReportRequest, check_memory};

impl ReportRequest for HeatmapArgs {
    fn report(&self, over: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        check_memory(over, &self.of.period, &self.pace, self.queued)?;
        let interval = self.pace.interval.unwrap_or(INTERVAL);
        let layer = self.at.layer;
        Ok(Box::new(HeatmapReport {
            layer,
            schedule: Schedule::every(interval, self.pace.count),
            past: over.past(&self.of.period, true),
            queued: self.queued,
            ops: self.op,
            svg: self.svg.is_some() || self.of.output.file.html.is_some(),
            map: HeatMap {
                title: title(self, layer),
                interval,
                crop: crop(self)?,
                ..HeatMap::default()
            },
            drawn: 0,
        }))
    }

    fn of(&self) -> Option<&IoArgs> {
        Some(&self.of)
    }

    fn output(&self) -> &OutputArgs {
        &self.of.output
    }

    fn svg(&self) -> anyhow::Result<Option<Draft>> {
        let place = self.svg.as_deref();
        place.map(|place| Draft::create("--svg", place)).transpose()
    }
}

fn title(args: &HeatmapArgs, layer: Layer) -> String {
    let devices = match layer {
        Layer::Disk => "disks",
        Layer::Store => "stores",
        Layer::Fs => "sync calls",
        Layer::Kernel => "the kernel's disks",
        Layer::Volume => "volumes",
    };
    let whose = match args.of.device.devices.as_slice() {
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
