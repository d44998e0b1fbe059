//! Options that several reports have.

use std::path::PathBuf;

use clap::Args;
use dashpot_engine::Duration;
use dashpot_observe::{Layer, Predicates};
use dashpot_rules::{ParseError, parse_interval, parse_report_count, parse_span};

use crate::When;
use crate::words::{each_once, layer};

/// How often a report is repeated, and how many times.
#[derive(Args, Clone, Debug, Default)]
pub struct Pace {
    /// Seconds between reports, or a time such as 500ms
    #[arg(value_parser = parse_interval, allow_negative_numbers = true)]
    pub interval: Option<Duration>,
    /// Number of reports [until Ctrl-C]
    #[arg(value_parser = parse_report_count, allow_negative_numbers = true)]
    pub count: Option<u64>,
}

/// The disks of a report.
#[derive(Args, Clone, Debug, Default)]
pub struct DeviceArgs {
    /// Only this disk: the daemon's, or the kernel's by name, path or major,minor;
    /// may be given several times
    #[arg(short = 'd', long = "device", value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// The kernel's disks, without a daemon
    #[arg(short = 'k', long)]
    pub kernel: bool,
}

impl DeviceArgs {
    /// The devices or pools of dashpot with these names.
    pub fn named(names: &[String]) -> DeviceArgs {
        DeviceArgs {
            devices: names.to_vec(),
            kernel: false,
        }
    }
}

/// The pools of a report, its pace, and its formats.
#[derive(Args, Clone, Debug)]
pub struct PoolArgs {
    /// The formats and the HTML file.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Pools, then an interval and a count: [POOL]... [interval [count]]
    #[arg(value_name = "POOL|interval")]
    words: Vec<String>,
    /// Refused: no recording has the figures of pools
    #[arg(
        long = "in",
        alias = "from",
        alias = "to",
        alias = "last",
        value_name = "REC",
        hide = true
    )]
    #[arg(value_parser = no_recording)]
    _recording: Option<String>,
}

/// Refuses a recording, and explains why reports on pools cannot read one.
fn no_recording(_: &str) -> Result<String, ParseError> {
    Err(ParseError::new(
        "a recording has finished I/Os, and not the throttle, the txgs and the queues of pools: ask about the pool's \
         volumes or disks, such as 'dashpot stat volume.throttle --in REC'",
    ))
}

impl PoolArgs {
    pub fn and_pace(&self) -> Result<(&[String], Pace), ParseError> {
        split_words(&self.words)
    }
}

/// The conditions for the I/Os of a report.
#[derive(Args, Clone, Debug, Default)]
pub struct FilterArgs {
    /// Only I/Os with op=write,... (a comma in a name: '\,')
    #[arg(long = "where", value_name = "FACTS", allow_hyphen_values = true)]
    predicates: Option<Predicates>,
}

impl FilterArgs {
    /// The conditions on the I/Os. Without conditions, the report covers all I/Os.
    pub fn predicates(&self) -> Predicates {
        self.predicates.clone().unwrap_or_default()
    }
}

/// The past that a report is about.
#[derive(Args, Clone, Debug, Default)]
pub struct PeriodArgs {
    /// Report on a recording that 'dashpot record' made
    #[arg(long = "in", value_name = "REC")]
    pub recording: Option<PathBuf>,
    /// From this time of a recording on, such as 03:10
    #[arg(long, value_name = "TIME")]
    pub from: Option<When>,
    /// Up to this time of a recording
    #[arg(long, value_name = "TIME")]
    pub to: Option<When>,
    /// The last 10m, say, of a daemon or a recording
    #[arg(long, value_name = "TIME", value_parser = parse_span, conflicts_with = "from")]
    pub last: Option<Duration>,
}

impl PeriodArgs {
    /// Whether the report is about the past.
    pub fn is_past(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.last.is_some()
    }
}

/// The HTML file of a report.
#[derive(Args, Clone, Debug, Default)]
pub struct HtmlArgs {
    /// Also save the report and its data as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The formats of a report.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    /// The HTML file.
    #[command(flatten)]
    pub file: HtmlArgs,
    /// Print JSON, in lines if the report goes on
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print comma-separated values, named as in the JSON
    #[arg(long)]
    pub csv: bool,
}

/// The I/Os of a report, and its formats.
#[derive(Args, Clone, Debug, Default)]
pub struct IoArgs {
    /// The devices, and the source of their I/Os.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The conditions for the I/Os.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// The recording, and the period, that the report covers.
    #[command(flatten)]
    pub period: PeriodArgs,
    /// The formats and the HTML file.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The layer of a report.
#[derive(Args, Clone, Copy, Debug)]
pub struct LayerArgs {
    /// At disk (as clients see it), store (below the injection), volume, fs (sync
    /// calls), or kernel [disk]
    #[arg(long, value_parser = layer(), default_value = "disk", value_name = "LAYER")]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    pub layer: Layer,
}

/// The layers of a report that shows several at once.
#[derive(Args, Clone, Debug)]
pub struct LayersArgs {
    /// At disk (as clients see it), store (below the injection), volume, fs (sync
    /// calls) or kernel; may be given several times [disk]
    #[arg(long = "layer", value_parser = layer(), value_name = "LAYER")]
    #[arg(hide_possible_values = true)]
    layers: Vec<Layer>,
}

impl LayersArgs {
    /// The layers, at least one.
    pub fn layers(&self) -> Vec<Layer> {
        match &self.layers[..] {
            [] => vec![Layer::Disk],
            named => each_once(named),
        }
    }
}

/// Splits words into devices, an interval and a count. The interval is the first word that begins with a
/// digit and has no comma (a comma means a device's number). A disk whose name begins with a digit needs
/// `-d`.
pub fn split_words(words: &[String]) -> Result<(&[String], Pace), ParseError> {
    // A negative number counts as the interval, so that the error message is about the interval.
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
