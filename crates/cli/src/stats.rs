//! `stats`: lists the words from which a statistic is made.

use clap::Args;

/// List the words that make a statistic, and for which disks each is known
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot stats")]
pub struct StatsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
