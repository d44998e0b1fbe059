//! `run` and `serve`: the disks, and their addresses.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dashpot_rules::{
    ApiAddress, DiskConfig, DiskInjection, Listen, ParseError, parse_api, parse_disk,
    parse_disk_injection, parse_listen, parse_name, parse_seed, parse_shards, parse_size,
};

use crate::BackgroundArgs;

/// The disks to serve: those of a lab file, those named here, or both.
#[derive(Args, Clone, Debug, Default)]
pub struct LabArgs {
    /// A lab file; without one and without -d: RAM disks c1t1d0 and c1t2d0, and a pool tank with a volume tank/foo
    pub lab: Option<PathBuf>,
    /// Serve a disk: NAME=STORE[,size=N][,offset=N][,block=N][,ro]; a STORE is ram, null, file:PATH, dev:PATH, lossy:STORE (see crash) or path:DIR
    #[arg(short = 'd', long = "disk", value_name = "DISK", value_parser = parse_disk)]
    pub disks: Vec<DiskConfig>,
    /// Arm a rule at the start: '[DISK] -D 10ms', see inject
    #[arg(short = 'r', long = "rule", value_name = "RULE", value_parser = parse_rule)]
    #[arg(allow_hyphen_values = true)]
    pub rules: Vec<DiskInjection>,
    /// Let RAM disks be larger than the free memory
    #[arg(long)]
    pub overcommit: bool,
    /// Threads that serve disks [one per CPU, at most 2]
    #[arg(long, value_name = "N", value_parser = parse_shards)]
    pub shards: Option<usize>,
    /// Memory for finished I/Os, for snoop and heatmap --last [64M]; 0 for none
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub events: Option<u64>,
    /// Spin to meet deadlines: auto or never; a CPU quota means never
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub spin: SpinWhen,
    /// Seed of all random draws [a random one]
    #[arg(long, value_name = "N", value_parser = parse_seed)]
    pub seed: Option<u64>,
}

/// When shards spin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SpinWhen {
    #[default]
    Auto,
    Never,
}

/// The fate of a program's calls when dashpot is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnLoss {
    Pass,
    Fail,
    Kill,
}

/// The answer to a program that asks for an io_uring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UringWord {
    Count,
    Refuse,
}

/// The disks and volumes that are attached while they are served.
#[derive(Args, Clone, Debug, Default)]
pub struct AttachedArgs {
    /// Attach these disks and volumes, or all; see 'attach'
    #[arg(
        id = "attach",
        long,
        value_name = "DISK,…",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        value_parser = parse_name
    )]
    pub disks: Option<Vec<String>>,
}

/// The options of served disks about metrics, access to the API, a recording, and a file for scripts.
#[derive(Args, Clone, Debug, Default)]
pub struct ServiceArgs {
    /// Address for Prometheus at /metrics, without a token
    #[arg(long, value_name = "ADDR", value_parser = parse_listen)]
    pub metrics: Option<Listen>,
    /// Token of the API over TCP [env: DASHPOT_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Answer HTTP requests to this host name, too
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// The recording of the served I/Os.
    #[command(flatten)]
    pub recording: BackgroundArgs,
    /// Write the URIs to this file when clients can connect
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// End, too, when the process that started dashpot ends
    #[arg(long)]
    pub exit_with_parent: bool,
}

/// The options that the help of `run` leaves to that of `serve`, because both together are too long.
const SHOWN_BY_SERVE: [&str; 8] = [
    "metrics",
    "token_file",
    "allow_host",
    "record",
    "keep",
    "trigger",
    "ready_file",
    "exit_with_parent",
];

/// Serve disks for the life of a command
#[derive(Args, Debug)]
#[command(mut_args(|arg| if SHOWN_BY_SERVE.contains(&arg.get_id().as_str()) {
arg.hide(true)
} else {
arg
}))]
#[command(after_help = "\
CMD finds its first disk in $DASHPOT_URI, each disk in $DASHPOT_URI_DISK, its
devices in $DASHPOT_DEV and $DASHPOT_DEV_DISK, and the API in $DASHPOT_API;
with --api tcp:127.0.0.1:0 it has a page. --metrics, --token-file, --allow-host,
--record and --ready-file are as in 'serve'. Under sudo, the user who typed
it runs CMD and owns the devices. Exits with CMD's status, 125 to 127 for its
own failures, 3 if only a --check fails.

Example:
  dashpot run -d db=ram,size=4G -r '-D 2ms' -r '-D 500ms -f 1%' -- ./test.sh")]
pub struct RunArgs {
    /// Where the API of the disks listens [a private socket]
    // Unlike other commands, `run` starts a daemon of its own, so it does not ask the one in $DASHPOT_API.
    #[arg(id = "api", long = "api", value_name = "ADDR", value_parser = parse_api)]
    pub api: Option<ApiAddress>,
    /// The disks to serve.
    #[command(flatten)]
    pub lab: LabArgs,
    /// The disks and volumes that are attached while they are served.
    #[command(flatten)]
    pub attach: AttachedArgs,
    /// Attach, and mount the first disk here (ext4 if empty)
    #[arg(long, value_name = "DIR")]
    pub mount: Option<PathBuf>,
    /// If dashpot dies: pass or fail calls, kill CMD [kill]
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    pub on_loss: Option<OnLoss>,
    /// Path disks: count or refuse io_uring, libaio [count]
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true)]
    pub uring: Option<UringWord>,
    /// Expect this of the disks; see 'dashpot check'
    #[arg(long, value_name = "EXPR")]
    pub check: Vec<String>,
    /// Write a report for a pipeline here; see 'check'
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Write the rules and what they did to this file at the end, as JSON. The Python package reads it.
    #[arg(long, value_name = "FILE", hide = true)]
    pub outcomes: Option<PathBuf>,
    /// The options that `run` and `serve` share.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Serve disks until told to stop
#[derive(Args, Debug)]
#[command(after_help = "\
ADDR is unix:PATH, unix:- (a private directory) or tcp:HOST:PORT (0: any port).
Only your user can connect to a unix socket: chmod or chown it to let others in.
With --attach, 'sudo dashpot serve' drops root, and then runs as your user.

Example:
  dashpot serve -d c1t1d0=file:/var/tmp/d0.img --nbd tcp:127.0.0.1:10809")]
pub struct ServeArgs {
    /// The disks to serve.
    #[command(flatten)]
    pub lab: LabArgs,
    /// Address for NBD clients, instead of the lab file's
    #[arg(long, value_name = "ADDR", value_parser = parse_listen)]
    pub nbd: Vec<Listen>,
    /// The disks and volumes that are attached while they are served.
    #[command(flatten)]
    pub attach: AttachedArgs,
    /// The options that `run` and `serve` share.
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// Parses a rule that is armed as long as its disk is served.
fn parse_rule(text: &str) -> Result<DiskInjection, ParseError> {
    let DiskInjection { disk, injection } = parse_disk_injection(text)?;
    let injection = injection.unleased()?;
    Ok(DiskInjection { disk, injection })
}
