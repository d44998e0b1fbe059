//! `quantize`: latencies in powers of two.

use clap::{Args, ValueEnum};
use dashpot_engine::{Duration, OpSet};
use dashpot_rules::{parse_ops, parse_span};

use super::words::{IoArgs, LayersArgs};

/// Show latency as DTrace's quantize does, with averages and IOPS
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example: writes during a minute, a line for each disk\n  \
    dashpot quantize --by device --op write --for 60s\n\
    Example: latency above and below the injection\n  \
    dashpot quantize --layer disk --layer store --for 10s"
)]
pub struct QuantizeArgs {
    /// One histogram or line for each disk
    #[arg(long, value_enum, hide_possible_values = true, value_name = "device")]
    pub by: Option<QuantizeBy>,
    /// Only these operations: read, write, ...
    #[arg(long, value_name = "OPS", value_parser = parse_ops)]
    pub op: Option<OpSet>,
    /// The layers.
    #[command(flatten)]
    pub at: LayersArgs,
    /// How long to watch [until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub lasts: Option<Duration>,
    /// The I/Os, and the formats.
    #[command(flatten)]
    pub of: IoArgs,
}

/// The values of `quantize --by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QuantizeBy {
    #[value(alias = "disk")]
    Device,
}
