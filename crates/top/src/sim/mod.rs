//! Makes frames of a simulated lab. This module has no clock: the caller says how far the simulation
//! runs before each frame.

mod change;
mod live;
mod pace;
mod pools;

use dashpot_api::Rule;
use dashpot_daemon::{Record, Registry, seen_rule};
use dashpot_engine::{Device, DiskId, Instant};
use dashpot_export::{Counted, RuleSnapshot};
use dashpot_observe::{DeviceInterval, Dimension, Layer, Predicates, Tally};
use dashpot_sim::scenario::Scenario;
use dashpot_sim::{Simulation, Violation};
use dashpot_sources::simulated::{DeviceSnapshot, Names, PoolSnapshot, devices, pools};

use self::pools::{pool_look, pool_of, written};
use super::frame::{ClientFrame, Condition, DiskFrame, Done, Frame, Moment};

pub(super) use self::live::Live;

/// A simulation, and its state at the last frame.
pub(super) struct Sim {
    simulation: Simulation,
    /// The names and the texts of rules, including those that the lab will arm later.
    rules: Registry,
    /// The number of commands that the lab gives. The commands with higher indices are the user's.
    planned: usize,
    /// The I/O of the volumes' and disks' clients since the last frame.
    tally: Tally,
    names: Names,
    last: Snapshot,
    /// For each device, its clients and their I/O in the last interval.
    clients: Vec<Vec<ClientFrame>>,
    /// For each pool, its clients' writes in the last interval, in operations and bytes per second.
    written: Vec<Option<(f64, f64)>>,
}

/// The state of the devices and the pools at one moment. Volumes come before disks.
struct Snapshot {
    devices: Vec<DeviceSnapshot>,
    pools: Vec<PoolSnapshot>,
}

impl Sim {
    /// A simulation that is at its start, with the rules of its lab.
    pub(super) fn new(mut simulation: Simulation, rules: Registry) -> Result<Sim, Violation> {
        simulation.record_events(true);
        let last = Snapshot::new(&simulation);
        let mut sim = Sim {
            rules,
            planned: simulation.scenario().commands.len(),
            tally: Tally::new(Predicates::default(), Some(Dimension::Client)),
            names: Names::of(simulation.scenario()),
            clients: vec![Vec::new(); last.devices.len()],
            written: vec![None; last.pools.len()],
            last,
            simulation,
        };
        sim.go_to(Instant::ZERO)?;
        Ok(sim)
    }

    /// Runs up to a moment, or to the end.
    pub(super) fn go_to(&mut self, moment: Instant) -> Result<(), Violation> {
        self.simulation.run_until(moment)?;
        let events = self.simulation.events();
        events.for_each(|event| self.tally.add(&self.names.finished(&event)));
        Ok(())
    }

    pub(super) fn now(&self) -> Instant {
        self.simulation.now()
    }

    pub(super) fn is_over(&self) -> bool {
        self.simulation.done()
    }

    /// When the simulation ends.
    pub(super) fn ends(&self) -> Instant {
        Instant::ZERO + self.simulation.scenario().lasts
    }

    /// Makes a frame that ends an interval.
    pub(super) fn frame(&mut self) -> Frame {
        let seen = Snapshot::new(&self.simulation);
        let last = std::mem::replace(&mut self.last, seen);
        let pairs = self.last.devices.iter().zip(&last.devices);
        let intervals = pairs.map(|(now, before)| now.since(before));
        let intervals: Vec<DeviceInterval> = intervals.collect();
        let devices = self.last.devices.iter();
        let clients = devices.zip(&intervals);
        self.clients = clients
            .map(|(now, done)| self.clients_of(now, done))
            .collect();
        self.written = written(&self.last.pools, &last.pools);
        self.tally.clear();
        let mut frame = self.shown(&self.last);
        for (disk, interval) in frame.disks.iter_mut().zip(&intervals) {
            disk.done = Done::of(interval);
        }
        frame
    }

    /// Returns the present state, without ending an interval.
    pub(super) fn glance(&self) -> Frame {
        self.shown(&Snapshot::new(&self.simulation))
    }

    /// The present state, with the clients' figures of the last interval.
    fn shown(&self, seen: &Snapshot) -> Frame {
        let own = self.clients.iter();
        let devices = seen.devices.iter().zip(own);
        let pools = seen.pools.iter().enumerate();
        Frame {
            disks: devices
                .map(|(device, clients)| self.device_frame(device, clients))
                .collect(),
            rules: self
                .rules
                .records()
                .filter_map(|record| self.rule(record))
                .collect(),
            pools: pools
                .map(|(at, pool)| pool_look(self.scenario(), at, pool, self.written[at]))
                .collect(),
            notes: self.refused_changes(),
            moment: Some(Moment {
                at: self.now(),
                lasts: self.scenario().lasts,
            }),
            ..Frame::default()
        }
    }

    fn scenario(&self) -> &Scenario {
        self.simulation.scenario()
    }

    fn clients_of(&self, now: &DeviceSnapshot, done: &DeviceInterval) -> Vec<ClientFrame> {
        ClientFrame::all(&DeviceInterval {
            device: String::new(),
            elapsed: done.elapsed,
            ops: self.tally.ops(&now.name),
            busy: done.busy,
            depth_time_ns: 0,
            depths: None,
            in_flight: done.in_flight.clone(),
        })
    }

    fn device_frame(&self, seen: &DeviceSnapshot, clients: &[ClientFrame]) -> DiskFrame {
        let frame = DiskFrame {
            name: seen.name.clone(),
            pool: pool_of(self.scenario(), seen.device),
            clients: clients.to_vec(),
            ..DiskFrame::default()
        };
        match seen.device {
            Device::Disk(disk) => self.with_disk(frame, disk, seen),
            Device::Volume(_) => {
                let in_flight = seen.in_flight();
                DiskFrame {
                    layer: Layer::Volume,
                    in_flight: in_flight.zios.unwrap_or_default(),
                    oldest_ns: in_flight.oldest_ns,
                    wait: in_flight.wait.clone(),
                    ..frame
                }
            }
        }
    }

    fn with_disk(&self, frame: DiskFrame, disk: DiskId, seen: &DeviceSnapshot) -> DiskFrame {
        let suspended = self.simulation.engine().suspended(disk);
        let suspended = suspended.map(|(since, lasts)| {
            let age = self.now().since(since);
            let left = lasts.map(|lasts| lasts.as_nanos().saturating_sub(age.as_nanos()));
            Condition::Suspended {
                age_ns: age.as_nanos(),
                left_ns: left,
            }
        });
        let in_flight = seen.in_flight();
        DiskFrame {
            conditions: suspended.into_iter().collect(),
            in_flight: in_flight.zios.unwrap_or_default(),
            oldest_ns: in_flight.oldest_ns,
            wait: in_flight.wait.as_ref().map(|wait| match in_flight.rule {
                Some(rule) => format!("{wait}, rule {rule}"),
                None => wait.clone(),
            }),
            ..frame
        }
    }

    /// The present state of a rule; `None` if the rule is not armed.
    fn rule(&self, record: &Record) -> Option<Rule> {
        let engine = self.simulation.engine();
        let mut armed = engine.rules(DiskId(record.disk as u32), self.now());
        let view = armed.find(|rule| rule.id == record.id)?;
        let disk = &self.scenario().disks[record.disk];
        let snapshot = RuleSnapshot::of(view, Counted::default());
        Some(seen_rule(record, &disk.name, &snapshot, self.now()))
    }

    /// The lab's own changes that failed, for example because the user cleared their rules.
    fn refused_changes(&self) -> Vec<String> {
        let own = self.simulation.answers().iter();
        let own = own.filter(|(place, _)| *place < self.planned);
        let refused = own.filter_map(|(place, answer)| {
            let (at, _) = &self.scenario().commands[*place];
            let why = answer.as_ref().err()?;
            Some(format!("the lab's change at {at} was refused: {why}"))
        });
        refused.collect()
    }
}

impl Snapshot {
    fn new(simulation: &Simulation) -> Snapshot {
        let volumes = devices(simulation, Layer::Volume);
        let disks = devices(simulation, Layer::Disk);
        Snapshot {
            devices: volumes.into_iter().chain(disks).collect(),
            pools: pools(simulation),
        }
    }
}

#[cfg(test)]
mod tests;
