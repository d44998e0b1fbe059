//! Reports over virtual time: each looks when its interval has ended, and says what it would say
//! over a daemon. What comes before the first interval, and is since the start there, is left out:
//! nothing was done before the start.

use anyhow::Context;
use dashpot_engine::{Duration, Event, Instant};
use dashpot_export::complain;
use dashpot_observe::{By, DeviceInterval, Intervals, Layer, Span};
use dashpot_rules::{ParseError, nearest};
use dashpot_sim::Simulation;
use serde::Serialize;
use serde_json::Value;

use super::events::Names;
use super::gathered::Gathered;
use super::look::{DeviceLook, PoolLook, devices, pools};
use super::tally::Tally;
use crate::cli::{DeviceArgs, Pace, ReportKind, ReportWords, TxgsArgs, ZpoolIostatArgs};
use crate::commands::quantize::Watched;
use crate::commands::screen::room;
use crate::commands::{heatmap, iolatency, iostat, quantize};
use dashpot_report::clock::time_of_day;
use dashpot_report::iolatency::{ENDING, Interval, opening};
use dashpot_report::txgs::Txgs;
use dashpot_report::zpool_iostat::{View, ZpoolIostat};

/// A report on its way, and what it has said so far.
pub(super) struct Report<'a> {
    words: &'a ReportWords,
    /// On the virtual clock.
    intervals: Intervals,
    last: Look,
    gathered: Gathered,
    /// If events are needed.
    tally: Option<Tally>,
    pub(super) text: String,
    pub(super) json: Vec<Value>,
}

/// What a report looks at.
struct Look {
    at: Instant,
    disks: Vec<DeviceLook>,
    volumes: Vec<DeviceLook>,
    pools: Vec<PoolLook>,
}

impl<'a> Report<'a> {
    /// A report that begins now.
    pub(super) fn begin(
        words: &'a ReportWords,
        simulation: &Simulation,
    ) -> anyhow::Result<Report<'a>> {
        let (interval, count) = schedule(&words.kind)?;
        let refused = || format!("--report '{}'", words.words);
        let lasts = simulation.scenario().lasts;
        check_intervals(interval, count, lasts).with_context(refused)?;
        let last = Look::new(&words.kind, simulation).with_context(refused)?;
        let text = match &words.kind {
            // A simulation ends by itself.
            ReportKind::Iolatency { .. } => opening(interval.as_nanos() as f64 / 1e9, false),
            _ => String::new(),
        };
        Ok(Report {
            words,
            intervals: Intervals::new(simulation.now().as_nanos(), interval.as_nanos(), count),
            last,
            gathered: Gathered::begin(&words.kind)?,
            tally: tally(&words.kind, simulation).with_context(refused)?,
            text,
            json: Vec::new(),
        })
    }

    pub(super) fn words(&self) -> &'a str {
        &self.words.words
    }

    /// Whether it has to be given events.
    pub(super) fn wants_events(&self) -> bool {
        self.tally.is_some() || matches!(self.words.kind, ReportKind::Snoop { .. })
    }

    /// Takes the event of a zio that has finished.
    pub(super) fn take(&mut self, event: &Event, names: &Names) {
        if !self.intervals.is_over() {
            self.gathered.take(&self.words.kind, event, names);
        }
        if let Some(tally) = &mut self.tally {
            tally.add(event);
        }
    }

    /// When it looks next.
    pub(super) fn next(&self) -> Instant {
        let due_ns = self.intervals.due_ns();
        due_ns.map_or(Instant::NEVER, Instant::from_nanos)
    }

    /// Looks if it is time to, or if this is the end.
    pub(super) fn go_on(&mut self, simulation: &Simulation, over: bool) -> anyhow::Result<()> {
        let now_ns = simulation.now().as_nanos();
        let span = match over {
            true => self.intervals.close(now_ns),
            false => self.intervals.end(now_ns),
        };
        let Some(span) = span else {
            return Ok(());
        };
        let look = Look::new(&self.words.kind, simulation)?;
        self.say(&look, &span)?;
        self.say_length(&span);
        self.last = look;
        self.tally.iter_mut().for_each(Tally::clear);
        Ok(())
    }

    /// What is said when there is nothing more to look at.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        if matches!(self.words.kind, ReportKind::Iolatency { .. }) {
            self.text += ENDING;
        }
        let (text, json) = self.gathered.end()?;
        self.text += &text;
        self.json.extend(json);
        Ok(())
    }

    fn say(&mut self, look: &Look, span: &Span) -> anyhow::Result<()> {
        let (length, mention) = (span.length(), span.mention());
        let disks = self.intervals(&look.disks, &self.last.disks);
        let volumes = self.intervals(&look.volumes, &self.last.volumes);
        let at = |layer| match layer {
            Layer::Volume => volumes.as_slice(),
            Layer::Disk | Layer::Store => &disks,
        };
        match &self.words.kind {
            ReportKind::Iolatency { args, layer } => {
                let report = iolatency::report(at(*layer), args, *layer);
                let time = args.timestamp.then(|| time_of_day(look.at.as_nanos()));
                self.keep(&Interval {
                    at_ns: look.at.as_nanos(),
                    time,
                    mention,
                    length,
                    ..report
                })
            }
            ReportKind::Iostat { args, layer } => {
                self.keep(&iostat::report(at(*layer), length, mention, args))
            }
            ReportKind::Quantize(args) => {
                let reports = quantize::reports(args, Watched::whole(length), at);
                reports.iter().try_for_each(|report| self.keep(report))
            }
            ReportKind::Heatmap { args, layer } => {
                let start = self.last.at;
                self.gathered.add_column(at(*layer), args, *layer, start);
                Ok(())
            }
            // Its zios come one by one.
            ReportKind::Snoop { .. } => Ok(()),
            ReportKind::ZpoolIostat(args) => {
                let pools = look.pools.iter().zip(&self.last.pools);
                let report = ZpoolIostat {
                    view: view(args),
                    titled: self.json.is_empty(),
                    room: room(args.wide),
                    pools: pools.map(|(later, earlier)| later.since(earlier)).collect(),
                };
                self.keep(&report)
            }
            ReportKind::Txgs(args) => look.pools.iter().try_for_each(|pool| {
                if look.pools.len() > 1 {
                    self.text += &format!("{}:\n", pool.name);
                }
                self.keep(&Txgs {
                    txgs: pool.stats.txgs.clone(),
                    room: room(args.wide),
                })
            }),
        }
    }

    /// Says beside a text that is another tool's how long its last interval was, if the simulation
    /// has ended before it.
    fn say_length(&self, span: &Span) {
        let is_silent = matches!(
            self.words.kind,
            ReportKind::Iolatency { .. } | ReportKind::Heatmap { .. } | ReportKind::ZpoolIostat(_)
        );
        if let Some(line) = span.length().line().filter(|_| is_silent) {
            complain(format_args!("{}: {line}", self.words.words));
        }
    }

    fn intervals(&self, later: &[DeviceLook], earlier: &[DeviceLook]) -> Vec<DeviceInterval> {
        let pairs = later.iter().zip(earlier);
        let interval = |(later, earlier): (&DeviceLook, &DeviceLook)| {
            let interval = later.since(earlier);
            match &self.tally {
                Some(tally) => DeviceInterval {
                    ops: tally.ops(later.device),
                    ..interval
                },
                None => interval,
            }
        };
        pairs.map(interval).collect()
    }

    fn keep(&mut self, report: &(impl Serialize + ToString)) -> anyhow::Result<()> {
        self.text += &report.to_string();
        self.json.push(serde_json::to_value(report)?);
        Ok(())
    }
}

impl Look {
    fn new(kind: &ReportKind, simulation: &Simulation) -> Result<Look, ParseError> {
        let mut look = Look {
            at: simulation.now(),
            disks: Vec::new(),
            volumes: Vec::new(),
            pools: Vec::new(),
        };
        match kind {
            ReportKind::Iolatency { args, layer } => {
                look.devices(simulation, &[*layer], &args.device)?;
            }
            ReportKind::Iostat {
                layer: Layer::Store,
                ..
            } => {
                return Err(ParseError::new(
                    "a store has no queue that iostat could show: take iolatency or quantize",
                ));
            }
            ReportKind::Iostat { args, layer } => {
                look.devices(simulation, &[*layer], &args.split()?.0)?;
            }
            ReportKind::Quantize(args) => {
                look.devices(simulation, quantize::layers(args), &args.device)?;
            }
            ReportKind::Heatmap { args, layer } => {
                look.devices(simulation, &[*layer], &args.device)?;
            }
            ReportKind::Snoop {
                layer: Layer::Store,
                ..
            } => {
                return Err(ParseError::new(
                    "what a store does is a part of what its disk does: see STORE in '--layer disk'",
                ));
            }
            ReportKind::Snoop { args, layer } => {
                look.devices(simulation, &[*layer], &args.device)?;
            }
            ReportKind::ZpoolIostat(args) => {
                look.pools = pools_of(simulation, args.pools_and_pace()?.0)?;
            }
            ReportKind::Txgs(TxgsArgs { pool, .. }) => {
                look.pools = pools_of(simulation, pool.as_slice())?;
            }
        }
        Ok(look)
    }

    /// Looks at what these layers are of.
    fn devices(
        &mut self,
        simulation: &Simulation,
        layers: &[Layer],
        args: &DeviceArgs,
    ) -> Result<(), ParseError> {
        for layer in layers {
            let mut devices = devices_of(simulation, *layer)?;
            keep_devices(&mut devices, args)?;
            match layer {
                Layer::Volume => self.volumes = devices,
                Layer::Disk | Layer::Store => self.disks = devices,
            }
        }
        Ok(())
    }
}

/// Counts events for a report that looks at what only they tell.
fn tally(kind: &ReportKind, simulation: &Simulation) -> Result<Option<Tally>, ParseError> {
    let (by, store) = match kind {
        ReportKind::Iolatency { args, layer } => {
            (iolatency::question(args).by, *layer == Layer::Store)
        }
        ReportKind::Quantize(args) => (None, quantize::layers(args).contains(&Layer::Store)),
        ReportKind::Heatmap { layer, .. } => (None, *layer == Layer::Store),
        _ => (None, false),
    };
    match by {
        Some(By::Process | By::Cgroup) => Err(ParseError::new(
            "--by: a simulation's clients are its workloads: --by client, size, device and type \
             can be had",
        )),
        None if !store => Ok(None),
        by => Ok(Some(Tally::new(by, simulation.scenario()))),
    }
}

fn devices_of(simulation: &Simulation, layer: Layer) -> Result<Vec<DeviceLook>, ParseError> {
    let devices = devices(simulation, layer);
    if devices.is_empty() {
        return Err(ParseError::new(
            "the lab has no volume; leave out '--layer volume'",
        ));
    }
    Ok(devices)
}

fn keep_devices(all: &mut Vec<DeviceLook>, args: &DeviceArgs) -> Result<(), ParseError> {
    if args.kernel {
        return Err(ParseError::new(
            "-k means the kernel's disks; a simulation has its own",
        ));
    }
    match args.devices.is_empty() {
        true => Ok(()),
        false => keep_named(all, &args.devices, |device| &device.name),
    }
}

fn pools_of(simulation: &Simulation, names: &[String]) -> Result<Vec<PoolLook>, ParseError> {
    let mut pools = pools(simulation);
    if pools.is_empty() {
        return Err(ParseError::new("the lab has no pool; look at its disks"));
    }
    if !names.is_empty() {
        keep_named(&mut pools, names, |pool| &pool.name)?;
    }
    Ok(pools)
}

/// Keeps those that are named, all of which have to be there.
fn keep_named<T>(
    all: &mut Vec<T>,
    names: &[String],
    name_of: fn(&T) -> &String,
) -> Result<(), ParseError> {
    let known: Vec<&str> = all.iter().map(|one| name_of(one).as_str()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let remedy = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("there is {}", known.join(", ")),
        };
        return Err(ParseError::new(format!("there is no '{name}'; {remedy}")));
    }
    all.retain(|one| names.contains(name_of(one)));
    Ok(())
}

/// The interval of a report, and how many it has if not until the end.
fn schedule(kind: &ReportKind) -> anyhow::Result<(Duration, Option<u64>)> {
    // Without an interval there is one report, of everything.
    let of_pace = |pace: &Pace| match pace.interval {
        Some(interval) => (interval, pace.count),
        None => (Duration::MAX, Some(1)),
    };
    Ok(match kind {
        ReportKind::Iolatency { args, .. } => {
            let interval = args.pace.interval.unwrap_or(iolatency::INTERVAL);
            (interval, args.pace.count)
        }
        ReportKind::Iostat { args, .. } => of_pace(&args.split()?.1),
        ReportKind::Quantize(args) => (args.lasts.unwrap_or(Duration::MAX), Some(1)),
        ReportKind::Heatmap { args, .. } => {
            let interval = args.pace.interval.unwrap_or(heatmap::INTERVAL);
            (interval, args.pace.count)
        }
        ReportKind::Snoop { args, .. } => (args.lasts.unwrap_or(Duration::MAX), Some(1)),
        ReportKind::ZpoolIostat(args) => of_pace(&args.pools_and_pace()?.1),
        ReportKind::Txgs(_) => (Duration::MAX, Some(1)),
    })
}

/// Refuses more intervals than memory has room for.
fn check_intervals(
    interval: Duration,
    left: Option<u64>,
    lasts: Duration,
) -> Result<(), ParseError> {
    let intervals = lasts.as_nanos() / interval.as_nanos().max(1);
    match intervals.min(left.unwrap_or(u64::MAX)) > INTERVALS_MAX {
        false => Ok(()),
        true => Err(ParseError::new(format!(
            "{intervals} intervals of {interval} in {lasts}: at most {INTERVALS_MAX} are kept; \
             make the interval longer, or give a count"
        ))),
    }
}

/// What a report keeps of an interval is up to 10 KB.
const INTERVALS_MAX: u64 = 100_000;

fn view(args: &ZpoolIostatArgs) -> View {
    match (args.waits, args.sizes) {
        (true, _) => View::Latencies,
        (_, true) => View::Sizes,
        _ => View::Lines {
            latency: args.latency,
            queues: args.queues,
        },
    }
}
