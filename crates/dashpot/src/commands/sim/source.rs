//! A simulation as the source of one report. A simulation does not wait for its reports: it tells
//! this source when to look.

use dashpot_api::FinishedZio;
use dashpot_engine::{Device, Event, Instant, OpSet};
use dashpot_observe::{
    By, DeviceInterval, Intervals, Layer, PoolInterval, Question, Schedule, Seen, Span, Subject,
    Wanted,
};
use dashpot_rules::{ParseError, nearest};
use dashpot_sim::Simulation;

use super::events::Names;
use super::look::{DeviceLook, PoolLook, devices, pools};
use super::tally::SimTally;

/// The source of one report.
pub(super) struct SimSource {
    question: Question,
    chosen: Chosen,
    /// On the virtual clock.
    intervals: Intervals,
    last: Look,
    /// The tally, if latencies need events.
    tally: Option<SimTally>,
}

/// The devices or pools of a report.
pub(super) struct Chosen {
    /// Their names; empty for all.
    pub(super) names: Vec<String>,
    /// Whether the user asked for the kernel's disks (`-k`).
    pub(super) kernel: bool,
}

/// The state at one moment.
struct Look {
    disks: Vec<DeviceLook>,
    volumes: Vec<DeviceLook>,
    pools: Vec<PoolLook>,
}

impl SimSource {
    /// Begins to look at a simulation.
    pub(super) fn new(
        question: Question,
        schedule: &Schedule,
        chosen: Chosen,
        simulation: &Simulation,
    ) -> Result<SimSource, ParseError> {
        if chosen.kernel {
            return Err(ParseError::new(
                "-k means the kernel's disks; a simulation has its own",
            ));
        }
        check_intervals(schedule, simulation)?;
        Ok(SimSource {
            intervals: schedule.begin(simulation.now().as_nanos()),
            last: Look::new(&question, &chosen.names, simulation)?,
            tally: tally(&question, simulation)?,
            question,
            chosen,
        })
    }

    /// Whether latencies need events.
    pub(super) fn wants_events(&self) -> bool {
        self.tally.is_some()
    }

    /// Takes the event of a zio that has finished.
    pub(super) fn take(&mut self, event: &Event) {
        if let Some(tally) = &mut self.tally {
            tally.add(event);
        }
    }

    /// The zio of an event, if the report takes it and an interval is running.
    pub(super) fn finished(
        &self,
        wanted: &Wanted,
        event: &Event,
        names: &Names,
    ) -> Option<FinishedZio> {
        let is_taken = !self.intervals.is_over()
            && is_wanted(wanted, event)
            && self.chosen.has(names.device(event.device));
        is_taken.then(|| names.zio(event))
    }

    /// When it looks next.
    pub(super) fn due(&self) -> Instant {
        let due_ns = self.intervals.due_ns();
        due_ns.map_or(Instant::NEVER, Instant::from_nanos)
    }

    /// The interval that ends now, if one is due, or if this is the end.
    pub(super) fn look(
        &mut self,
        simulation: &Simulation,
        over: bool,
    ) -> Result<Option<Seen>, ParseError> {
        let now_ns = simulation.now().as_nanos();
        let Some(span) = self.intervals.end_or_close(now_ns, over) else {
            return Ok(None);
        };
        let look = Look::new(&self.question, &self.chosen.names, simulation)?;
        let seen = self.seen(span, &look);
        self.last = look;
        self.tally.iter_mut().for_each(SimTally::clear);
        Ok(Some(seen))
    }

    fn seen(&self, span: Span, look: &Look) -> Seen {
        Seen {
            span,
            at_ns: span.end_ns,
            disks: self.intervals(&look.disks, &self.last.disks),
            volumes: self.intervals(&look.volumes, &self.last.volumes),
            pools: pools_between(&look.pools, &self.last.pools),
            ..Seen::default()
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
}

impl Chosen {
    fn has(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|chosen| chosen == name)
    }
}

impl Look {
    fn new(
        question: &Question,
        names: &[String],
        simulation: &Simulation,
    ) -> Result<Look, ParseError> {
        let of_layer = |layer: Layer| match question.layers().contains(&layer) {
            true => devices_of(simulation, layer, names),
            false => Ok(Vec::new()),
        };
        let disks = match question.has_store() {
            true => of_layer(Layer::Store)?,
            false => of_layer(Layer::Disk)?,
        };
        Ok(Look {
            disks,
            volumes: of_layer(Layer::Volume)?,
            pools: match question.subject {
                Subject::Pools => pools_of(simulation, names)?,
                _ => Vec::new(),
            },
        })
    }
}

fn is_wanted(wanted: &Wanted, event: &Event) -> bool {
    let is_of_layer = match event.device {
        Device::Disk(_) => wanted.layer == Layer::Disk,
        Device::Volume(_) => wanted.layer == Layer::Volume,
    };
    let ops = OpSet::of(event.op).union(if event.fua { OpSet::FUA } else { OpSet::EMPTY });
    is_of_layer
        && event.ended.since(event.arrived).as_nanos() >= wanted.min_ns
        && wanted.ops.is_none_or(|asked| asked.meets(ops))
}

/// A tally for a question that needs events.
fn tally(question: &Question, simulation: &Simulation) -> Result<Option<SimTally>, ParseError> {
    match question.by {
        Some(By::Process | By::Cgroup) => Err(ParseError::new(
            "--by: a simulation's clients are its workloads: --by client, size, device and type \
             can be had",
        )),
        None if !question.has_store() => Ok(None),
        by => Ok(Some(SimTally::new(by, simulation.scenario()))),
    }
}

fn devices_of(
    simulation: &Simulation,
    layer: Layer,
    names: &[String],
) -> Result<Vec<DeviceLook>, ParseError> {
    let mut devices = devices(simulation, layer);
    if devices.is_empty() {
        return Err(ParseError::new(
            "the lab has no volume; leave out '--layer volume'",
        ));
    }
    keep_named(&mut devices, names, |device| &device.name)?;
    Ok(devices)
}

fn pools_of(simulation: &Simulation, names: &[String]) -> Result<Vec<PoolLook>, ParseError> {
    let mut pools = pools(simulation);
    if pools.is_empty() {
        return Err(ParseError::new("the lab has no pool; look at its disks"));
    }
    keep_named(&mut pools, names, |pool| &pool.name)?;
    Ok(pools)
}

fn pools_between(later: &[PoolLook], earlier: &[PoolLook]) -> Vec<PoolInterval> {
    let pairs = later.iter().zip(earlier);
    pairs.map(|(later, earlier)| later.since(earlier)).collect()
}

/// Keeps the named ones, which must all exist; all if none is named.
fn keep_named<T>(
    all: &mut Vec<T>,
    names: &[String],
    name_of: fn(&T) -> &String,
) -> Result<(), ParseError> {
    if names.is_empty() {
        return Ok(());
    }
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

/// Refuses more intervals than fit into memory.
fn check_intervals(schedule: &Schedule, simulation: &Simulation) -> Result<(), ParseError> {
    let (interval, lasts) = (schedule.interval, simulation.scenario().lasts);
    let intervals = lasts.as_nanos() / interval.as_nanos().max(1);
    match intervals.min(schedule.count.unwrap_or(u64::MAX)) > INTERVALS_MAX {
        false => Ok(()),
        true => Err(ParseError::new(format!(
            "{intervals} intervals of {interval} in {lasts}: at most {INTERVALS_MAX} are kept; \
             make the interval longer, or give a count"
        ))),
    }
}

/// The most intervals. A report keeps up to 10 KB of each.
const INTERVALS_MAX: u64 = 100_000;
