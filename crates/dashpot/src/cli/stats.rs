//! `stats`: lists the words from which a statistic is made.

use clap::Args;

/// List the words that make a statistic, and the disks that know each word
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot stats")]
pub(crate) struct StatsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
