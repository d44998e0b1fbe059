//! Commands that ask no daemon.

use clap::Args;
use dashpot_rules::{ApiAddress, parse_api};

/// A hidden `--api` for commands that ask no daemon. It does nothing, so that `--api` may be in an
/// alias.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NoApi {
    #[arg(id = "api", long = "api", value_name = "ADDR", value_parser = parse_api, hide = true)]
    _api: Option<ApiAddress>,
}
