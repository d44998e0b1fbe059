//! `amplification`: the operations and bytes at each level of pools.

use clap::Args;
use dashpot_rules::ParseError;

use super::words::{Pace, split_words};

/// Show what clients' I/O becomes in the queues and at the disks
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
'operations' and 'bytes' are the ratios to those of the clients. The first lines
are of the time since the start of the daemon; flushes are not counted.

Examples: of a daemon's pools, every 5 s; of a simulated pool
  dashpot amplification 5
  dashpot sim labs/amplification.toml --report amplification")]
pub(crate) struct AmplificationArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Pools, then an interval and a count: [POOL]... [interval [count]]
    #[arg(value_name = "POOL|interval")]
    pub(crate) words: Vec<String>,
}

impl AmplificationArgs {
    /// The pools, and the pace of the report.
    pub(crate) fn pools_and_pace(&self) -> Result<(&[String], Pace), ParseError> {
        split_words(&self.words)
    }
}
