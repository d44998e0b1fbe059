//! `iostat`: average rates, sizes, waits and queues.

use clap::Args;
use dashpot_rules::{Decimal, ParseError};

use super::words::{DeviceArgs, LayerArgs, OutputArgs, Pace, PeriodArgs, split_words};

/// Show rates, sizes, waits and queues, as sysstat's iostat does
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The first report, since the kernel's boot or the daemon's start, counts as one.

Example:\n  dashpot iostat -x 1\n\
Example: the kernel's disks; this needs no root\n  dashpot iostat -x -k 1\n\
Example: two disks, every second, five times\n  dashpot iostat -y -d c1t1d0 c1t2d0 1 5")]
pub struct IostatArgs {
    /// Show waits and queues, too
    #[arg(short = 'x')]
    pub extended: bool,
    /// Show fewer columns: writes with discards; with -x, all operations together
    #[arg(short = 's')]
    pub short: bool,
    /// Leave out the first report, which covers the time since the disks' start
    #[arg(short = 'y')]
    pub no_past: bool,
    /// Show all columns and whole names, even on a narrow terminal
    #[arg(long, conflicts_with = "short")]
    pub wide: bool,
    #[command(flatten)]
    device: DeviceArgs,
    /// The layer.
    #[command(flatten)]
    pub at: LayerArgs,
    /// The recording, and the period, that the report covers.
    #[command(flatten)]
    pub period: PeriodArgs,
    /// More disks; then seconds between reports, or a time such as 500ms, and the
    /// number of reports [until Ctrl-C]
    #[arg(value_name = "DEVICE… INTERVAL COUNT", allow_negative_numbers = true)]
    words: Vec<String>,
    /// The formats and the HTML file.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl IostatArgs {
    /// The disks, with those of `-d` first, and the pace. In sysstat, `-d` takes no disk, so users write `-d
    /// 1 5`. A number after `-d` is therefore the interval; the name of a disk always has a letter.
    pub fn split(&self) -> Result<(DeviceArgs, Pace), ParseError> {
        let mut device = self.device.clone();
        let is_number = |word: &String| Decimal::parse(word).is_some();
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
