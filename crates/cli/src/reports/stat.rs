//! `stat`: shows any statistic.

use clap::Args;
use dashpot_observe::Statistic;

use super::words::{IoArgs, Pace};

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
    /// Show whole names, even on a narrow terminal
    #[arg(long)]
    pub wide: bool,
    /// The interval, and the number of reports.
    #[command(flatten)]
    pub pace: Pace,
    /// The I/Os, and the formats.
    #[command(flatten)]
    pub of: IoArgs,
}
