//! `observe`: rates, percentiles and I/O in flight, with a line for each device.

use std::collections::BTreeSet;
use std::fmt;

use clap::{ArgAction, Args};
use dashpot_cli::reports::{DeviceArgs, OutputArgs, Pace, PeriodArgs, split_words};
use dashpot_cli::{BackgroundArgs, NoApi, PageArgs};
use dashpot_engine::{Duration, Op};
use dashpot_observe::{
    DeviceInterval, InFlight, Layer, Length, Percentiles, Question, Schedule, Seen,
};
use dashpot_rules::{Listen, ParseError, parse_listen};
use dashpot_text::surface::Surface;
use dashpot_text::table::{Room, prose_within, time_or_dash};
use serde::Serialize;

use crate::asked::{Over, ReportRequest, Shared};
use crate::figures::per_second;
use crate::report::{Page, Pages, Report, Tells};

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

impl ReportRequest for ObserveArgs {
    fn report(&self, over: &Over) -> Result<Box<dyn Report>, ParseError> {
        self.page_at.check(self.page, self.metrics.is_some())?;
        over.check_recording(&self.period)?;
        if matches!(over, Over::Recorded(_)) && self.background.record.is_some() {
            return Err(ParseError::new(
                "--record cannot be used with the past of a recording: leave one out",
            ));
        }
        let (_, pace) = self.split()?;
        Ok(Box::new(ObserveReport {
            layer: match over {
                Over::Recorded(recorded) => recorded.layer,
                Over::Live(_) | Over::Simulation => Layer::Disk,
            },
            schedule: over.schedule(&pace, SECOND),
            wide: self.wide,
        }))
    }

    fn shared(&self) -> Shared<'_> {
        let names = self.split().map(|(names, _)| DeviceArgs::named(names));
        Shared {
            period: Some(&self.period),
            ..Shared::of(names, &self.output)
        }
    }

    /// If a recording has both a daemon's disks and the kernel's, `observe` is about the kernel's.
    fn layers(&self, live: &[Layer], recorded: &BTreeSet<Layer>) -> Vec<Layer> {
        if recorded.contains(&Layer::Kernel) {
            vec![Layer::Kernel]
        } else {
            live.to_vec()
        }
    }
}

/// The default interval for live disks.
const SECOND: Duration = Duration::from_secs(1);

/// The report: rates and percentiles, in a table for each interval.
#[derive(Clone, Copy, Debug)]
pub struct ObserveReport {
    /// The layer of the disks.
    pub layer: Layer,
    /// The intervals of the report.
    pub schedule: Schedule,
    /// Whether even a narrow terminal gets all columns.
    pub wide: bool,
}

impl Report for ObserveReport {
    fn question(&self) -> Question {
        Question::latencies(&[self.layer])
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn tells(&self) -> Tells {
        Tells::ALL
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        vec![Box::new(Observation {
            at_ns: seen.at_ns,
            length: seen.length(),
            devices: seen.at(self.layer).iter().map(Line::of).collect(),
            lost: seen.lost,
            unmatched: seen.unmatched,
            wide: self.wide,
            room: surface.room(self.wide),
        })]
    }
}

/// The devices of an interval. JSON: `{"at_ns": …, "elapsed_ns": …, "missed": 0, "devices": [{"device":
/// "vda", "reads_per_s": 45.5, …, "bytes_per_s": …, "latency": percentiles, "in_flight": in flight}, …],
/// "lost": 0, "unmatched": 0}`.
#[derive(Clone, Debug, Serialize)]
pub struct Observation {
    /// The interval's end.
    pub at_ns: u64,
    /// The length of the interval, and how many intervals are missing because this one ended too late.
    #[serde(flatten)]
    pub length: Length,
    /// The devices, in display order.
    pub devices: Vec<Line>,
    /// How many events were lost. No figure includes the I/Os of lost events.
    pub lost: u64,
    /// How many completions had no visible start; null if the source sees every start.
    pub unmatched: Option<u64>,
    /// Whether the text shows p90 and the rates of discards and flushes.
    #[serde(skip)]
    pub wide: bool,
    /// The width that the text may have.
    #[serde(skip)]
    pub room: Room,
}

/// The figures of a device.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The device's name.
    pub device: String,
    reads_per_s: f64,
    writes_per_s: f64,
    discards_per_s: f64,
    flushes_per_s: f64,
    bytes_per_s: f64,
    /// The latencies of all operations, from issue to completion.
    latency: Percentiles,
    in_flight: InFlight,
}

impl Line {
    /// The line of a device. As in the kernel's statistics, writing zeroes counts as a write, and a
    /// trim counts as a discard.
    pub fn of(interval: &DeviceInterval) -> Line {
        let per_second = |number| per_second(number, interval.elapsed);
        let rate = |ops: &[Op]| {
            let asked = interval.ops.iter();
            let asked = asked.filter(|op| op.kind.is_any(ops));
            per_second(asked.map(|op| op.counts.completed).sum())
        };
        Line {
            device: interval.device.clone(),
            reads_per_s: rate(&[Op::Read]),
            writes_per_s: rate(&[Op::Write, Op::Zero]),
            discards_per_s: rate(&[Op::Trim]),
            flushes_per_s: rate(&[Op::Flush, Op::Sync]),
            bytes_per_s: per_second(interval.ops.iter().map(|op| op.counts.bytes).sum()),
            latency: Percentiles::of(&interval.latencies()),
            in_flight: interval.in_flight.clone(),
        }
    }
}

impl Page for Observation {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }
}

impl fmt::Display for Observation {
    /// Writes a line for each device, and a line about missing events.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_table(f)?;
        if let Some(line) = self.length.line() {
            f.write_str(&prose_within(self.room, &line))?;
        }
        if self.lost > 0 {
            let lost = self.lost;
            writeln!(f, "Lost: {lost} events; their I/Os are missing here.")?;
        }
        writeln!(f)
    }
}

impl Observation {
    fn write_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (room, wide) = (self.room, self.wide);
        let shown = COLUMNS.iter().filter(|column| wide || !column.wide);
        let columns: Vec<(&Column, usize)> = shown
            .map(|column| (column, column.width_of(&self.devices)))
            .collect();
        let taken = columns.iter().map(|(_, width)| 1 + width).sum();
        let names = self.devices.iter().map(|line| line.device.as_str());
        let width = room.widest_name(taken, names).max("device".len());
        let line = |name: &str, cell: &dyn Fn(&Column) -> String| {
            let cells = columns.iter();
            let cells = cells.map(|(column, width)| format!(" {:>width$}", cell(column)));
            format!("{name:width$}{}\n", cells.collect::<String>())
        };
        f.write_str(&line("device", &|column| column.title.to_owned()))?;
        self.devices.iter().try_for_each(|device| {
            let name = room.name_beside(taken, &device.device);
            f.write_str(&line(&name, &|column| (column.cell)(device)))
        })
    }
}

struct Column {
    title: &'static str,
    width: usize,
    /// Whether the column is left out on a terminal of 80 columns, which has no room for it beside a name of
    /// 17 letters.
    wide: bool,
    cell: fn(&Line) -> String,
}

impl Column {
    /// The column's width for these devices, which is more than usual if there are rates of millions.
    fn width_of(&self, devices: &[Line]) -> usize {
        let cells = devices.iter().map(|device| (self.cell)(device).len());
        cells.fold(self.width, usize::max)
    }
}

const fn column(title: &'static str, width: usize, cell: fn(&Line) -> String) -> Column {
    Column {
        title,
        width,
        wide: false,
        cell,
    }
}

const fn wide(title: &'static str, width: usize, cell: fn(&Line) -> String) -> Column {
    Column {
        wide: true,
        ..column(title, width, cell)
    }
}

const COLUMNS: [Column; 12] = [
    column("r/s", 6, |line| rate(line.reads_per_s)),
    column("w/s", 6, |line| rate(line.writes_per_s)),
    wide("d/s", 5, |line| rate(line.discards_per_s)),
    wide("f/s", 5, |line| rate(line.flushes_per_s)),
    column("kB/s", 7, |line| rate(line.bytes_per_s / 1024.0)),
    column("n", 7, |line| line.latency.n.to_string()),
    column("p50", 6, |line| time_or_dash(line.latency.p50_ns)),
    wide("p90", 6, |line| time_or_dash(line.latency.p90_ns)),
    column("p99", 6, |line| time_or_dash(line.latency.p99_ns)),
    column("max", 6, |line| time_or_dash(line.latency.max_ns)),
    column("fly", 4, |line| {
        let zios = line.in_flight.zios;
        zios.map_or_else(|| "-".to_owned(), |zios| zios.to_string())
    }),
    column("oldest", 6, |line| time_or_dash(line.in_flight.oldest_ns)),
];

/// A rate, with one decimal if the rate is below 100.
fn rate(per_second: f64) -> String {
    let decimals = usize::from(per_second < 100.0);
    format!("{per_second:.decimals$}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dashpot_engine::histogram::Histogram;
    use dashpot_observe::{Counts, DeviceInterval, InFlight, Kind, Length, OpInterval};
    use dashpot_text::table::{Room, assert_fits};
    use expect_test::expect;

    use super::{
        BackgroundArgs, Line, NoApi, Observation, ObserveArgs, OutputArgs, PageArgs, PeriodArgs,
    };

    fn op(op: &str, completed: u64, ns: u64) -> OpInterval {
        let counts = Counts {
            completed,
            bytes: completed * 4_096,
            disk: Some(Box::new(Histogram::of(ns, completed))),
            ..Counts::default()
        };
        OpInterval::of(Kind::of_word(op), None, counts)
    }

    fn interval(device: &str, ops: Vec<OpInterval>, in_flight: InFlight) -> Line {
        Line::of(&DeviceInterval {
            device: device.to_owned(),
            elapsed: Duration::from_secs(2),
            ops,
            busy: Duration::ZERO,
            depth_time_ns: 0,
            depths: None,
            in_flight,
        })
    }

    #[test]
    fn a_line_for_each_device_and_a_word_on_what_was_lost() {
        let waiting = InFlight {
            zios: Some(3),
            oldest_ns: Some(2_500_000_000),
            ..InFlight::default()
        };
        let ops = vec![
            op("read", 90, 1_000_000),
            op("zero", 10, 40_000_000),
            op("read", 1, 1_000_000),
        ];
        let observation = Observation {
            at_ns: 7,
            length: Length {
                elapsed: Duration::from_secs(2),
                asked: Some(Duration::from_millis(500)),
                missed: 3,
                ..Length::default()
            },
            devices: vec![
                interval("nvme0n1", ops, waiting),
                interval("vda", Vec::new(), InFlight::default()),
            ],
            lost: 7,
            unmatched: Some(0),
            wide: true,
            room: Room::UNBOUNDED,
        };
        expect![[r#"
            device     r/s    w/s   d/s   f/s    kB/s       n    p50    p90    p99    max  fly oldest
            nvme0n1   45.5    5.0   0.0   0.0     202     101 1.00ms 1.00ms 40.0ms 40.0ms    3  2.50s
            vda        0.0    0.0   0.0   0.0     0.0       0      -      -      -      -    0      -
            Interval: 2.000 s instead of 0.5 s; 3 intervals were missed.
            Lost: 7 events; their I/Os are missing here.

        "#]].assert_eq(&observation.to_string());
        let narrow = Observation {
            wide: false,
            room: Room(Some(80)),
            ..observation
        };
        let narrow = narrow.to_string();
        expect![[r#"
            device     r/s    w/s    kB/s       n    p50    p99    max  fly oldest
            nvme0n1   45.5    5.0     202     101 1.00ms 40.0ms 40.0ms    3  2.50s
            vda        0.0    0.0     0.0       0      -      -      -    0      -
            Interval: 2.000 s instead of 0.5 s; 3 intervals were missed.
            Lost: 7 events; their I/Os are missing here.

        "#]]
        .assert_eq(&narrow);
        assert_fits(Room(Some(80)), &narrow);
    }

    #[test]
    fn it_fits_the_screen_whatever_the_names_and_the_numbers() {
        let waiting = InFlight {
            zios: Some(123_456),
            oldest_ns: Some(123_000_000_000),
            ..InFlight::default()
        };
        let mut many = interval("vda", Vec::new(), waiting);
        many.reads_per_s = 12_345_678.0;
        many.bytes_per_s = 1e12;
        many.latency.n = 1_234_567_890;
        let long = "mapper-of-a-name-that-nobody-would-type-twice-0";
        let mut observation = Observation {
            at_ns: 7,
            length: Length::of(Duration::from_secs(2)),
            devices: vec![many, interval(long, Vec::new(), InFlight::default())],
            lost: 0,
            unmatched: None,
            wide: false,
            room: Room::UNBOUNDED,
        };
        for columns in [80, 100] {
            let room = Room(Some(columns));
            observation.room = room;
            assert_fits(room, &observation.to_string());
        }
    }

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
