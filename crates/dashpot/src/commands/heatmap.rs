//! `heatmap`: latencies by time, as they come on a terminal, and at the end in a pipe.

use std::io::Write;

use anyhow::Context;
use dashpot_engine::Duration;
use dashpot_engine::histogram::Histogram;
use dashpot_export::complain;
use dashpot_observe::{DeviceInterval, Layer, Question, elapsed_of_all, in_flight_of_all};
use dashpot_rules::{ApiAddress, ParseError, format_ops};

use super::draft::Draft;
use super::lengths::Lengths;
use super::output::{print_drawn, print_json_line, usage};
use super::past::recall;
use super::quantize::in_set;
use super::screen;
use super::vanished::warn_of_vanished;
use super::wall::{unix_ns_before, zone_ns};
use crate::cli::HeatmapArgs;
use crate::sources::{Target, Watch};
use dashpot_report::chart::{heat_svg, heat_text};
use dashpot_report::heatmap::{Column, Crop, HeatMap};

/// A column is this long, if nobody says how long.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn heatmap(api: Option<&ApiAddress>, args: &HeatmapArgs) -> anyhow::Result<()> {
    let mut heat = begin(args, "disks").unwrap_or_else(|error| usage(&error));
    heat.zone_ns = zone_ns();
    let target = Target::find(api, &args.device)?;
    let draft = |place| Draft::create("--svg", place);
    let svg = args.svg.as_deref().map(draft).transpose()?;
    if let Some(last) = args.last {
        recall(&mut heat, &target, args, last)?;
        say_lost(heat.columns.iter().map(Column::lost).sum());
        return show_past(&heat, svg, args);
    }
    let question = Question {
        by: None,
        queued: args.queued,
        store: false,
    };
    let mut watch = Watch::new(&target, &question, heat.interval, args.pace.count)?;
    let mut view = View::new(args);
    view.begin(&heat)?;
    let watched = grow(&mut heat, &mut watch, &mut view, args);
    if watched.is_err() && heat.columns.is_empty() {
        return watched;
    }
    // What was seen before a daemon died or a device vanished is not lost with it.
    if let Some(svg) = svg {
        write_svg(svg, &heat)?;
    }
    if view == View::Still {
        print_drawn(&heat_text(&heat, screen::still()))?;
    }
    watched
}

/// Shows a picture that is whole.
fn show_past(heat: &HeatMap, svg: Option<Draft>, args: &HeatmapArgs) -> anyhow::Result<()> {
    if let Some(svg) = svg {
        write_svg(svg, heat)?;
    }
    match args.json {
        true => heat.columns.iter().try_for_each(print_json_line),
        false => print_drawn(&heat_text(heat, screen::still())),
    }
}

/// Adds a column for each interval until the last.
fn grow(
    heat: &mut HeatMap,
    watch: &mut Watch<'_>,
    view: &mut View,
    args: &HeatmapArgs,
) -> anyhow::Result<()> {
    let mut lengths = Lengths::default();
    while let Some(intervals) = watch.next()? {
        let length = watch.length(&intervals);
        let elapsed_ns = length.elapsed.as_nanos() as u64;
        let start_ns = unix_ns_before(watch.age()).saturating_sub(elapsed_ns);
        let column = column(&intervals, args, Layer::Disk, start_ns);
        let column = column.lasting(&length).without(watch.lost());
        heat.columns.push(column);
        view.show(heat)?;
        lengths.warn(&length);
        say_lost(watch.lost());
        warn_of_vanished(watch.vanished());
        if args.svg.is_none() && *view != View::Still {
            heat.columns
                .drain(..heat.columns.len().saturating_sub(SHOWN_MAX));
        }
    }
    lengths.sum_up();
    Ok(())
}

/// Where the picture goes while it grows.
#[derive(PartialEq, Eq)]
enum View {
    /// A line for each column.
    Json,
    /// Over the one before, on a terminal, which is so many lines high.
    Moving { drawn: usize },
    /// Nowhere, until it is whole.
    Still,
}

impl View {
    fn new(args: &HeatmapArgs) -> View {
        match (args.json, screen::moving()) {
            (true, _) => View::Json,
            (false, Some(_)) => View::Moving { drawn: 0 },
            (false, None) => View::Still,
        }
    }

    /// A terminal shows at once what will be there.
    fn begin(&mut self, heat: &HeatMap) -> anyhow::Result<()> {
        match self {
            View::Moving { .. } => self.show(heat),
            View::Json | View::Still => Ok(()),
        }
    }

    /// The newest column is there.
    fn show(&mut self, heat: &HeatMap) -> anyhow::Result<()> {
        match self {
            View::Json => heat.columns.last().map_or(Ok(()), print_json_line),
            View::Moving { drawn } => {
                let picture = heat_text(heat, screen::moving().unwrap_or(screen::still()));
                let back = match *drawn {
                    0 => String::new(),
                    lines => format!("\x1b[{lines}A\r"),
                };
                *drawn = picture.lines().count();
                // What was there before is overwritten line by line, so that nothing flickers.
                print_drawn(&format!(
                    "{back}{}\x1b[J",
                    picture.replace('\n', "\x1b[K\n")
                ))
            }
            View::Still => Ok(()),
        }
    }
}

/// Puts a picture into its file.
pub(super) fn write_svg(mut svg: Draft, heat: &HeatMap) -> anyhow::Result<()> {
    let written = svg.out.write_all(heat_svg(heat).as_bytes());
    written.context("--svg")?;
    svg.publish()
}

fn say_lost(lost: u64) {
    if lost > 0 {
        complain(format_args!(
            "{lost} events were lost: some I/Os are missing in what was drawn last."
        ));
    }
}

/// A heat map without columns, of disks or of what else they are called.
pub(super) fn begin(args: &HeatmapArgs, called: &str) -> Result<HeatMap, ParseError> {
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
        [] => format!("all {called}"),
        names => names.join(", "),
    };
    let ops = args
        .op
        .map_or(String::new(), |ops| format!(" ({})", format_ops(ops)));
    Ok(HeatMap {
        title: format!("Latency of {whose}{ops}"),
        interval: args.pace.interval.unwrap_or(INTERVAL),
        crop,
        ..HeatMap::default()
    })
}

/// The column of an interval that began at a moment.
pub(super) fn column(
    intervals: &[DeviceInterval],
    args: &HeatmapArgs,
    layer: Layer,
    start_ns: u64,
) -> Column {
    let mut latencies = Histogram::default();
    let each = intervals.iter().flat_map(|interval| &interval.ops);
    for op in each.filter(|op| args.op.is_none_or(|ops| in_set(&op.op, ops))) {
        let measured = match (layer, args.queued) {
            (Layer::Store, _) | (_, false) => op.at(layer),
            (_, true) => Some(&op.total),
        };
        measured.into_iter().for_each(|one| latencies.merge(one));
    }
    Column::new(
        &latencies,
        start_ns,
        elapsed_of_all(intervals),
        in_flight_of_all(intervals),
    )
}

/// More columns than a terminal has.
const SHOWN_MAX: usize = 1_000;
