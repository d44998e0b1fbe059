//! `sim`: a lab under the virtual clock, and the reports over it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use dashpot_engine::Duration;
use dashpot_observe::Layer;
use dashpot_rules::{ParseError, parse_seed, parse_span, parse_wait};

use super::heatmap::HeatmapArgs;
use super::no_api::NoApi;
use super::observe::ObserveArgs;
use super::report::{IolatencyArgs, IostatArgs, Pace, QuantizeArgs, split_words};
use super::snoop::SnoopArgs;
use super::words::layer;

/// Simulate labs: hours of disk time in seconds, the same every time
#[derive(Args, Debug)]
#[command(after_help = "\
A report is one of those below, with its options, over the simulated time:
  iolatency, iostat, quantize, heatmap, snoop
                                as the commands; --layer volume, disk or store
  observe [DISK]... [interval [count]]
                                as the command, of simulated disks
  zpool-iostat [-l|-q|-w|-r] [POOL]... [interval [count]]
  txgs [POOL]                   the last 100 transaction groups, at the end
--report 'txgs --help' has a report's own options.

Example: two throttles beside each other, in numbers and in a picture
  dashpot sim legacy.toml openzfs.toml --chart .
Example: the queues of the pools, second by second
  dashpot sim lab.toml --report 'zpool-iostat -q 1' --report txgs")]
pub(crate) struct SimArgs {
    /// Lab files; several are compared
    #[arg(required_unless_present_any = ["swarm", "tunables"], value_name = "LAB")]
    pub(crate) labs: Vec<PathBuf>,
    /// Simulate this long, instead of the lab's time [60s]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) lasts: Option<Duration>,
    /// Ignore calls before this time, instead of the lab's warm-up [0s]
    #[arg(long, value_name = "TIME", value_parser = parse_wait)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) warmup: Option<Duration>,
    /// Seed of all draws, instead of the lab's [1]
    #[arg(long, value_name = "N", value_parser = parse_seed)]
    pub(crate) seed: Option<u64>,
    /// Print a report instead of the summary; may be given several times
    #[arg(long = "report", value_name = "WORDS", value_parser = parse_report)]
    pub(crate) reports: Vec<ReportWords>,
    /// Write a line for each zio, of one lab, to this file
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) events: Option<PathBuf>,
    /// Write pictures to this directory: latency*.svg and series.svg
    #[arg(long, value_name = "DIR")]
    pub(crate) chart: Option<PathBuf>,
    /// Check contents and invariants at every step, at several times the cost
    #[arg(long)]
    pub(crate) check: bool,
    /// Simulate this many random labs instead, and check everything
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(conflicts_with_all = ["labs", "lasts", "warmup", "reports", "events", "chart", "check", "json"])]
    pub(crate) swarm: Option<u64>,
    /// List the tunables of a lab's [pool.NAME], and do nothing else
    #[arg(long)]
    #[arg(conflicts_with_all = ["labs", "lasts", "warmup", "seed", "reports", "events", "chart", "check", "swarm"])]
    pub(crate) tunables: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    _no_api: NoApi,
}

/// A report, and its words on the command line.
#[derive(Clone, Debug)]
pub(crate) struct ReportWords {
    pub(crate) words: String,
    pub(crate) kind: ReportKind,
}

/// What a `--report` says.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ReportKind {
    /// Show latency as histograms, as perf-tools' iolatency does
    Iolatency {
        #[command(flatten)]
        args: IolatencyArgs,
        /// Of volumes, of disks, or of what is below the injection: volume, disk, store
        #[arg(long, default_value = "disk", value_parser = layer(), hide_possible_values = true)]
        layer: Layer,
    },
    /// Show rates, sizes, waits and queues, as sysstat's iostat does
    Iostat {
        #[command(flatten)]
        args: IostatArgs,
        /// Of volumes, of disks, or of what is below the injection: volume, disk, store
        #[arg(long, default_value = "disk", value_parser = layer(), hide_possible_values = true)]
        layer: Layer,
    },
    /// Show latency as DTrace's quantize does, with averages and IOPS
    Quantize(QuantizeArgs),
    /// Show latency by time, the number of I/Os as a shade
    Heatmap {
        #[command(flatten)]
        args: HeatmapArgs,
        /// Of disks, of volumes, or of stores alone
        #[arg(long, default_value = "disk", value_parser = layer(), hide_possible_values = true)]
        layer: Layer,
    },
    /// Show I/Os one by one: their waits, and the rules behind them
    Snoop {
        #[command(flatten)]
        args: SnoopArgs,
        /// Of disks or of volumes
        #[arg(long, default_value = "disk", value_parser = layer(), hide_possible_values = true)]
        layer: Layer,
    },
    /// Show rates, percentiles and I/O in flight of disks
    Observe(ObserveArgs),
    ZpoolIostat(ZpoolIostatArgs),
    Txgs(TxgsArgs),
}

impl ReportKind {
    fn has_last(&self) -> bool {
        match self {
            ReportKind::Iolatency { args, .. } => args.last.is_some(),
            ReportKind::Heatmap { args, .. } => args.last.is_some(),
            _ => false,
        }
    }

    fn has_json(&self) -> bool {
        match self {
            ReportKind::Iolatency { args, .. } => args.json,
            ReportKind::Iostat { args, .. } => args.json,
            ReportKind::Quantize(args) => args.json,
            ReportKind::Heatmap { args, .. } => args.json,
            ReportKind::Snoop { args, .. } => args.json,
            ReportKind::Observe(args) => args.json,
            ReportKind::ZpoolIostat(_) | ReportKind::Txgs(_) => false,
        }
    }
}

/// Show pools as OpenZFS's zpool iostat does
#[derive(Args, Clone, Debug)]
pub(crate) struct ZpoolIostatArgs {
    /// Average waits
    #[arg(short = 'l')]
    pub(crate) latency: bool,
    /// Queues at the end of the interval
    #[arg(short = 'q')]
    pub(crate) queues: bool,
    /// Histograms of waits
    #[arg(short = 'w', conflicts_with_all = ["latency", "queues", "sizes"])]
    pub(crate) waits: bool,
    /// Histograms of sizes
    #[arg(short = 'r', conflicts_with_all = ["latency", "queues"])]
    pub(crate) sizes: bool,
    /// Show all columns where the terminal is narrow, too
    #[arg(long)]
    pub(crate) wide: bool,
    /// Pools, then an interval and a count: [POOL]... [interval [count]]
    #[arg(value_name = "POOL|interval")]
    pub(crate) words: Vec<String>,
}

impl ZpoolIostatArgs {
    /// The pools, and the pace of the report.
    pub(crate) fn pools_and_pace(&self) -> Result<(&[String], Pace), ParseError> {
        split_words(&self.words)
    }
}

/// Show the transaction groups of pools, as OpenZFS's txgs kstat does
#[derive(Args, Clone, Debug)]
pub(crate) struct TxgsArgs {
    /// Only this pool
    pub(crate) pool: Option<String>,
    /// Show all columns where the terminal is narrow, too
    #[arg(long)]
    pub(crate) wide: bool,
}

/// A parser for the words of a report in one string.
#[derive(Parser)]
#[command(
    name = "--report",
    no_binary_name = true,
    max_term_width = 80,
    disable_help_subcommand = true
)]
struct Report {
    #[command(subcommand)]
    kind: ReportKind,
}

/// Parses a report and its options in one string.
pub(crate) fn parse_report(text: &str) -> Result<ReportWords, ParseError> {
    let words = shlex::split(text)
        .ok_or_else(|| ParseError::new(format!("'{text}' has a quote that does not end")))?;
    let report = Report::try_parse_from(words).map_err(|error| match error.kind() {
        clap::error::ErrorKind::DisplayHelp => error.exit(),
        clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => ParseError::new(
            "no report is named: give iolatency, iostat, quantize, heatmap, snoop, observe, \
             zpool-iostat or txgs",
        ),
        _ => ParseError::new(first_line(&error.to_string())),
    })?;
    if let ReportKind::ZpoolIostat(args) = &report.kind {
        args.pools_and_pace()?;
    }
    if let ReportKind::Iostat { args, .. } = &report.kind {
        args.split()?;
    }
    if let ReportKind::Observe(args) = &report.kind {
        args.split()?;
        if args.metrics.is_some() {
            return Err(ParseError::new(
                "--metrics: Prometheus scrapes a daemon or 'dashpot observe', not a simulation",
            ));
        }
    }
    if report.kind.has_last() {
        return Err(ParseError::new(
            "--last: a simulation has nothing before it: leave it out",
        ));
    }
    if report.kind.has_json() {
        return Err(ParseError::new(
            "--json is not a report's here: give it to 'dashpot sim' itself",
        ));
    }
    Ok(ReportWords {
        words: text.to_owned(),
        kind: report.kind,
    })
}

/// The error itself, without the usage of a command that does not exist.
fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
