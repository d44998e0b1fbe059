//! `txgs`: the transaction groups of pools.

use clap::Args;

use super::words::HtmlArgs;

/// Show the transaction groups of pools, as OpenZFS's txgs does
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples: the last hundred of a daemon's pool; of a simulated pool\n  \
    dashpot txgs tank\n  \
    dashpot sim lab.toml --report txgs"
)]
pub(crate) struct TxgsArgs {
    /// Only this pool
    pub(crate) pool: Option<String>,
    /// Show all columns, even on a narrow terminal
    #[arg(long)]
    pub(crate) wide: bool,
    #[command(flatten)]
    pub(crate) file: HtmlArgs,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print comma-separated values, named as in the JSON
    #[arg(long)]
    pub(crate) csv: bool,
}
