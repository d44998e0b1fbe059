//! `iolatency`: latencies as histograms.

use clap::{Args, ValueEnum};
use dashpot_observe::Dimension;
use dashpot_rules::ParseError;

use super::words::{IoArgs, LayersArgs, Pace};
use crate::words::dimension;

/// Show disk latency as histograms, as perf-tools' iolatency does
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example: reads only, five times, with the time of day\n  \
    dashpot iolatency -T -i '*R*' 1 5\n\
    Example: a disk of the kernel, without a daemon, and the sync calls above it\n  \
    dashpot iolatency -d vda --layer fs --layer disk --by process 5"
)]
pub struct IolatencyArgs {
    /// Measure from arrival (on the kernel: block_bio_queue)
    #[arg(short = 'Q')]
    pub queued: bool,
    /// Print the time of day before each histogram
    #[arg(short = 'T')]
    pub timestamp: bool,
    /// The layers.
    #[command(flatten)]
    pub at: LayersArgs,
    /// Only these types: a glob over R, W, WF (FUA), F, D
    #[arg(short = 'i', value_name = "TYPE", value_parser = parse_type)]
    pub iotype: Option<String>,
    /// Use the bucket edges of iolatency's code
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "iolatency"
    )]
    pub compat: Option<IolatencyCompat>,
    /// A histogram for each value; see 'dashpot stats'
    #[arg(long, value_parser = dimension(), hide_possible_values = true)]
    #[arg(value_name = "DIMENSION")]
    pub by: Option<Dimension>,
    /// Percentiles instead of histograms
    #[arg(long, conflicts_with = "compat")]
    pub percentiles: bool,
    /// Show whole names, even on a narrow terminal
    #[arg(long)]
    pub wide: bool,
    /// The interval, and the number of reports.
    #[command(flatten)]
    pub pace: Pace,
    /// The I/Os, and the formats.
    #[command(flatten)]
    pub of: IoArgs,
}

/// Parses a glob that must match the letters of some I/O.
fn parse_type(text: &str) -> Result<String, ParseError> {
    let is_known = |c: char| LETTERS.contains(c) || "*?".contains(c);
    if text.is_empty() || !text.chars().all(is_known) {
        return Err(ParseError::new(format!(
            "'{text}' matches no type: write a glob over the letters {LETTERS}, such as '*R*' for \
             reads"
        )));
    }
    Ok(text.to_owned())
}

/// The kernel's letters for types of I/O, the most frequent first.
const LETTERS: &str = "RWFDSMANEZPU";

/// The values of `iolatency --compat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IolatencyCompat {
    Iolatency,
}
