//! The loop, which carries out each event at its time: deadlines of the engine, and events of disks
//! and clients.
//!
//! At equal times, the engine's deadlines come first, then events of disks, of commands and of clients, and
//! then samples. Events of one kind keep the order in which they were added. If a stage of a client's I/O (a
//! `Call`) takes no time, the next stage follows at once, without an event.

mod clients;
mod disks;

use dashpot_engine::pool::Tunable;
use dashpot_engine::{
    Action, Answer, Command, CommandError, CommandId, DiskId, Duration, Engine, Event, Input,
    Instant, PoolId, VolumeId,
};
use dashpot_rules::VolumeSpec;

use crate::agenda::{Agenda, Happening};
use crate::calls::{Call, CallWait, Calls, Stage, Unfinished};
use crate::checker::Checker;
use crate::device::Device;
use crate::error::{SetupError, Violation};
use crate::sample::{Ended, Sample, sample};
use crate::scenario::{Load, Scenario, Target, WorkloadSpec};
use crate::setup;
use crate::workload::{Workload, WorkloadResults};

/// A running scenario.
#[derive(Debug)]
pub struct Simulation {
    scenario: Scenario,
    engine: Engine,
    now: Instant,
    agenda: Agenda,
    actions: Vec<Action>,
    devices: Vec<Device>,
    workloads: Vec<Workload>,
    calls: Calls,
    ended: Ended,
    samples: Vec<Sample>,
    /// How many calls and bytes had ended at the last sample.
    sampled: Ended,
    answers: Vec<(usize, Result<Answer, CommandError>)>,
    checker: Option<Box<Checker>>,
    /// Whether the simulation begins no more calls.
    closing: bool,
    /// How many events have happened since the simulation's clock last moved.
    standing: u64,
    /// How many of these events were ends of calls.
    ended_now: u64,
    /// How many calls the scenario may begin at one moment.
    crowd: u64,
    /// How many one-block writes the pools may acknowledge at one moment.
    room: u64,
}

impl Simulation {
    /// Makes a simulation at the start of its scenario.
    pub fn new(scenario: Scenario) -> Result<Simulation, SetupError> {
        let (engine, actions) = setup::engine(&scenario)?;
        let mut simulation = Simulation {
            engine,
            devices: setup::devices(&scenario),
            workloads: setup::workloads(&scenario)?,
            checker: scenario.check.then(|| Box::new(Checker::new(&scenario))),
            scenario,
            now: Instant::ZERO,
            agenda: Agenda::default(),
            actions,
            calls: Calls::default(),
            ended: Ended::default(),
            samples: Vec::new(),
            sampled: Ended::default(),
            answers: Vec::new(),
            closing: false,
            standing: 0,
            ended_now: 0,
            crowd: 0,
            room: 0,
        };
        simulation.plan();
        Ok(simulation)
    }

    /// Runs up to and including a moment, but not beyond the scenario's end.
    pub fn run_until(&mut self, until: Instant) -> Result<(), Violation> {
        let until = until.min(self.ends());
        self.perform()?;
        while self.go_on(until)? {}
        self.now = self.now.max(until);
        Ok(())
    }

    /// Gives the engine a command at the current time, and adds the command to the scenario. Returns the
    /// command's index, with which [`Simulation::answers`] lists the engine's answer.
    pub fn tell(&mut self, command: Command) -> Result<usize, Violation> {
        self.perform()?;
        let place = self.scenario.commands.len();
        let at = self.now.since(Instant::ZERO);
        self.scenario.commands.push((at, command));
        self.command(place as u32);
        self.perform()?;
        self.check(|checker, engine| checker.check_views(engine))?;
        Ok(place)
    }

    /// Begins no more calls, and runs until no call is in flight, nothing is dirty, and no mirror needs a
    /// repair, but not beyond `until`. Returns false if `until` came first.
    pub fn drain(&mut self, until: Instant) -> Result<bool, Violation> {
        self.closing = true;
        while self.is_busy() && self.go_on(until)? {}
        Ok(!self.is_busy())
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Whether the scenario is at its end.
    pub fn done(&self) -> bool {
        self.now >= self.ends()
    }

    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The engine, so that callers can read its state.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Switches events of finished zios on or off. Events are off at first.
    pub fn record_events(&mut self, on: bool) {
        self.engine.record_events(on);
    }

    /// Takes the events of the zios that have finished since the last call. Events stay in memory until they
    /// are taken, so call this function often.
    pub fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.engine.events()
    }

    /// The results of a workload, by its index in the scenario.
    pub fn results(&self, workload: usize) -> Option<&WorkloadResults> {
        Some(&self.workloads.get(workload)?.results)
    }

    /// A workload's calls that have not ended, in no particular order. No histogram counts these calls.
    pub fn unfinished(&self, workload: usize) -> impl Iterator<Item = Unfinished> {
        let calls = self.calls.alive();
        let own = calls.filter(move |(_, call)| call.workload as usize == workload);
        own.map(|(id, call)| Unfinished::of(id, call))
    }

    /// The calls that have reached a disk or a volume and have no reply yet, in no particular
    /// order.
    pub fn in_lab(&self, target: Target) -> impl Iterator<Item = Unfinished> {
        let there = move |(_, call): &(u32, &Call)| {
            call.stage == Stage::Lab && call.request.target == target
        };
        let calls = self.calls.alive().filter(there);
        calls.map(|(id, call)| Unfinished::of(id, call))
    }

    /// The place at which an unfinished call waits.
    pub fn waits(&self, call: &Unfinished) -> CallWait {
        let at_volume = |volume| self.engine.at_volume(volume, call.zio);
        let at_disk = |disk| self.engine.in_flight(disk).find(|zio| zio.zio == call.zio);
        let in_lab = match (call.stage, call.target) {
            (Stage::Returning, _) => return CallWait::Reply,
            (Stage::Free | Stage::Going, _) => None,
            (Stage::Lab, Target::Volume(volume)) => at_volume(VolumeId(volume as u32)),
            (Stage::Lab, Target::Disk(disk)) => at_disk(DiskId(disk as u32)),
        };
        in_lab.map_or(CallWait::Client, CallWait::Lab)
    }

    /// How many calls of all workloads have ended since the beginning.
    pub fn calls_ended(&self) -> u64 {
        self.ended.calls
    }

    /// The samples so far.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The answers to the scenario's commands, in the order in which they came, each with its command's
    /// index.
    pub fn answers(&self) -> &[(usize, Result<Answer, CommandError>)] {
        &self.answers
    }

    /// Checks that all flushed data would be on the disks if the power were lost now. The seed decides
    /// which other data is lost. A scenario without checks always passes.
    pub fn check_power_loss(&self, seed: u64) -> Result<(), Violation> {
        let checker = self.checker.as_ref();
        let checked = checker.map_or(Ok(()), |checker| checker.check_power_loss(seed));
        checked.map_err(|what| self.violation(what))
    }

    /// Checks that the sides of each mirror hold the same contents. Call this function only when no work is
    /// left. A scenario without checks always passes.
    pub fn check_mirrors(&self) -> Result<(), Violation> {
        let checker = self.checker.as_ref();
        let checked = checker.map_or(Ok(()), |checker| checker.check_mirrors());
        checked.map_err(|what| self.violation(what))
    }

    fn is_busy(&self) -> bool {
        let mut pools = (0..self.scenario.pools.len() as u32).map(PoolId);
        self.calls.len() > 0
            || pools.any(|pool| {
                let state = self.engine.pool_state(pool);
                state.is_some_and(|state| state.dirty > 0 || state.repairs)
            })
    }

    fn ends(&self) -> Instant {
        Instant::ZERO + self.scenario.lasts
    }

    /// Adds all events that are known from the beginning.
    fn plan(&mut self) {
        self.crowd = self.scenario.workloads.iter().map(crowd).sum();
        self.room = room(&self.scenario);
        for (command, (at, _)) in (0..).zip(&self.scenario.commands) {
            let happening = Happening::Command(command);
            self.agenda.set_rare(Instant::ZERO + *at, happening);
        }
        for (workload, spec) in (0..).zip(&self.scenario.workloads) {
            for at in &spec.disconnects {
                let happening = Happening::Disconnect(workload);
                self.agenda.set_rare(Instant::ZERO + *at, happening);
            }
        }
        for (workload, client) in (0..).zip(&self.workloads) {
            for thread in 0..client.threads() {
                let turn = Happening::Turn { workload, thread };
                self.agenda.set_rare(client.starts(), turn);
            }
        }
        if self.scenario.sample_every.is_some() {
            self.agenda.set_rare(Instant::ZERO, Happening::Sample);
        }
    }

    /// Carries out the next event, unless it is after `until`.
    fn go_on(&mut self, until: Instant) -> Result<bool, Violation> {
        let happening = self.agenda.next().unwrap_or(Instant::NEVER);
        let deadline = self.engine.next_deadline().unwrap_or(Instant::NEVER);
        let next = happening.min(deadline).max(self.now);
        if next > until || next == Instant::NEVER {
            return Ok(false);
        }
        self.tell_time(next)?;
        if deadline <= next {
            self.input(Input::Tick);
        } else if let Some(happening) = self.agenda.pop() {
            self.happen(happening)?;
        }
        self.perform()?;
        self.check(|checker, engine| checker.check_views(engine))?;
        Ok(true)
    }

    /// Advances the time, or counts another event at the same time.
    fn tell_time(&mut self, now: Instant) -> Result<(), Violation> {
        if now > self.now {
            (self.now, self.standing, self.ended_now) = (now, 0, 0);
        }
        self.standing += 1;
        if self.ended_now > ENDED_NOW_MAX + self.crowd + self.room {
            let what = "time stands still: calls begin and end at one moment; let the \
                        workload think between calls or spend time inside them, or give its \
                        link a rate or the disk a service time";
            return Err(self.violation(what.into()));
        }
        if self.standing > STANDING_MAX + STEPS_OF_A_CALL * (self.crowd + self.room) {
            let what = format!("more than {STANDING_MAX} things happen at one moment");
            return Err(self.violation(what));
        }
        Ok(())
    }

    fn violation(&self, what: String) -> Violation {
        Violation { at: self.now, what }
    }

    /// Runs `tell` on the checker, if there is one.
    fn check(
        &mut self,
        tell: impl FnOnce(&mut Checker, &Engine) -> Result<(), String>,
    ) -> Result<(), Violation> {
        match &mut self.checker {
            None => Ok(()),
            Some(checker) => {
                tell(checker, &self.engine).map_err(|what| Violation { at: self.now, what })
            }
        }
    }

    fn input(&mut self, input: Input<'_>) {
        self.engine.step(self.now, input, &mut self.actions);
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Violation> {
        match happening {
            Happening::Done { zio, disk } => return self.done_by(disk, zio),
            Happening::Command(at) => self.command(at),
            Happening::Disconnect(workload) => return self.disconnect(workload),
            Happening::Turn { workload, thread } => return self.turn(workload, thread),
            Happening::Link(call) => return self.link(call),
            Happening::Submit(call) => return self.submit(call),
            Happening::Reply(call) => return self.end(call),
            Happening::Sample => self.sample(),
        }
        Ok(())
    }

    /// Carries out all actions of the engine, and their consequences.
    fn perform(&mut self) -> Result<(), Violation> {
        let mut at = 0;
        while let Some(action) = self.actions.get(at) {
            match action {
                // Simulated disks have no bytes, so the damage is in the counters and events alone.
                Action::Start(zio) | Action::StartDamaged(zio, _) => self.start(*zio)?,
                Action::Move(bytes) => {
                    let bytes = *bytes;
                    self.check(|checker, _| checker.moved(bytes))?;
                }
                Action::Complete(zio, outcome) => self.complete(*zio, *outcome)?,
                Action::Drop(zio) => self.dropped(*zio)?,
                // Simulated mirrors keep no durable record, and simulated disks lose nothing.
                Action::Record(_) | Action::Ended { .. } => {}
                Action::Answer(CommandId(command), answer) => {
                    self.answers.push((*command as usize, answer.clone()));
                }
            }
            at += 1;
            self.tell_time(self.now)?;
        }
        self.actions.clear();
        Ok(())
    }

    fn command(&mut self, at: u32) {
        let (_, command) = &self.scenario.commands[at as usize];
        let input = Input::Command(CommandId(u64::from(at)), command.clone());
        self.input(input);
    }

    fn sample(&mut self) {
        let since = Ended {
            calls: self.ended.calls - self.sampled.calls,
            bytes: self.ended.bytes - self.sampled.bytes,
        };
        let pools = self.scenario.pools.len();
        let sample = sample(&self.engine, pools, &self.devices, self.now, since);
        self.samples.push(sample);
        self.sampled = self.ended;
        if let Some(every) = self.scenario.sample_every {
            let every = every.max(Duration::from_nanos(1));
            self.agenda.set_rare(self.now + every, Happening::Sample);
        }
    }
}

/// How many calls a workload may begin at one moment: one per thread, a whole burst, or a whole trace.
fn crowd(workload: &WorkloadSpec) -> u64 {
    match &workload.load {
        Load::Closed { threads, .. } => u64::from(*threads),
        Load::Open { burst, .. } => u64::from(*burst),
        Load::Trace(entries) => entries.len() as u64,
    }
}

/// How many one-block writes fill the volumes' pools. Further writes wait until a disk has finished an I/O.
fn room(scenario: &Scenario) -> u64 {
    let fills = |volume: &VolumeSpec| {
        let most = scenario.pools[volume.pool]
            .tunables
            .get(Tunable::DirtyDataMax);
        most / u64::from(volume.block_size)
    };
    scenario.volumes.iter().map(fills).sum()
}

/// Add `crowd` and `room` to this number. If more calls than that end at one moment, the simulator is in an
/// endless loop.
const ENDED_NOW_MAX: u64 = 1 << 22;
/// If there are more events than this at one moment, beyond those that [`STEPS_OF_A_CALL`] allows, the
/// simulator is in an endless loop.
const STANDING_MAX: u64 = 1 << 26;
/// For each call of `crowd` and each write of `room`, this many events more than [`STANDING_MAX`] are allowed
/// at one moment. A large call moves each of its blocks, and writes each block to both sides of a mirror.
const STEPS_OF_A_CALL: u64 = 64;
/// The maximum number of calls in flight. Each takes 300 bytes of memory.
pub const CALLS_MAX: usize = 1 << 21;
