//! `zpool-iostat`: the queues and the latencies of pools.

use clap::Args;

use super::words::{OutputArgs, PoolArgs};

/// Show pools as OpenZFS's zpool iostat does
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "The first lines are averages since the start of the daemon.\n\n\
    Examples: the queues of a daemon's pools, second by second; of a simulated pool\n  \
    dashpot zpool-iostat -q 1\n  \
    dashpot sim lab.toml --report 'zpool-iostat -q 1'"
)]
pub struct ZpoolIostatArgs {
    /// Show average waits
    #[arg(short = 'l')]
    pub latency: bool,
    /// Show the queues at the end of the interval
    #[arg(short = 'q')]
    pub queues: bool,
    /// Show histograms of waits
    #[arg(short = 'w', conflicts_with_all = ["latency", "queues", "sizes"])]
    pub waits: bool,
    /// Show histograms of sizes
    #[arg(short = 'r', conflicts_with_all = ["latency", "queues"])]
    pub sizes: bool,
    /// Show all columns, even on a narrow terminal
    #[arg(long)]
    pub wide: bool,
    /// The formats and the HTML file.
    #[command(flatten)]
    pub output: OutputArgs,
    /// The pools, and the pace.
    #[command(flatten)]
    pub pools: PoolArgs,
}
