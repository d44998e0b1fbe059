//! `amplification`: the operations and bytes at each level of pools.

use clap::Args;

use super::words::{OutputArgs, PoolArgs};

/// Show the I/O of pools at volumes, in queues and at disks
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
×r, ×rB, ×w and ×wB are reads, their bytes, writes and their bytes, divided by
those of the clients. The first lines cover the time since the start of the
daemon. Flushes do not count. Pools have no intent log: OpenZFS writes a sync
write twice (×wB above 2), dashpot once.

Examples: of a daemon's pools, every 5 s; of a simulated pool
  dashpot amplification 5
  dashpot sim labs/amplification.toml --report amplification")]
pub struct AmplificationArgs {
    /// The formats and the HTML file.
    #[command(flatten)]
    pub output: OutputArgs,
    /// The pools, and the pace.
    #[command(flatten)]
    pub pools: PoolArgs,
}
