//! `heatmap` as a [`Report`]: a column for each interval. On a terminal, a picture of the present is drawn
//! again with each column. Elsewhere, and for the past, the picture is drawn once, at the end.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use dashpot_cli::reports::{IoArgs, LayerArgs, Pace};
use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Duration, OpSet};
use dashpot_observe::{
    DeviceInterval, Layer, Past, Question, Schedule, Seen, elapsed_of_all, in_flight_of_all,
};
use dashpot_rules::{ParseError, format_ops, parse_latency, parse_ops};
use dashpot_text::chart::{Screen, heat_svg, heat_text};
use dashpot_text::heatmap::{Crop, HeatColumn, HeatMap};
use dashpot_text::surface::{Pictures, Surface};

use crate::asked::{Over, ReportRequest, Shared};
use crate::report::{Page, Pages, Report};

/// Show disk latency by time, the number of I/Os as a shade
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Latency and shade are logarithmic, so that a single I/O is visible. On a
terminal the picture moves; a pipe gets it once, at the end.

Example: a minute of writes, as a file; the last ten minutes
  dashpot heatmap --op write --svg writes.svg 1 60
  dashpot heatmap --last 10m
Example: I/O slower than 5 ms on a disk of the kernel, ten times a second
  sudo dashpot heatmap -d /dev/vda --min 5ms 0.1")]
pub struct HeatmapArgs {
    /// The layer.
    #[command(flatten)]
    pub at: LayerArgs,
    /// Only these operations: read, write, ...
    #[arg(long, value_name = "OPS", value_parser = parse_ops)]
    pub op: Option<OpSet>,
    /// Measure from arrival, time suspended included
    #[arg(short = 'Q')]
    pub queued: bool,
    /// Faster I/Os share the lowest row
    #[arg(long, value_name = "TIME", value_parser = parse_latency)]
    pub min: Option<Duration>,
    /// I/Os of this time and slower share the highest row
    #[arg(long, value_name = "TIME", value_parser = parse_latency)]
    pub max: Option<Duration>,
    /// Write the picture to this file, too, at the end
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// The interval, and the number of reports.
    #[command(flatten)]
    pub pace: Pace,
    /// The I/Os, and the formats.
    #[command(flatten)]
    pub of: IoArgs,
}

impl ReportRequest for HeatmapArgs {
    fn report(&self, over: &Over) -> Result<Box<dyn Report>, ParseError> {
        over.check_memory(&self.of.period, &self.pace, self.queued)?;
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

    fn shared(&self) -> Shared<'_> {
        Shared::of_ios(&self.of)
    }

    fn svg(&self) -> Option<&Path> {
        self.svg.as_deref()
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

/// The report: latencies by time.
#[derive(Clone, Debug)]
pub struct HeatmapReport {
    /// The layer at which latencies are measured.
    pub layer: Layer,
    /// The intervals, each of which becomes a column.
    pub schedule: Schedule,
    /// The stretch of the past that the report covers; `None` if the report begins now.
    pub past: Option<Past>,
    /// Whether latencies are measured from the I/O's arrival (`-Q`).
    pub queued: bool,
    /// The operations that the report takes; `None` takes all operations.
    pub ops: Option<OpSet>,
    /// Whether the report also draws an SVG picture of all columns.
    pub svg: bool,
    /// The picture so far.
    pub map: HeatMap,
    /// The number of lines of the picture that was drawn last.
    pub drawn: usize,
}

/// The newest column, if there is one, and the picture, if the report draws it now.
struct Drawn {
    column: Option<HeatColumn>,
    picture: String,
}

impl Report for HeatmapReport {
    fn question(&self) -> Question {
        Question {
            queued: self.queued,
            past: self.past,
            ..Question::latencies(&[self.layer])
        }
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// Draws the empty picture, if the picture is drawn again with each column.
    fn open(&mut self, surface: &Surface) -> Pages {
        match self.moving(surface) {
            Some(screen) => vec![Box::new(Drawn::picture(self.redraw(screen)))],
            None => Pages::new(),
        }
    }

    fn makes_sums(&self) -> bool {
        true
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let column = self.column(seen);
        self.map.zone_ns = surface.zone_ns;
        self.map.columns.push(column.clone());
        let screen = self.moving(surface);
        let picture = screen.map(|screen| self.redraw(screen)).unwrap_or_default();
        if !self.svg && self.still(surface).is_none() {
            let old = self.map.columns.len().saturating_sub(SHOWN_MAX);
            self.map.columns.drain(..old);
        }
        let column = Some(column);
        vec![Box::new(Drawn { column, picture })]
    }

    /// Draws the picture, if it does not move. Draws nothing if the source failed before the first column.
    fn close(&mut self, is_whole: bool, surface: &Surface) -> Pages {
        match self
            .still(surface)
            .filter(|_| is_whole || !self.map.columns.is_empty())
        {
            Some(screen) => vec![Box::new(Drawn::picture(heat_text(&self.map, screen)))],
            None => Pages::new(),
        }
    }

    fn svg(&self) -> Option<String> {
        self.svg.then(|| heat_svg(&self.map))
    }
}

impl HeatmapReport {
    fn column(&self, seen: &Seen) -> HeatColumn {
        let devices: Vec<&DeviceInterval> = seen.summed(self.layer).collect();
        let mut latencies = Histogram::default();
        let ops = devices.iter().flat_map(|interval| &interval.ops);
        for op in ops.filter(|op| self.ops.is_none_or(|ops| op.kind.is_in(ops))) {
            let measured = op.counts.latencies(self.layer, self.queued);
            measured.into_iter().for_each(|one| latencies.merge(one));
        }
        let length = seen.length();
        let start_ns = seen.at_ns.saturating_sub(length.elapsed.as_nanos() as u64);
        let elapsed = elapsed_of_all(devices.iter().copied());
        HeatColumn::new(&latencies, start_ns, elapsed, in_flight_of_all(devices))
            .lasting(&length)
            .without(seen.lost)
            .beside(seen.unplaced)
            .leaving_out(self.not_in_sums(seen))
    }

    /// The screen, if the picture moves. A picture of the past does not move.
    fn moving(&self, surface: &Surface) -> Option<Screen> {
        match surface.pictures {
            Pictures::Moving(screen) if self.past.is_none() => Some(screen),
            _ => None,
        }
    }

    /// The screen, if the picture is drawn at the end.
    fn still(&self, surface: &Surface) -> Option<Screen> {
        match surface.pictures {
            Pictures::Moving(screen) if self.past.is_some() => Some(Screen {
                moving: false,
                ..screen
            }),
            Pictures::Still(screen) => Some(screen),
            Pictures::Moving(_) | Pictures::Hidden => None,
        }
    }

    /// Draws the picture over the previous picture.
    fn redraw(&mut self, screen: Screen) -> String {
        let picture = heat_text(&self.map, screen);
        let back = match self.drawn {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r"),
        };
        self.drawn = picture.lines().count();
        // The old picture is overwritten line by line, so that nothing flickers.
        format!("{back}{}\x1b[J", picture.replace('\n', "\x1b[K\n"))
    }
}

impl Drawn {
    fn picture(picture: String) -> Drawn {
        let column = None;
        Drawn { column, picture }
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.picture)
    }
}

impl Page for Drawn {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        let column = self.column.as_ref()?;
        Some(column)
    }

    fn is_picture(&self) -> bool {
        true
    }
}

/// The maximum number of columns that are shown. No terminal has as many.
const SHOWN_MAX: usize = 1_000;
