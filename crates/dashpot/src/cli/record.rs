//! `record`: keeps the single I/Os of disks in files.

use std::path::PathBuf;

use clap::Args;
use dashpot_engine::Duration;
use dashpot_rules::{parse_size, parse_span};

use super::reports::DeviceArgs;
use super::words::layer;

/// Record the I/Os of disks in files, for later questions
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
REC is a directory of Parquet files, which DuckDB, ClickHouse, Polars and pandas
read, too: ios/ has every I/O, seconds/ the counts of each second, marks/ losses
and clock steps. A crash loses at most 10 s. If REC has more bytes than --keep,
the oldest I/Os go first; those within a minute of a slow period stay longest.
Take a REC on another disk: the recorder's own writes are I/Os, too.

Example: record a disk of the kernel until Ctrl-C, in at most 500 MB
  sudo dashpot record -d vda -o today.rec --keep 500M
Example: what took 10 ms or longer, in DuckDB
  duckdb -c \"select * from 'today.rec/ios/*.parquet' where latency_ns >= 10e6\"
Example: the same, in dashpot
  dashpot snoop --in today.rec --min 10ms")]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// The directory of the recording; it is made, or continued
    #[arg(short = 'o', long, value_name = "REC")]
    pub(crate) output: PathBuf,
    /// At most this many bytes [2G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "2G")]
    #[arg(hide_default_value = true)]
    pub(crate) keep: u64,
    /// At disk (as clients see it) or volume [disk]
    #[arg(long, value_parser = layer(), default_value = "disk", value_name = "LAYER")]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    pub(crate) layer: dashpot_observe::Layer,
    /// How long to record [until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) lasts: Option<Duration>,
}
