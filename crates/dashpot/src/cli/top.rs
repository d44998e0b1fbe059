//! The full screen.

use clap::Args;
use dashpot_engine::Duration;

use super::report::DeviceArgs;
use crate::spec::parse_interval;

/// Watch disks, clients and rules on a full screen, and change them
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Keys: ? shows them all; a arms a rule, c clears one, z suspends, q quits.

Example: two looks a second
  dashpot top 500ms")]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Seconds between looks, or a time such as 500ms [1]
    #[arg(value_parser = parse_interval, allow_negative_numbers = true)]
    pub(crate) interval: Option<Duration>,
}
