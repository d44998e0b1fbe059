//! The options of `top`, which shows disks on the full screen.

use std::path::PathBuf;

use clap::Args;
use dashpot_engine::Duration;
use dashpot_rules::{Speed, parse_interval, parse_speed};

use crate::reports::DeviceArgs;

/// Watch disks, clients and rules on a full screen; keys change them
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Keys: ? shows them all; a arms a rule, c clears one, z suspends, q quits.

Example: two updates a second
  dashpot top 500ms
Example: a write throttle at work, ten times slower than real time
  dashpot top --sim labs/scenario3-openzfs.toml --speed 0.1")]
pub struct TopArgs {
    /// The devices, and the source of their I/Os.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Simulate this lab and watch it: volumes and write throttles, too
    #[arg(long, value_name = "LAB", conflicts_with_all = ["devices", "kernel"])]
    pub sim: Option<PathBuf>,
    /// Simulated seconds per second, 0.001 to 1000 [1]
    #[arg(long, value_name = "N", requires = "sim", value_parser = parse_speed)]
    #[arg(allow_negative_numbers = true)]
    pub speed: Option<Speed>,
    /// Seconds between updates, or a time such as 500ms [1]
    #[arg(value_parser = parse_interval, allow_negative_numbers = true)]
    pub interval: Option<Duration>,
}
