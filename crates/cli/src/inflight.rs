//! `inflight`: the I/Os that have not ended.

use clap::Args;
use dashpot_engine::Duration;
use dashpot_observe::Layer;
use dashpot_rules::parse_span;

use crate::reports::{DeviceArgs, HtmlArgs};
use crate::words::layer;

/// List I/Os that have not ended, and who waits for them
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
inflight watches the kernel's disks for a moment, and lists the I/Os that begin
then and do not end. Of older I/Os, the kernel knows only how many there are.
inflight also lists threads that wait, with the place in the kernel where they
wait.

Example: what a hanging program waits for
  sudo dashpot inflight -d vda
Example: fsync calls that begin in the next ten seconds, and do not end
  sudo dashpot inflight -d vda --layer fs --for 10s")]
pub struct InflightArgs {
    /// The devices, and the source of their I/Os.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// How long to watch the kernel's disks [1s]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span, default_value = "1s")]
    #[arg(hide_default_value = true)]
    pub lasts: Duration,
    /// Only this layer; fs: this host's sync calls [disk, and a daemon's volumes]
    #[arg(long, value_parser = layer(), value_name = "LAYER")]
    #[arg(hide_possible_values = true)]
    pub layer: Option<Layer>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The HTML file.
    #[command(flatten)]
    pub file: HtmlArgs,
}
