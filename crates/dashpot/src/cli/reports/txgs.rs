//! `txgs`: the transaction groups of pools.

use clap::Args;

/// Show the transaction groups of pools, as OpenZFS's txgs kstat does
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example: the last transaction groups of a simulated pool\n  \
    dashpot sim lab.toml --report txgs"
)]
pub(crate) struct TxgsArgs {
    /// Only this pool
    pub(crate) pool: Option<String>,
    /// Show all columns where the terminal is narrow, too
    #[arg(long)]
    pub(crate) wide: bool,
}
