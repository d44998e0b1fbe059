//! Reports that are drawn when the simulation is over, because they have the columns for all that
//! there is: heat maps, and lines of zios.

use std::mem;

use dashpot_api::FinishedZio;
use dashpot_engine::{Device, Event, Instant, OpSet};
use dashpot_observe::{DeviceInterval, Layer};
use serde_json::Value;

use super::events::Names;
use crate::cli::{HeatmapArgs, ReportKind, SnoopArgs};
use crate::commands::draft::Draft;
use crate::commands::{heatmap, screen};
use dashpot_report::chart::heat_text;
use dashpot_report::heatmap::HeatMap;
use dashpot_report::snoop::{At, Shape, ZioTable};

/// What a report has gathered so far.
pub(super) enum Gathered {
    /// It says everything when it looks.
    Nothing,
    Heat(Box<HeatMap>, Option<Draft>),
    Zios(Zios, Shape),
}

/// The zios that a `snoop` is to show.
#[derive(Default)]
pub(super) struct Zios {
    zios: Vec<FinishedZio>,
    /// How many there were beyond those.
    more: u64,
}

impl Gathered {
    pub(super) fn begin(kind: &ReportKind) -> anyhow::Result<Gathered> {
        Ok(match kind {
            ReportKind::Heatmap { args, layer } => {
                let called = match layer {
                    Layer::Disk => "disks",
                    Layer::Store => "stores",
                    Layer::Volume => "volumes",
                };
                let draft = |place| Draft::create("--svg", place);
                let svg = args.svg.as_deref().map(draft).transpose()?;
                Gathered::Heat(Box::new(heatmap::begin(args, called)?), svg)
            }
            ReportKind::Snoop { args, .. } => {
                Gathered::Zios(Zios::default(), crate::commands::snoop::shape(args))
            }
            _ => Gathered::Nothing,
        })
    }

    /// An interval of a heat map has ended.
    pub(super) fn add_column(
        &mut self,
        intervals: &[DeviceInterval],
        args: &HeatmapArgs,
        layer: Layer,
        start: Instant,
    ) {
        if let Gathered::Heat(heat, _) = self {
            let column = heatmap::column(intervals, args, layer, start.as_nanos());
            heat.columns.push(column);
        }
    }

    /// A zio has finished.
    pub(super) fn take(&mut self, kind: &ReportKind, event: &Event, names: &Names) {
        let (Gathered::Zios(zios, _), ReportKind::Snoop { args, layer }) = (self, kind) else {
            return;
        };
        if is_shown(event, args, *layer, names) {
            match (zios.zios.len() as u64, args.count) {
                (shown, Some(count)) if shown >= count => {}
                (LINES_MAX.., None) => zios.more += 1,
                _ => zios.zios.push(names.zio(event)),
            }
        }
    }

    /// The text and the JSON of what was gathered.
    pub(super) fn end(&mut self) -> anyhow::Result<(String, Vec<Value>)> {
        match mem::replace(self, Gathered::Nothing) {
            Gathered::Nothing => Ok((String::new(), Vec::new())),
            Gathered::Heat(heat, svg) => {
                if let Some(svg) = svg {
                    heatmap::write_svg(svg, &heat)?;
                }
                let json = heat.columns.iter().map(serde_json::to_value);
                Ok((
                    heat_text(&heat, screen::still()),
                    json.collect::<Result<_, _>>()?,
                ))
            }
            Gathered::Zios(zios, shape) => zios.end(shape),
        }
    }
}

impl Zios {
    fn end(self, shape: Shape) -> anyhow::Result<(String, Vec<Value>)> {
        let table = ZioTable::of_zios(&self.zios, shape);
        let lines = self.zios.iter().map(|zio| table.line(zio.ended_ns, zio));
        let mut text: String = [table.header()].into_iter().chain(lines).collect();
        if self.more > 0 {
            text += &format!("{} more are not shown: see --min, --events.\n", self.more);
        }
        let json = self.zios.iter().map(|zio| {
            let at_ns = zio.ended_ns;
            serde_json::to_value(At { at_ns, what: zio })
        });
        Ok((text, json.collect::<Result<_, _>>()?))
    }
}

fn is_shown(event: &Event, args: &SnoopArgs, layer: Layer, names: &Names) -> bool {
    let is_of_layer = match event.device {
        Device::Disk(_) => layer == Layer::Disk,
        Device::Volume(_) => layer == Layer::Volume,
    };
    let devices = &args.device.devices;
    let is_named = || {
        devices
            .iter()
            .any(|name| name == names.device(event.device))
    };
    let ops = OpSet::of(event.op).union(if event.fua { OpSet::FUA } else { OpSet::EMPTY });
    is_of_layer
        && event.ended.since(event.arrived) >= args.min.unwrap_or_default()
        && args.op.is_none_or(|asked| asked.meets(ops))
        && (devices.is_empty() || is_named())
}

/// Lines of a report that does not say how many: what memory has room for, and more than are read.
const LINES_MAX: u64 = 100_000;
