//! The loop: whatever comes next, of the engine's deadlines and of what disks and clients have in
//! store, is done at its time.
//!
//! At equal times the engine's deadlines come first, then disks, commands, clients and samples, each
//! in the order in which they were set. What takes no time is done at once.

use dashpot_engine::{
    Action, Answer, CommandError, CommandId, DiskId, Duration, Engine, Event, Input, Instant, Op,
    Outcome, VolumeId, Zio, ZioId,
};

use crate::agenda::{Agenda, Happening};
use crate::calls::{Call, Calls, Request, Stage};
use crate::device::Device;
use crate::error::{SetupError, Violation};
use crate::sample::{Ended, Sample, sample};
use crate::scenario::{Scenario, Target};
use crate::setup;
use crate::workload::{Turn, Workload, WorkloadResults};

/// A scenario on its way.
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
    /// What had ended at the last sample.
    sampled: Ended,
    answers: Vec<(usize, Result<Answer, CommandError>)>,
    /// Set when no more calls begin.
    closing: bool,
    /// Things done since time last went on.
    standing: u64,
}

impl Simulation {
    /// A scenario at its beginning.
    pub fn new(scenario: Scenario) -> Result<Simulation, SetupError> {
        let mut simulation = Simulation {
            engine: setup::engine(&scenario)?,
            devices: setup::devices(&scenario),
            workloads: setup::workloads(&scenario)?,
            scenario,
            now: Instant::ZERO,
            agenda: Agenda::default(),
            actions: Vec::new(),
            calls: Calls::default(),
            ended: Ended::default(),
            samples: Vec::new(),
            sampled: Ended::default(),
            answers: Vec::new(),
            closing: false,
            standing: 0,
        };
        simulation.plan();
        Ok(simulation)
    }

    /// Runs up to a moment, that moment included, but not beyond the scenario's end.
    pub fn run_until(&mut self, until: Instant) -> Result<(), Violation> {
        let until = until.min(self.ends());
        while self.go_on(until)? {}
        self.now = self.now.max(until);
        Ok(())
    }

    /// Begins no more calls, and runs until none is on its way or until a moment. Whether none is.
    pub fn drain(&mut self, until: Instant) -> Result<bool, Violation> {
        self.closing = true;
        while self.calls.len() > 0 && self.go_on(until)? {}
        Ok(self.calls.len() == 0)
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Whether the scenario has come to its end.
    pub fn done(&self) -> bool {
        self.now >= self.ends()
    }

    /// What is simulated.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The engine, for its views.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Whether finished zios leave events; they do not at first.
    pub fn record_events(&mut self, on: bool) {
        self.engine.record_events(on);
    }

    /// Takes the events of the zios that have finished since the last time. They are kept until
    /// then, so take them often.
    pub fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.engine.events()
    }

    /// What a workload has seen, by its place in the scenario.
    pub fn results(&self, workload: usize) -> Option<&WorkloadResults> {
        Some(&self.workloads.get(workload)?.results)
    }

    /// A workload's calls that have not ended: how many, and when the oldest began. They are in no
    /// histogram.
    pub fn in_flight(&self, workload: usize) -> (usize, Option<Instant>) {
        let own = |(_, call): &(u32, &Call)| call.workload as usize == workload;
        let calls = self.calls.alive().filter(own);
        calls.fold((0, None), |(count, oldest), (_, call)| {
            let oldest = oldest.map_or(call.began, |oldest: Instant| oldest.min(call.began));
            (count + 1, Some(oldest))
        })
    }

    /// Calls that have ended since the beginning, of all workloads.
    pub fn calls_ended(&self) -> u64 {
        self.ended.calls
    }

    /// The states noted so far.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// What the scenario's commands were answered, by their places, in the order of the answers.
    pub fn answers(&self) -> &[(usize, Result<Answer, CommandError>)] {
        &self.answers
    }

    fn ends(&self) -> Instant {
        Instant::ZERO + self.scenario.lasts
    }

    /// Notes everything that is known from the beginning.
    fn plan(&mut self) {
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

    /// Does what comes next, unless that is after `until`.
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
            self.happen(happening);
        }
        self.perform()?;
        Ok(true)
    }

    /// Time goes on, or stands still for one more thing to be done.
    fn tell_time(&mut self, now: Instant) -> Result<(), Violation> {
        if now > self.now {
            (self.now, self.standing) = (now, 0);
        }
        self.standing += 1;
        if self.standing > STANDING_MAX {
            let what = "time stands still: something goes round without taking any";
            return Err(self.violation(what.into()));
        }
        Ok(())
    }

    fn violation(&self, what: String) -> Violation {
        Violation { at: self.now, what }
    }

    fn input(&mut self, input: Input<'_>) {
        self.engine.step(self.now, input, &mut self.actions);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Done { zio, disk } => self.done_by(disk, zio),
            Happening::Command(at) => self.command(at),
            Happening::Disconnect(workload) => self.disconnect(workload),
            Happening::Turn { workload, thread } => self.turn(workload, thread),
            Happening::Link(call) => self.link(call),
            Happening::Submit(call) => self.submit(call),
            Happening::Reply(call) => self.end(call),
            Happening::Sample => self.sample(),
        }
    }

    /// Does all that the engine has asked for, and what follows from it.
    fn perform(&mut self) -> Result<(), Violation> {
        let mut at = 0;
        while let Some(action) = self.actions.get(at) {
            match action {
                Action::Start(zio) => self.start(*zio)?,
                Action::Move(_) => {}
                Action::Complete(zio, outcome) => self.complete(*zio, *outcome)?,
                Action::Drop(zio) => self.dropped(*zio)?,
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

    /// A disk begins to work.
    fn start(&mut self, zio: ZioId) -> Result<(), Violation> {
        let Some((DiskId(disk), op, length)) = self.work(zio) else {
            return Err(self.violation(format!("zio {} is started, but there is none", zio.0)));
        };
        let done = self.devices[disk as usize].start(self.now, op, length);
        if done > self.now {
            self.agenda.set(done, Happening::Done { zio, disk });
        } else {
            self.done_by(disk, zio);
        }
        Ok(())
    }

    /// What a disk has to do for a zio.
    fn work(&self, zio: ZioId) -> Option<(DiskId, Op, u32)> {
        if zio.is_child() {
            let child = self.engine.child(zio)?;
            return Some((child.device, child.op, child.length));
        }
        let request = &self.calls.get(zio.0).request;
        match request.target {
            Target::Disk(disk) => Some((DiskId(disk as u32), request.op, request.length)),
            Target::Volume(_) => None,
        }
    }

    fn done_by(&mut self, disk: u32, zio: ZioId) {
        self.devices[disk as usize].active -= 1;
        self.input(Input::Done(zio, Ok(())));
    }

    /// The lab replies; the client has it when it has passed the link.
    fn complete(&mut self, zio: ZioId, outcome: Outcome) -> Result<(), Violation> {
        let offered = self.now;
        self.input(Input::Replied { zio, offered });
        let call = self.calls.get_mut(zio.0);
        if call.stage != Stage::Lab || call.orphan {
            let what = format!("zio {} is completed, but nobody waits for it", zio.0);
            return Err(self.violation(what));
        }
        call.failed = outcome.is_err();
        call.stage = Stage::Returning;
        let workload = &mut self.workloads[call.workload as usize];
        if call.began >= Instant::ZERO + self.scenario.warmup {
            workload.results.replied(call, self.now);
        }
        let bytes = match (call.request.op, outcome) {
            (Op::Read, Ok(())) => call.request.length,
            _ => 0,
        };
        let back = workload.to_client.as_mut();
        let arrives = back.map_or(self.now, |link| link.pass(self.now, bytes));
        if arrives > self.now {
            self.agenda.set(arrives, Happening::Reply(zio.0));
        } else {
            self.end(zio.0);
        }
        Ok(())
    }

    /// The engine has let go of a call whose connection is lost.
    fn dropped(&mut self, zio: ZioId) -> Result<(), Violation> {
        let call = self.calls.remove(zio.0);
        if call.stage != Stage::Lab || !call.orphan {
            let what = format!("zio {} is dropped, but its client waits for it", zio.0);
            return Err(self.violation(what));
        }
        Ok(())
    }

    /// The client has its reply, and its thread goes on.
    fn end(&mut self, id: u32) {
        let call = self.calls.remove(id);
        if call.orphan {
            return;
        }
        self.ended.calls += 1;
        self.ended.bytes += u64::from(call.request.length);
        let workload = &mut self.workloads[call.workload as usize];
        if call.began >= Instant::ZERO + self.scenario.warmup {
            workload.results.ended(&call, self.now);
        }
        if let Some(think) = workload.think() {
            self.turn_after(think, call.workload, call.thread);
        }
    }

    fn turn_after(&mut self, think: Duration, workload: u32, thread: u32) {
        if think > Duration::ZERO {
            let turn = Happening::Turn { workload, thread };
            self.agenda.set(self.now + think, turn);
        } else {
            self.turn(workload, thread);
        }
    }

    /// A thread does what it has to do now.
    fn turn(&mut self, workload: u32, thread: u32) {
        while !self.closing {
            let client = &mut self.workloads[workload as usize];
            let waits_for_calls = client.think().is_some();
            match client.turn(thread, self.now) {
                Turn::Call(request, inside) => self.begin(workload, thread, request, inside),
                Turn::Wait(at) => {
                    let turn = Happening::Turn { workload, thread };
                    return self.agenda.set(at, turn);
                }
                Turn::End => return,
            }
            if waits_for_calls {
                return;
            }
        }
    }

    fn begin(&mut self, workload: u32, thread: u32, request: Request, inside: Duration) {
        let call = self.calls.insert(Call {
            workload,
            thread,
            request,
            began: self.now,
            submitted: None,
            failed: false,
            stage: Stage::Going,
            orphan: false,
        });
        if inside == Duration::ZERO {
            self.link(call);
        } else {
            self.agenda.set(self.now + inside, Happening::Link(call));
        }
    }

    fn link(&mut self, id: u32) {
        let call = self.calls.get(id);
        let bytes = match call.request.op {
            Op::Write => call.request.length,
            _ => 0,
        };
        let link = self.workloads[call.workload as usize].to_lab.as_mut();
        let arrives = link.map_or(self.now, |link| link.pass(self.now, bytes));
        if arrives > self.now {
            self.agenda.set(arrives, Happening::Submit(id));
        } else {
            self.submit(id);
        }
    }

    fn submit(&mut self, id: u32) {
        let call = self.calls.get_mut(id);
        if call.orphan {
            self.calls.remove(id);
            return;
        }
        (call.submitted, call.stage) = (Some(self.now), Stage::Lab);
        let client = self.workloads[call.workload as usize].client;
        let Request {
            op,
            fua,
            target,
            offset,
            length,
        } = call.request;
        let zio = Zio {
            id: ZioId(id),
            device: (),
            client,
            op,
            fua,
            offset,
            length,
            arrived: self.now,
        };
        match target {
            Target::Disk(disk) => self.input(Input::Submit(on(zio, DiskId(disk as u32)))),
            Target::Volume(volume) => {
                let zio = on(zio, VolumeId(volume as u32));
                self.input(Input::SubmitToVolume(zio));
            }
        }
    }

    fn command(&mut self, at: u32) {
        let (_, command) = &self.scenario.commands[at as usize];
        let input = Input::Command(CommandId(u64::from(at)), command.clone());
        self.input(input);
    }

    /// What was on its way is lost, and the threads that waited for it go on.
    fn disconnect(&mut self, workload: u32) {
        let lost = self.calls.alive();
        let lost = lost.filter(|(_, call)| call.workload == workload);
        let lost: Vec<(u32, Call)> = lost.map(|(id, call)| (id, *call)).collect();
        let in_lab = lost.iter().filter(|(_, call)| call.stage == Stage::Lab);
        let in_lab: Vec<ZioId> = in_lab.map(|(id, _)| ZioId(*id)).collect();
        for (id, _) in &lost {
            self.calls.get_mut(*id).orphan = true;
        }
        let client = &mut self.workloads[workload as usize];
        client.results.aborted += lost.len() as u64;
        let waits_for_calls = client.think().is_some();
        self.input(Input::Abort(&in_lab));
        for (_, call) in lost.iter().filter(|_| waits_for_calls) {
            self.turn(workload, call.thread);
        }
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

fn on<D>(zio: Zio<()>, device: D) -> Zio<D> {
    Zio {
        id: zio.id,
        device,
        client: zio.client,
        op: zio.op,
        fua: zio.fua,
        offset: zio.offset,
        length: zio.length,
        arrived: zio.arrived,
    }
}

/// More than any lab does at one moment, unless it goes round.
const STANDING_MAX: u64 = 1 << 26;
