//! `txgs`: the transaction groups of pools.

use clap::Args;

use super::words::OutputArgs;

/// Show the transaction groups of pools, as OpenZFS's txgs does
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples: the last hundred of a daemon's pool; of a simulated pool\n  \
    dashpot txgs tank\n  \
    dashpot sim lab.toml --report txgs"
)]
pub struct TxgsArgs {
    /// Only this pool
    pub pool: Option<String>,
    /// Show all columns, even on a narrow terminal
    #[arg(long)]
    pub wide: bool,
    /// The formats and the HTML file.
    #[command(flatten)]
    pub output: OutputArgs,
}
