//! `heatmap`: latency by time.

use std::path::PathBuf;

use clap::Args;
use dashpot_engine::{Duration, OpSet};
use dashpot_rules::{parse_latency, parse_ops};

use super::words::{IoArgs, LayerArgs, Pace};

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
