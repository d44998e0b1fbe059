//! The commands that inspect or change a running daemon, except reports.

use std::ffi::OsString;

use clap::Args;
use dashpot_api::KeepWord;
use dashpot_engine::Duration;
use dashpot_rules::{ParseError, parse_seed, parse_size, parse_span, parse_wait};

use crate::rule::RuleArgs;
use crate::words::keep;

/// Show disks, pools, their clients, and zios in flight
#[derive(Args, Debug)]
#[command(after_help = "\
A zio is one I/O inside dashpot, a shard a thread that serves disks, and its
loop gap the time between two looks at its sockets: see docs/glossary.md.

Example: wait for a daemon that is starting
  dashpot status --wait 10s")]
pub struct StatusArgs {
    /// Show every zio in flight and where it waits
    #[arg(long)]
    pub inflight: bool,
    /// Wait this long for a daemon
    #[arg(long, value_name = "TIME", value_parser = parse_wait)]
    pub wait: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arm a rule on a disk: a delay, an error, a hang, damage
#[derive(Args, Debug)]
#[command(after_help = "\
Examples: one lane of 10 ms; 1 % of the reads at 500 ms while a test runs
  dashpot inject c1t1d0 -D 10ms:1
  dashpot inject c1t1d0 -D 500ms -T read -f 1% -- ./test.sh")]
pub struct InjectArgs {
    /// The disk, or 'all'
    #[arg(value_name = "DISK|all")]
    pub disk: String,
    /// The words of the rule.
    #[command(flatten)]
    pub rule: RuleArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Arm the rule only while this command runs, then print what the rule injected
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// The options of a rule that an update leaves as they are, and refuses.
const KEPT_BY_UPDATE: [&str; 3] = ["with", "name", "lease"];

/// Replace a rule at once; 'proof' then judges the new one alone
#[derive(Args, Debug)]
#[command(mut_args(|arg| {
    let is_kept = KEPT_BY_UPDATE.contains(&arg.get_id().as_str());
    if is_kept { arg.hide(true) } else { arg }
}))]
#[command(after_help = "\
The rule keeps its id, its name and its counters. Latencies and the verdict of
'proof' then cover only I/Os that match after the update. The I/Os that the rule
already holds end as the old rule says.

Example:
  dashpot update 1 -D 25ms:2")]
pub struct UpdateArgs {
    /// The rule's id or name
    #[arg(value_name = "ID|NAME")]
    pub target: String,
    /// The words of the rule.
    #[command(flatten)]
    pub rule: RuleArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Renew the leases of rules, so that they go on
#[derive(Args, Debug)]
#[command(after_help = "\
A rule with a lease is cleared when the lease lapses, and the I/Os that it hangs
go on. Over TCP a rule has a lease of 15 minutes if 'inject' gives it no other.
Without --lease, each lease lasts from now on as long as it lasted before.

Example: a rule that stays as long as someone renews it
  dashpot inject c1t1d0 -D 10ms --name slow --lease 5m
  dashpot renew slow")]
pub struct RenewArgs {
    /// The rules' ids or names
    #[arg(value_name = "ID|NAME", required = true)]
    pub targets: Vec<String>,
    /// How long the leases last from now on [as long as before]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub lease: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// List rules, how many I/Os each matched and held and, if it held none, why
#[derive(Args, Debug)]
#[command(after_help = "\
A rule matches an I/O, then holds it until its delay is over. 'late' counts the
I/Os that were late by more than 1 ms or 5 % of the delay, and 'now' those that
the rule holds at this moment. 'achieved' is the median delay of the I/Os that
it held; after an update, only of those that matched since.

Example:
  dashpot list c1t1d0")]
pub struct ListArgs {
    /// Only this disk
    pub disk: Option<String>,
    /// Show all columns, and break no line
    #[arg(long)]
    pub wide: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Remove rules; the I/Os that they hold stay held
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot clear all --release")]
pub struct ClearArgs {
    /// A rule's id or name, a disk, or 'all'
    #[arg(value_name = "ID|NAME|DISK|all", value_parser = parse_target)]
    pub target: String,
    /// Complete the I/Os that the rules hold, at once
    #[arg(long)]
    pub release: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Return to the lab's state: only its rules, no disk suspended
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot reset")]
pub struct ResetArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// End the daemon, and wait until it has synced its stores
#[derive(Args, Debug)]
#[command(after_help = "\
The daemon finishes the I/O in flight; a hold that lasts longer than 5 s fails.
Detach devices first: 'dashpot detach all'. Files of 'file:' disks stay; the
bytes of 'ram' disks are gone. The disks of 'run' end with its command.

Examples: the daemon at the default address; another one
  dashpot stop
  dashpot --api unix:/tmp/api.sock stop")]
pub struct StopArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Let a suspended disk go on
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot resume c1t1d0")]
pub struct ResumeArgs {
    /// The disk
    pub disk: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Parses a word that names a disk or a rule. An empty word, such as that of an unset variable, is
/// refused.
fn parse_target(text: &str) -> Result<String, ParseError> {
    match text {
        "" => Err(ParseError::new(
            "it is empty: give a rule's id or name, a disk, or 'all'",
        )),
        _ => Ok(text.to_owned()),
    }
}

/// Stop a disk's new zios, and wait until none is in flight
#[derive(Args, Debug)]
#[command(after_help = "Example: an outage of ten seconds\n  dashpot suspend c1t1d0 --for 10s")]
pub struct SuspendArgs {
    /// The disk
    pub disk: String,
    /// Resume by itself after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub lasts: Option<Duration>,
    /// Do not wait for I/O in flight
    #[arg(long)]
    pub now: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Cut the power of lossy disks and pools, and list the loss
#[derive(Args, Debug)]
#[command(after_help = "\
A power cut loses acknowledged writes that no flush (fsync) has covered. Without
--off or --restart the disk keeps serving without its cache, and clients may
write the lost data again from their own caches. To see what survives a power
cut, give --off, and then --restart when the clients are gone. A pool then also
loses its memory: the transaction groups that were not on its disks.

Examples: a power cut, and the disk afterwards; half of the writes lost, torn
  dashpot serve -d db=lossy:file:/var/tmp/db.img,size=1G &
  dashpot crash db --keep none --off
  dashpot crash db --restart
  dashpot crash all --restart --tear 512 --seed 7")]
pub struct CrashArgs {
    /// A disk or a pool with lossy stores, or 'all' of these in turn
    #[arg(value_name = "DISK|POOL|all")]
    pub target: String,
    /// End its connections, and refuse new ones until --restart
    #[arg(long, conflicts_with = "restart")]
    pub off: bool,
    /// End its connections, and serve what survived; if the power is off, do not cut it again
    #[arg(long)]
    pub restart: bool,
    /// Unflushed writes that survive: none, all or random
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "random",
        value_parser = keep(),
        hide_possible_values = true
    )]
    pub keep: KeepWord,
    /// Let a write survive in part, by sectors of 512 or 4096 bytes
    #[arg(long, value_name = "SIZE", value_parser = parse_tear)]
    pub tear: Option<u64>,
    /// Seed that chooses the surviving writes [a random one, printed]
    #[arg(long, value_name = "N", value_parser = parse_seed)]
    pub seed: Option<u64>,
    /// List at most this many lost writes, the oldest first
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn parse_tear(text: &str) -> Result<u64, ParseError> {
    match parse_size(text)? {
        size @ (512 | 4096) => Ok(size),
        _ => Err(ParseError::new(format!(
            "'{text}' is not a size of a sector: give 512 or 4096"
        ))),
    }
}

/// Show what rules have done to the data of a disk
#[derive(Args, Debug)]
#[command(after_help = "\
A rule with --drop, --torn or --corrupt makes bytes of the disk wrong: they are
not what clients were told that they wrote. They are right again once a client
has written them. What a rule does to a read is wrong in its reply only.

Example: lose every 100th write, and see which
  dashpot inject db --drop --every 100 -- fio job.fio
  dashpot faults db")]
pub struct FaultsArgs {
    /// A disk
    #[arg(value_name = "DISK")]
    pub disk: String,
    /// List at most this many places with wrong bytes, and damaged I/Os [20; with --json: all that is kept]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Tell how precise this host lets dashpot be, and why
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot doctor")]
pub struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
