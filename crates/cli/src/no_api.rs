//! Commands that need no daemon.

use clap::Args;
use dashpot_rules::{ApiAddress, parse_api};

/// A hidden `--api`, without effect, for commands that need no daemon. With it, a shell alias for dashpot
/// that contains `--api` works for these commands, too.
#[derive(Args, Clone, Debug, Default)]
pub struct NoApi {
    #[arg(id = "api", long = "api", value_name = "ADDR", value_parser = parse_api, hide = true)]
    _api: Option<ApiAddress>,
}
