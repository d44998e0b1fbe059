//! The options of `check`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use dashpot_engine::Duration;
use dashpot_rules::parse_span;

/// Check figures of disks, volumes and rules against expectations
#[derive(Args, Debug)]
#[command(after_help = "\
SUBJECT.METRIC OP VALUE, in quotes. OP is <, <=, >, >=, == or !=.
  DISK or DISK.OP,  p50 p90 p95 p99 p99.9 max mean, count, failed, iops,
  VOLUME, VOLUME.OP bytes_per_s, in_flight; path disks: unheld, interrupted
  RULE, rule(RULE)  matched, injected, held, late, failed, damaged, beaten, ...,
                    requested.p50, achieved.p50, lateness.p99, ...
Latencies need a unit. A check without data fails. Figures count from the start
of the daemon or the arming of the rule; with --for or a command, only from now.

The exit status is 0 if all checks hold, and 3 if one does not. A command that
fails gives its own status; 125 to 127 are as for 'run'. An unknown name gives 2
before the command starts; write rule(RULE) for a rule that the command arms.

Examples: the time since the start; the time of a test
  dashpot check 'wal.flush.p99 < 30ms' 'wal.failed == 0'
  dashpot check 'wal.flush.p99 < 30ms' 'rule(slow).held >= 100' -- ./test.sh")]
pub struct CheckArgs {
    /// An expectation, such as 'wal.flush.p99 < 30ms'
    #[arg(required = true, value_name = "EXPR")]
    pub expressions: Vec<String>,
    /// Check what happens from now until this time has passed
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(conflicts_with = "command")]
    pub lasts: Option<Duration>,
    /// Write summary.json, junit.xml and report.md here, for a pipeline
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Run this command, and check what happens while it runs
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
