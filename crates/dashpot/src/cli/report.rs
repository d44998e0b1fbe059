//! The options of reports, which are those of the original tools.

use clap::{Args, ValueEnum};
use dashpot_engine::{Duration, OpSet};
use dashpot_observe::Layer;
use dashpot_rules::{ParseError, parse_interval, parse_ops, parse_report_count, parse_span};

use super::words::layer;

/// How often, and how many times.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Pace {
    /// Seconds between reports, or a time such as 500ms
    #[arg(value_parser = parse_interval, allow_negative_numbers = true)]
    pub(crate) interval: Option<Duration>,
    /// Number of reports [until Ctrl-C]
    #[arg(value_parser = parse_report_count, allow_negative_numbers = true)]
    pub(crate) count: Option<u64>,
}

/// Which disks a report is of.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DeviceArgs {
    /// Only this disk: the daemon's, or the kernel's by name, path or major,minor;
    /// may be given several times
    #[arg(short = 'd', long = "device", value_name = "DEVICE")]
    pub(crate) devices: Vec<String>,
    /// The kernel's disks, without a daemon
    #[arg(short = 'k', long)]
    pub(crate) kernel: bool,
}

/// Show disk latency as histograms, as perf-tools' iolatency does
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example: reads only, five times, with the time of day\n  \
    dashpot iolatency -T -i '*R*' 1 5\n\
    Example: a disk of the kernel, without a daemon, by process\n  \
    dashpot iolatency -d /dev/vda --by process 5"
)]
pub(crate) struct IolatencyArgs {
    /// Measure from arrival, time suspended included; on the kernel's disks from
    /// block_bio_queue, the wait for a tag and the scheduler included
    #[arg(short = 'Q')]
    pub(crate) queued: bool,
    /// Print the time of day before each histogram
    #[arg(short = 'T')]
    pub(crate) timestamp: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Only these types: a glob over R, W, WF (FUA), F, D, such as '*W*', and on
    /// the kernel's disks over all its letters, such as '*S*' and '*M*'
    #[arg(short = 'i', value_name = "TYPE", value_parser = parse_type)]
    pub(crate) iotype: Option<String>,
    /// Use the bucket edges of iolatency's code, not those of its labels
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "iolatency"
    )]
    pub(crate) compat: Option<IolatencyCompat>,
    /// A histogram for each device, type, client, process, cgroup or size
    #[arg(long, value_enum, hide_possible_values = true, value_name = "WHAT")]
    pub(crate) by: Option<ReportBy>,
    /// Percentiles instead of histograms
    #[arg(long, conflicts_with = "compat")]
    pub(crate) percentiles: bool,
    /// Print one report about the past: this time, or what the daemon remembers of it
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    #[arg(conflicts_with_all = ["queued", "interval"])]
    pub(crate) last: Option<Duration>,
    /// Shorten no name where the terminal is narrow
    #[arg(long)]
    pub(crate) wide: bool,
    #[command(flatten)]
    pub(crate) pace: Pace,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a glob that must match the letters of some I/O.
fn parse_type(text: &str) -> Result<String, ParseError> {
    let is_known = |c: char| LETTERS.contains(c) || "*?".contains(c);
    if text.is_empty() || !text.chars().all(is_known) {
        return Err(ParseError::new(format!(
            "'{text}' matches no type: write a glob over the letters {LETTERS}, such as '*R*' for \
             reads"
        )));
    }
    Ok(text.to_owned())
}

/// The kernel's letters for types of I/O, the most frequent first.
const LETTERS: &str = "RWFDSMANEZPU";

/// The values of a report's `--by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportBy {
    Device,
    Type,
    Client,
    Process,
    Cgroup,
    Size,
}

/// What `iolatency --compat` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IolatencyCompat {
    Iolatency,
}

/// Show rates, sizes, waits and queues, as sysstat's iostat does
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  dashpot iostat -x 1\n\
Example: the kernel's disks; this needs no root\n  dashpot iostat -x -k 1\n\
Example: two disks, every second, five times\n  dashpot iostat -d c1t1d0 c1t2d0 1 5")]
pub(crate) struct IostatArgs {
    /// Show waits and queues, too
    #[arg(short = 'x')]
    pub(crate) extended: bool,
    /// Show fewer columns: writes and discards together, with -x all operations
    #[arg(short = 's')]
    pub(crate) short: bool,
    /// Show all columns and whole names where the terminal is narrow, too
    #[arg(long, conflicts_with = "short")]
    pub(crate) wide: bool,
    #[command(flatten)]
    device: DeviceArgs,
    /// More disks; then seconds between reports, or a time such as 500ms, and the
    /// number of reports [until Ctrl-C]
    #[arg(value_name = "DEVICE… INTERVAL COUNT", allow_negative_numbers = true)]
    words: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl IostatArgs {
    /// The disks, with those of `-d` first, and the pace. sysstat's `-d` takes no disk. So a number
    /// after it is the interval, because no disk is named by a number.
    pub(crate) fn split(&self) -> Result<(DeviceArgs, Pace), ParseError> {
        let mut device = self.device.clone();
        let is_number = |word: &String| word.parse::<f64>().is_ok_and(f64::is_finite);
        let mut words: Vec<String> = device
            .devices
            .extract_if(.., |word| is_number(word))
            .collect();
        words.extend_from_slice(&self.words);
        let (more, pace) = split_words(&words)?;
        device.devices.extend_from_slice(more);
        Ok((device, pace))
    }
}

/// Splits words into devices, an interval and a count. The interval is the first word that begins
/// with a digit and has no comma (a comma means a device's number). A disk with such a name needs
/// `-d`.
pub(super) fn split_words(words: &[String]) -> Result<(&[String], Pace), ParseError> {
    // A negative number counts as the interval, so that its own message refuses it.
    let begins = |word: &String| {
        word.trim_start_matches('-')
            .starts_with(|c: char| c.is_ascii_digit())
    };
    let is_time = |word: &String| begins(word) && !word.contains(',');
    let at = words.iter().position(is_time);
    let (devices, pace) = words.split_at(at.unwrap_or(words.len()));
    let (interval, count) = match pace {
        [] => (None, None),
        [interval] => (Some(interval), None),
        [interval, count] => (Some(interval), Some(count)),
        [_, _, more, ..] => {
            let error =
                format!("'{more}' comes after the interval and the count: devices come first");
            return Err(ParseError::new(error));
        }
    };
    let interval = interval.map(|word| parse_interval(word));
    let count = count.map(|word| parse_report_count(word));
    let pace = Pace {
        interval: interval.transpose()?,
        count: count.transpose()?,
    };
    Ok((devices, pace))
}

/// Show latency as DTrace's quantize does, with averages and IOPS
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example: writes during a minute, a line for each disk\n  \
    dashpot quantize --by device --op write --for 60s\n\
    Example: latency above and below the injection\n  \
    dashpot quantize --layer disk --layer store --for 10s"
)]
pub(crate) struct QuantizeArgs {
    /// One histogram or line for each disk
    #[arg(long, value_enum, hide_possible_values = true, value_name = "device")]
    pub(crate) by: Option<QuantizeBy>,
    /// Only these operations: read, write, ...
    #[arg(long, value_name = "OPS", value_parser = parse_ops)]
    pub(crate) op: Option<OpSet>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// At disk (as clients see it), store (below the injection), or volume;
    /// several are shown beside each other [disk]
    #[arg(
        long = "layer",
        value_parser = layer(),
        hide_possible_values = true,
        value_name = "LAYER"
    )]
    pub(crate) layers: Vec<Layer>,
    /// How long to look [until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) lasts: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `quantize --by` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QuantizeBy {
    #[value(alias = "disk")]
    Device,
}
