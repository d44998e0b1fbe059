//! `record`: records each I/O of disks in files.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use dashpot_engine::Duration;
use dashpot_observe::Predicates;
use dashpot_rules::{ParseError, parse_size, parse_span};

use crate::reports::DeviceArgs;
use crate::when::When;
use crate::words::layer;

/// Record the I/Os of disks in files, for later questions
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
REC is a directory of Parquet files, which DuckDB, Polars and pandas read, too:
ios/ has every I/O, seconds/ the counts of each second, marks/ the events. A
crash loses at most 10 s. If REC has more bytes than --keep, the oldest I/Os go
first; those near a slow period stay longest.
Put REC on another disk: the recorder's own writes are I/Os, too.

Example: record a disk of the kernel until Ctrl-C, in at most 500 MB
  sudo dashpot record -d vda -o today.rec --keep 500M
Example: what took 10 ms or longer, in DuckDB
  duckdb -c \"from 'today.rec/ios/*.parquet'
             where latency_ns >= 10e6 and outcome <> 'in flight'\"
In dashpot: dashpot snoop --in today.rec --min 10ms")]
pub struct RecordArgs {
    /// The work on an existing recording; without it, `record` makes one.
    #[command(subcommand)]
    pub command: Option<RecordCommand>,
    /// The devices, and the source of their I/Os.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// A daemon's disk or volume; with it, -d and -k name the kernel's disks,
    /// and the recording has both; may be given several times
    #[arg(long = "disk", value_name = "NAME")]
    pub disks: Vec<String>,
    /// The directory of the recording, which is made or continued
    #[arg(short = 'o', long, value_name = "REC", required = true)]
    pub output: Option<PathBuf>,
    /// How large the recording may become, and what it keeps longest.
    #[command(flatten)]
    pub kept: KeepArgs,
    /// Only this layer: disk (as clients see it), volume, fs (sync calls), or,
    /// with --disk, kernel; may be given several times [all but fs]
    #[arg(long = "layer", value_parser = layer(), value_name = "LAYER")]
    #[arg(hide_possible_values = true)]
    pub layers: Vec<dashpot_observe::Layer>,
    /// How long to record [until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub lasts: Option<Duration>,
}

/// How large a recording may become, and which I/Os it keeps longest.
#[derive(Args, Clone, Debug, Default)]
pub struct KeepArgs {
    /// The largest size of the recording [2G]
    #[arg(long, value_name = "SIZE", value_parser = parse_keep)]
    pub keep: Option<u64>,
    /// Keep I/Os near one with latency>=1s,... the longest
    #[arg(long, value_name = "FACTS")]
    pub trigger: Option<Predicates>,
}

/// Parses the largest size of a recording.
fn parse_keep(text: &str) -> Result<u64, ParseError> {
    match parse_size(text)? {
        ..KEEP_LEAST => Err(ParseError::new("a recording takes at least 1M")),
        keep => Ok(keep),
    }
}

/// The smallest value of `--keep`. Even one file of a busy disk is larger.
const KEEP_LEAST: u64 = 1 << 20;

/// A recording that a daemon or a report makes while it runs.
#[derive(Args, Clone, Debug, Default)]
#[command(mut_arg("keep", |keep| keep.requires("record")))]
#[command(mut_arg("trigger", |trigger| trigger.requires("record")))]
pub struct BackgroundArgs {
    /// Record all I/Os in this directory; see 'record'
    #[arg(long, value_name = "REC")]
    pub record: Option<PathBuf>,
    /// How large the recording may become, and what it keeps longest.
    #[command(flatten)]
    pub kept: KeepArgs,
}

/// A subcommand of `record`, about a recording that exists.
#[derive(Clone, Debug, Subcommand)]
pub enum RecordCommand {
    Cut(CutArgs),
    Show(ShowArgs),
}

/// Show the content of a recording: devices, periods and events
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  dashpot record show today.rec")]
pub struct ShowArgs {
    /// The recording
    #[arg(value_name = "REC")]
    pub recording: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Copy a part of a recording into a new one, for example for a ticket
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
--anonymous puts numbers in place of the names of devices, clients, processes,
threads and cgroups, and leaves out the host and the words of marks.

Example: five minutes, without names
  dashpot record cut today.rec --from 03:10 --to 03:15 -o ticket.rec --anonymous")]
pub struct CutArgs {
    /// The recording
    #[arg(value_name = "REC")]
    pub recording: PathBuf,
    /// From this time on, such as 03:10
    #[arg(long, value_name = "TIME")]
    pub from: Option<When>,
    /// Up to this time
    #[arg(long, value_name = "TIME")]
    pub to: Option<When>,
    /// Only I/Os with op=write,latency>=10ms,...
    #[arg(long = "where", value_name = "FACTS")]
    pub predicates: Option<Predicates>,
    /// Only this device; may be given several times
    #[arg(short = 'd', long = "device", value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// The directory of the new recording
    #[arg(short = 'o', long, value_name = "NEW")]
    pub output: PathBuf,
    /// Put numbers in place of names
    #[arg(long)]
    pub anonymous: bool,
}
