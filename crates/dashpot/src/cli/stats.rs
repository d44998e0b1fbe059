//! `stats`: lists the words from which a statistic is made.

use clap::Args;

/// List the words of statistics, and which disks have each
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot stats")]
pub(crate) struct StatsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
