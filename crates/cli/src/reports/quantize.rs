//! `quantize`: latencies in powers of two.

use clap::{Args, ValueEnum};
use dashpot_engine::{Duration, OpSet};
use dashpot_rules::{parse_ops, parse_span};

use super::words::{DeviceArgs, FilterArgs, HtmlArgs, LayersArgs, PeriodArgs};

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
    /// The conditions for the I/Os.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// The devices, and the source of their I/Os.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The layers.
    #[command(flatten)]
    pub at: LayersArgs,
    /// The recording, and the period, that the report covers.
    #[command(flatten)]
    pub period: PeriodArgs,
    /// How long to watch [until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub lasts: Option<Duration>,
    /// The HTML file.
    #[command(flatten)]
    pub file: HtmlArgs,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print comma-separated values, named as in the JSON
    #[arg(long)]
    pub csv: bool,
}

/// The values of `quantize --by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QuantizeBy {
    #[value(alias = "disk")]
    Device,
}
