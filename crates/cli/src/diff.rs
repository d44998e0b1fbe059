//! `diff`: how the slow I/Os of recordings differ.

use std::path::PathBuf;

use clap::Args;
use dashpot_observe::{Layer, Predicates};

use crate::reports::HtmlArgs;
use crate::when::Between;
use crate::words::layer;

/// Show how the slow I/Os of recordings differ from the others
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
An I/O is slow if it took longer than the 99th percentile of the other side, or
with --slow, if it has the given facts. A value differs if it has a far larger
share of the time of slow I/Os than of all I/Os.

Examples: five minutes beside the rest; a good day beside a bad one; slow I/Os
  dashpot diff --in today.rec --during 03:10..03:15
  dashpot diff --in bad.rec --baseline good.rec
  dashpot diff --in today.rec --slow 'latency>=10ms'")]
pub struct DiffArgs {
    /// The recording that 'dashpot record' made
    #[arg(long = "in", value_name = "REC")]
    pub recording: PathBuf,
    /// The period in question: 03:10..03:15 [the whole recording]
    #[arg(long, value_name = "FROM..TO")]
    pub during: Option<Between>,
    /// The period to compare it with [all but --during]
    #[arg(long, value_name = "FROM..TO")]
    pub against: Option<Between>,
    /// Another recording to compare it with
    #[arg(long, value_name = "REC")]
    pub baseline: Option<PathBuf>,
    /// Count I/Os with these facts as slow, and compare them with all: latency>=10ms,...
    #[arg(long, value_name = "FACTS", conflicts_with_all = ["against", "baseline"])]
    pub slow: Option<Predicates>,
    /// Only I/Os with these facts, on both sides: op=write,...
    #[arg(long = "where", value_name = "FACTS")]
    pub predicates: Option<Predicates>,
    /// Only this device; may be given several times
    #[arg(short = 'd', long = "device", value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// At disk, volume, fs (sync calls) or kernel [disk, or else volume]
    #[arg(long, value_parser = layer(), value_name = "LAYER", hide_possible_values = true)]
    pub layer: Option<Layer>,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print comma-separated values: a table for each list of the JSON
    #[arg(long)]
    pub csv: bool,
    /// The HTML file.
    #[command(flatten)]
    pub file: HtmlArgs,
}
