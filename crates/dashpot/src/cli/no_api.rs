//! Commands that need no daemon.

use clap::Args;
use dashpot_rules::{ApiAddress, parse_api};

/// A hidden `--api` for commands that need no daemon. It has no effect, so that an alias may contain
/// `--api`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NoApi {
    #[arg(id = "api", long = "api", value_name = "ADDR", value_parser = parse_api, hide = true)]
    _api: Option<ApiAddress>,
}
