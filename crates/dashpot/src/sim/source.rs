//! A simulation as the source of one report. Several reports may watch the same simulation. The caller then
//! always takes the next interval from the source whose interval ends first.

use std::cell::RefCell;

use dashpot_engine::Instant;
use dashpot_observe::{
    DeviceInterval, Intervals, Knows, Layer, PoolInterval, Question, Schedule, Seen, Span, Subject,
    Tally,
};
use dashpot_rules::{ParseError, remedy_for};
use dashpot_sim::Simulation;
use dashpot_sources::simulated::{DeviceSnapshot, PoolSnapshot, devices, pools};
use dashpot_sources::{Source, check_known};

use super::stage::{Stage, TapId};
use super::tap::Tap;

/// The source of one report.
pub(super) struct SimSource<'s, 'e> {
    stage: &'s RefCell<Stage<'e>>,
    question: Question,
    /// The names of the devices or pools; empty for all.
    names: Vec<String>,
    /// The intervals, on the virtual clock.
    intervals: Intervals,
    last: Snapshot,
    /// The tap that receives the simulation's events, if the question needs them.
    tap: Option<TapId>,
}

/// The state of a simulation at one moment.
struct Snapshot {
    disks: Vec<DeviceSnapshot>,
    volumes: Vec<DeviceSnapshot>,
    pools: Vec<PoolSnapshot>,
}

impl<'s, 'e> SimSource<'s, 'e> {
    /// Begins to watch a simulation.
    pub(super) fn new(
        question: Question,
        schedule: &Schedule,
        names: Vec<String>,
        stage: &'s RefCell<Stage<'e>>,
    ) -> Result<SimSource<'s, 'e>, ParseError> {
        let mut running = stage.borrow_mut();
        let simulation = running.simulation();
        let schedule = without_past(*schedule);
        check_intervals(&schedule, simulation)?;
        let intervals = schedule.begin(simulation.now().as_nanos());
        let last = Snapshot::new(&question, &names, simulation)?;
        let tap = tap(&question, &names)?;
        Ok(SimSource {
            tap: tap.map(|tap| running.add(tap)),
            stage,
            question,
            names,
            intervals,
            last,
        })
    }

    /// When the source's present interval ends.
    pub(super) fn due(&self) -> Instant {
        let due_ns = self.intervals.due_ns();
        due_ns.map_or(Instant::NEVER, Instant::from_nanos)
    }

    /// Takes a snapshot, and returns the I/O since the last one.
    fn seen(&mut self, span: Span, stage: &mut Stage<'_>) -> Result<Seen, ParseError> {
        let look = Snapshot::new(&self.question, &self.names, stage.simulation())?;
        let mut tap = self.tap.and_then(|id| stage.tap(id));
        let taken = tap.as_deref();
        let seen = Seen {
            span,
            at_ns: span.end_ns,
            disks: between(&look.disks, &self.last.disks, taken),
            volumes: between(&look.volumes, &self.last.volumes, taken),
            pools: pools_between(&look.pools, &self.last.pools),
            ..Seen::default()
        };
        let (ios, left_out) = tap
            .as_mut()
            .map(|tap| tap.end_interval())
            .unwrap_or_default();
        self.last = look;
        Ok(Seen {
            ios,
            left_out,
            ..seen
        })
    }
}

impl Source for SimSource<'_, '_> {
    /// Runs the simulation until the interval ends.
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        let due = self.due();
        let mut stage = self.stage.borrow_mut();
        if self.intervals.is_over() {
            return Ok(None);
        }
        stage.run_until(due)?;
        let (now, is_over) = (stage.simulation().now(), stage.is_over());
        let Some(span) = self.intervals.end_or_close(now.as_nanos(), is_over) else {
            return Ok(None);
        };
        let seen = self.seen(span, &mut stage)?;
        if let Some(id) = self.tap.filter(|_| self.intervals.is_over()) {
            stage.close(id);
        }
        Ok(Some(seen))
    }
}

/// The I/O of devices between two snapshots. If the tap is a tally, the figures by operation come from the
/// tally.
fn between(
    later: &[DeviceSnapshot],
    earlier: &[DeviceSnapshot],
    tap: Option<&Tap>,
) -> Vec<DeviceInterval> {
    let pairs = later.iter().zip(earlier);
    let interval = |(later, earlier): (&DeviceSnapshot, &DeviceSnapshot)| {
        let interval = later.since(earlier);
        match tap.and_then(|tap| tap.ops(&later.name)) {
            Some(ops) => DeviceInterval { ops, ..interval },
            None => interval,
        }
    };
    pairs.map(interval).collect()
}

/// The schedule without the interval since the start. A simulation has no such interval, because there was no
/// I/O before its start.
fn without_past(schedule: Schedule) -> Schedule {
    if schedule.since_start {
        Schedule {
            count: schedule.count.map(|count| count + 1),
            since_start: false,
            ..schedule
        }
    } else {
        schedule
    }
}

impl Snapshot {
    fn new(
        question: &Question,
        names: &[String],
        simulation: &Simulation,
    ) -> Result<Snapshot, ParseError> {
        let of_layer = |layer: Layer| {
            if question.layers().contains(&layer) {
                devices_of(simulation, layer, names)
            } else {
                Ok(Vec::new())
            }
        };
        let disks = if question.has_store() {
            of_layer(Layer::Store)?
        } else {
            of_layer(Layer::Disk)?
        };
        Ok(Snapshot {
            disks,
            volumes: of_layer(Layer::Volume)?,
            pools: match question.subject {
                Subject::Pools => pools_of(simulation, names)?,
                _ => Vec::new(),
            },
        })
    }
}

/// A tap for a question that needs events.
fn tap(question: &Question, names: &[String]) -> Result<Option<Tap>, ParseError> {
    let mut layers = question.layers().iter();
    if let Some(layer) = layers.find(|layer| matches!(layer, Layer::Fs | Layer::Kernel)) {
        let layer = layer.word();
        return Err(ParseError::new(format!(
            "--layer {layer}: a simulation has no kernel: take disk, store or volume"
        )));
    }
    check_known(question, Knows::Zios)?;
    if let Subject::Ios(wanted) = question.subject {
        return Ok(Some(Tap::zios(wanted, &question.predicates, names)));
    }
    if question.is_plain() && !question.has_store() {
        return Ok(None);
    }
    let tally = Tally::of(question);
    Ok(Some(Tap::Tally(tally)))
}

fn devices_of(
    simulation: &Simulation,
    layer: Layer,
    names: &[String],
) -> Result<Vec<DeviceSnapshot>, ParseError> {
    let mut devices = devices(simulation, layer);
    if devices.is_empty() {
        return Err(ParseError::new(
            "the lab has no volume; leave out '--layer volume'",
        ));
    }
    keep_named(&mut devices, names, |device| &device.name)?;
    Ok(devices)
}

fn pools_of(simulation: &Simulation, names: &[String]) -> Result<Vec<PoolSnapshot>, ParseError> {
    let mut pools = pools(simulation);
    if pools.is_empty() {
        return Err(ParseError::new("the lab has no pool; look at its disks"));
    }
    keep_named(&mut pools, names, |pool| &pool.name)?;
    Ok(pools)
}

fn pools_between(later: &[PoolSnapshot], earlier: &[PoolSnapshot]) -> Vec<PoolInterval> {
    let pairs = later.iter().zip(earlier);
    pairs.map(|(later, earlier)| later.since(earlier)).collect()
}

/// Keeps only the devices with these names, or all devices if no name is given. Fails if there is no device
/// with one of the names.
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
        let remedy = remedy_for(name, &known);
        return Err(ParseError::new(format!("there is no '{name}'; {remedy}")));
    }
    all.retain(|one| names.contains(name_of(one)));
    Ok(())
}

/// Refuses more intervals than fit into memory.
fn check_intervals(schedule: &Schedule, simulation: &Simulation) -> Result<(), ParseError> {
    let (interval, lasts) = (schedule.interval, simulation.scenario().lasts);
    let intervals = lasts.as_nanos() / interval.as_nanos().max(1);
    if intervals.min(schedule.count.unwrap_or(u64::MAX)) > INTERVALS_MAX {
        Err(ParseError::new(format!(
            "{intervals} intervals of {interval} in {lasts}: at most {INTERVALS_MAX} are kept; \
             make the interval longer, or give a count"
        )))
    } else {
        Ok(())
    }
}

/// The greatest number of intervals in a report, which keeps up to 10 KB for each interval.
const INTERVALS_MAX: u64 = 100_000;
