//! `snoop`: a line for each finished I/O.

use clap::Args;
use dashpot_engine::{Duration, OpSet};
use dashpot_rules::{parse_duration, parse_ops, parse_span};

use super::words::{IoArgs, LayerArgs};

/// Show I/Os as they finish: their waits, and the rules behind them
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
MOSTLY is the longest of the waits that add up to TOTAL; --wide shows them all:
RECV for the payload, SUSPEND of the disk, STORE at work, HOLD by rules, LATE
after those until dashpot replied, REPLY until the client took the reply. If a
rule held the I/O, LATE is dashpot's own error, stops of the host included. If
no rule did, LATE is the work of the shard, and MOSTLY calls it SHARD. RULE has
the rule that decided, and its lane; write+f is a write with FUA. On the
kernel's disks, QUEUE is the time until the driver got the I/O, DEVICE the rest.

Example: the I/Os that take 10 ms or longer, and why
  dashpot snoop --min 10ms
Example: the next 20 writes to a disk of the kernel, with processes and threads
  sudo dashpot snoop -d /dev/vda --op write -n 20 --wide
Example: the I/Os of 10 ms or longer in a recording
  dashpot snoop --in today.rec --min 10ms")]
pub struct SnoopArgs {
    /// The layer.
    #[command(flatten)]
    pub at: LayerArgs,
    /// Only I/Os that took at least this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    #[arg(allow_hyphen_values = true)]
    pub min: Option<Duration>,
    /// Only these operations: read, write, ...
    #[arg(long, value_name = "OPS", value_parser = parse_ops)]
    pub op: Option<OpSet>,
    /// How long to watch [until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub lasts: Option<Duration>,
    /// End after this many lines
    #[arg(short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Show every wait, offset and thread; shorten no name
    #[arg(long)]
    pub wide: bool,
    /// The I/Os, and the formats.
    #[command(flatten)]
    pub of: IoArgs,
}
