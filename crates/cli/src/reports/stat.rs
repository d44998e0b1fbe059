//! `stat`: shows any statistic.

use clap::Args;
use dashpot_observe::Statistic;

use super::words::{DeviceArgs, FilterArgs, HtmlArgs, Pace, PeriodArgs};

/// Show I/Os, bytes, errors, latencies, busy time by any fact
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples: slow writes by client; bytes of one of the kernel's disks by process
  dashpot stat 'disk.ops[op=write][latency>=10ms][client]' 1
  dashpot stat 'disk.bytes[process]' -d /dev/vda 5 3
'dashpot stats' lists the words. Of a daemon's disks, figures by device, op,
client or size come from counters, all others from events, which may get lost.")]
pub struct StatArgs {
    /// The statistic: LAYER.METRIC[condition]...[DIMENSION]
    #[arg(value_name = "STATISTIC")]
    pub statistic: Statistic,
    /// The devices, and the source of their I/Os.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The conditions for the I/Os.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// The recording, and the period, that the report covers.
    #[command(flatten)]
    pub period: PeriodArgs,
    /// Show whole names, even on a narrow terminal
    #[arg(long)]
    pub wide: bool,
    /// The interval, and the number of reports.
    #[command(flatten)]
    pub pace: Pace,
    /// The HTML file.
    #[command(flatten)]
    pub file: HtmlArgs,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print comma-separated values
    #[arg(long)]
    pub csv: bool,
}
