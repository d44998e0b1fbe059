//! The options of `observe`: devices, interval, columns, and the address for Prometheus.

use clap::{ArgAction, Args};
use dashpot_rules::{Listen, ParseError, parse_listen};

use super::words::{OutputArgs, Pace, PeriodArgs, split_words};
use crate::no_api::NoApi;
use crate::{BackgroundArgs, PageArgs};

/// Watch the kernel's disks: rates, percentiles, I/O in flight
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
observe needs root, and no daemon. With --metrics it serves the same figures to
Prometheus until Ctrl-C, as of the end of the last interval. With --record any
report of the kernel's disks can be asked about the past: --from, --to, --last.
With --page it prints the address of a page with heat maps of the same disks.

Example: two disks, every two seconds, five times
  dashpot observe vda /dev/nvme0n1 2 5")]
pub struct ObserveArgs {
    /// Names, paths or major,minor [all]; then seconds between reports, or a
    /// time such as 500ms, [1] and the number of reports [until Ctrl-C]
    #[arg(value_name = "DEVICE… INTERVAL COUNT", allow_negative_numbers = true)]
    words: Vec<String>,
    /// Before the devices, as in other reports.
    #[arg(short = 'd', hide = true, action = ArgAction::Count)]
    _devices_follow: u8,
    /// Address where Prometheus scrapes /metrics; it asks for no token
    #[arg(long, value_name = "ADDR", value_parser = parse_listen, conflicts_with = "recording")]
    pub metrics: Option<Listen>,
    /// Show the disks in the browser, too
    #[arg(long)]
    pub page: bool,
    /// The address and the host names of the page.
    #[command(flatten)]
    pub page_at: PageArgs,
    /// The recording of the same I/Os.
    #[command(flatten)]
    pub background: BackgroundArgs,
    /// The recording, and the period, that the report covers.
    #[command(flatten)]
    pub period: PeriodArgs,
    /// Show all columns: rates of discards (d/s) and flushes (f/s), and p90, too
    #[arg(long)]
    pub wide: bool,
    /// The formats and the HTML file.
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    _no_api: NoApi,
}

impl ObserveArgs {
    /// The devices and the pace.
    pub fn split(&self) -> Result<(&[String], Pace), ParseError> {
        split_words(&self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::{BackgroundArgs, NoApi, ObserveArgs, OutputArgs, PageArgs, PeriodArgs};

    fn split(words: &str) -> Result<(usize, u64, Option<u64>), String> {
        let args = ObserveArgs {
            _devices_follow: 0,
            words: words.split_whitespace().map(str::to_owned).collect(),
            metrics: None,
            page: false,
            page_at: PageArgs::default(),
            background: BackgroundArgs::default(),
            period: PeriodArgs::default(),
            wide: false,
            output: OutputArgs::default(),
            _no_api: NoApi::default(),
        };
        let (devices, pace) = args.split().map_err(|error| error.to_string())?;
        let interval = pace
            .interval
            .map_or(0, |interval| interval.as_nanos() / 1_000_000);
        Ok((devices.len(), interval, pace.count))
    }

    #[test]
    fn devices_come_first() {
        assert_eq!(split(""), Ok((0, 0, None)));
        assert_eq!(split("vda 7,0 /dev/sda"), Ok((3, 0, None)));
        assert_eq!(split("vda 7,0 500ms 5"), Ok((2, 500, Some(5))));
        assert_eq!(split("2"), Ok((0, 2_000, None)));
        assert_eq!(split("0.5 3"), Ok((0, 500, Some(3))));
        for words in [
            "1 vda", "1 2 vda", "vda 0", "1 0", "vda 1x", "-1", "vda 1 -1",
        ] {
            assert!(split(words).is_err(), "{words}");
        }
    }
}
