//! A driver with a virtual clock, which takes a machine from event to event, and simulates the store and the
//! transport.
//!
//! A driver may be late, as every real driver is. A late driver here reads the clock only at multiples of its
//! grain, and only then learns which work the store has finished and which zios are due.
//!
//! The test sets how long the store takes for a zio; the transport takes no time. A zio's serial, which is
//! its order of submission, identifies the zio, because ids are reused.

use std::collections::VecDeque;

use dashpot_engine::inject::{Damage, DataFault};
use dashpot_engine::{
    Action, Answer, ClientId, Command, CommandError, CommandId, Device, Duration, Errno, Input,
    Instant, Op, Outcome, Zio, ZioId,
};

use crate::machine::{DISK, Machine};

/// No history needs this many steps at one moment. A machine that takes more steps asks for them without end.
const STEPS_AT_ONE_MOMENT_MAX: u32 = 100_000;

/// A client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) op: Op,
    pub(crate) fua: bool,
    pub(crate) client: ClientId,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// How long the store works on the request.
    pub(crate) store: Duration,
    /// The result of the store's work.
    pub(crate) outcome: Outcome,
    /// How long before its submission the request arrived. The rules count from its arrival.
    pub(crate) age: Duration,
}

impl Ask {
    pub(crate) fn new(op: Op) -> Ask {
        let length = if op == Op::Flush { 0 } else { 4_096 };
        Ask {
            op,
            fua: false,
            client: ClientId(0),
            offset: 0,
            length,
            store: Duration::ZERO,
            outcome: Ok(()),
            age: Duration::ZERO,
        }
    }
}

/// How a zio left the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Completed(Result<(), &'static str>),
    Dropped,
}

/// Everything about a machine that is visible from outside. Each list is sorted by time, then by serial,
/// because events of one moment have no order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) starts: Vec<(Instant, usize)>,
    pub(crate) damages: Vec<(usize, DataFault)>,
    pub(crate) ends: Vec<(Instant, usize, End)>,
    pub(crate) answers: Vec<(Instant, u64, Result<Answer, CommandError>)>,
}

impl Log {
    fn sort(&mut self) {
        self.starts.sort();
        self.damages.sort_by_key(|(serial, _)| *serial);
        self.ends.sort();
        self.answers.sort_by_key(|(at, command, _)| (*at, *command));
    }
}

pub(crate) struct Driver<M> {
    pub(crate) machine: M,
    pub(crate) now: Instant,
    grain: Duration,
    /// The submitted requests, by serial.
    pub(crate) asks: Vec<(Instant, Ask)>,
    /// The serial of the zio that uses each id now.
    ids: Vec<Option<usize>>,
    /// The zios in the store, each with the moment at which the store finishes it, and with the outcome.
    store: Vec<(Instant, ZioId, Outcome)>,
    log: Log,
    commands: u64,
}

/// An input that the driver gives by itself, after an action.
enum Followup {
    Done(ZioId, Outcome),
    Replied(ZioId),
}

impl<M: Machine> Driver<M> {
    pub(crate) fn new(seed: u64) -> Driver<M> {
        Driver::late(seed, Duration::from_nanos(1))
    }

    /// A driver that sleeps until the next multiple of `grain`.
    pub(crate) fn late(seed: u64, grain: Duration) -> Driver<M> {
        Driver {
            machine: M::new(seed),
            now: Instant::ZERO,
            grain,
            asks: Vec::new(),
            ids: Vec::new(),
            store: Vec::new(),
            log: Log::default(),
            commands: 0,
        }
    }

    pub(crate) fn log(&self) -> Log {
        let mut log = self.log.clone();
        log.sort();
        log
    }

    /// When and how the zio with this serial ended.
    pub(crate) fn end_of(&self, serial: usize) -> Option<(Instant, End)> {
        let end = self.log.ends.iter().find(|(_, other, _)| *other == serial);
        end.map(|(at, _, end)| (*at, *end))
    }

    /// The largest number of ids in use at one time.
    pub(crate) fn ids_used(&self) -> usize {
        self.ids.len()
    }

    /// The id of a zio, if the machine still has it.
    pub(crate) fn id_of(&self, serial: usize) -> Option<ZioId> {
        let at = self.ids.iter().position(|held| *held == Some(serial))?;
        Some(ZioId(at as u32))
    }

    /// The serials of the zios that the machine still has.
    pub(crate) fn alive(&self) -> Vec<usize> {
        let mut alive: Vec<usize> = self.ids.iter().filter_map(|held| *held).collect();
        alive.sort();
        alive
    }

    pub(crate) fn submit(&mut self, ask: Ask) -> usize {
        let serial = self.asks.len();
        self.asks.push((self.now, ask));
        let free = self.ids.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.ids.push(None);
            self.ids.len() - 1
        });
        self.ids[slot] = Some(serial);
        let age = ask.age.as_nanos().min(self.now.as_nanos());
        let zio = Zio {
            id: ZioId(slot as u32),
            device: DISK,
            client: ask.client,
            op: ask.op,
            fua: ask.fua,
            call: None,
            offset: ask.offset,
            length: ask.length,
            arrived: Instant::from_nanos(self.now.as_nanos() - age),
        };
        self.step(match age {
            0 => Input::Submit(zio),
            _ => Input::SubmitSinceArrival(zio),
        });
        serial
    }

    pub(crate) fn abort(&mut self, serials: &[usize]) {
        let ids: Vec<ZioId> = serials.iter().filter_map(|s| self.id_of(*s)).collect();
        self.step(Input::Abort(&ids));
    }

    pub(crate) fn join(&mut self, client: ClientId, name: &str) {
        self.step(Input::Join {
            device: Device::Disk(DISK),
            client,
            name,
        });
    }

    pub(crate) fn command(&mut self, command: Command) -> u64 {
        let id = self.commands;
        self.commands += 1;
        self.step(Input::Command(CommandId(id), command));
        id
    }

    /// Gives a command that the machine must answer at once.
    pub(crate) fn order(&mut self, command: Command) -> Answer {
        let id = self.command(command);
        let answer = self.log.answers.iter().find(|(_, other, _)| *other == id);
        let (_, _, result) = answer.expect("an answer at once");
        result.clone().expect("no refusal")
    }

    /// Advances the clock to `until`, and processes everything that is due by then.
    pub(crate) fn run_until(&mut self, until: Instant) {
        let mut steps = 0;
        while let Some(due) = self.next_event().filter(|due| *due <= until) {
            steps = if due > self.now { 0 } else { steps + 1 };
            assert!(steps < STEPS_AT_ONE_MOMENT_MAX, "stuck at {:?}", self.now);
            self.now = self.now.max(due);
            self.happen();
        }
        self.now = until;
    }

    /// Advances the clock until nothing is due any more.
    pub(crate) fn run(&mut self) {
        while let Some(due) = self.next_event() {
            self.run_until(due.max(self.now));
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let done = self.store.iter().map(|(at, _, _)| *at).min();
        let due = [done, self.machine.next_deadline()];
        let due = due.into_iter().flatten().min()?.as_nanos();
        let grain = self.grain.as_nanos();
        // The next multiple of `grain` may be after the end of time.
        due.checked_next_multiple_of(grain).map(Instant::from_nanos)
    }

    /// Processes what is due now: first the machine's deadline, then the store's results.
    fn happen(&mut self) {
        if self
            .machine
            .next_deadline()
            .is_some_and(|at| at <= self.now)
        {
            self.step(Input::Tick);
            return;
        }
        if let Some(at) = self.store.iter().position(|(at, _, _)| *at <= self.now) {
            let (_, zio, outcome) = self.store.remove(at);
            self.step(Input::Done(zio, outcome));
        }
    }

    fn step(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        let (mut followups, mut ticks) = (VecDeque::new(), 0);
        self.machine.step(self.now, input, &mut actions);
        loop {
            for action in actions.drain(..) {
                followups.extend(self.obey(action));
            }
            let behind = self.machine.next_deadline().filter(|at| *at <= self.now);
            let input = match followups.pop_front() {
                // The last step left work that is due now.
                None if behind.is_some() && ticks < STEPS_AT_ONE_MOMENT_MAX => {
                    ticks += 1;
                    Input::Tick
                }
                None => break,
                // The zio is already gone, because its deadline came and its connection was lost in one step.
                Some(Followup::Replied(zio)) if self.ids[zio.0 as usize].is_none() => continue,
                Some(Followup::Done(zio, outcome)) => Input::Done(zio, outcome),
                Some(Followup::Replied(zio)) => {
                    self.ids[zio.0 as usize] = None;
                    Input::Replied {
                        zio,
                        offered: self.now,
                    }
                }
            };
            self.machine.step(self.now, input, &mut actions);
        }
        let deadline = self.machine.next_deadline();
        assert!(
            deadline.is_none_or(|at| at > self.now),
            "a step at {:?} left {deadline:?} to be done",
            self.now
        );
    }

    fn obey(&mut self, action: Action) -> Option<Followup> {
        match action {
            Action::Start(zio) => self.start(zio),
            Action::StartDamaged(zio, fault) => {
                self.log.damages.push((self.serial(zio), fault));
                // As if some reads were at the end of a file.
                if fault.damage == Damage::Short && fault.seed % 3 == 0 {
                    self.machine.spare(zio);
                }
                self.start(zio)
            }
            Action::Complete(zio, outcome) => {
                self.end(zio, End::Completed(outcome.map_err(Errno::name)));
                Some(Followup::Replied(zio))
            }
            Action::Drop(zio) => {
                let serial = self.serial(zio);
                self.log.ends.retain(|(_, other, _)| *other != serial);
                self.end(zio, End::Dropped);
                self.ids[zio.0 as usize] = None;
                None
            }
            Action::Move(_) | Action::Ended { .. } | Action::Record(_) => {
                unreachable!("only pools ask for this")
            }
            Action::Answer(command, result) => {
                self.log.answers.push((self.now, command.0, result));
                None
            }
        }
    }

    fn start(&mut self, zio: ZioId) -> Option<Followup> {
        let serial = self.serial(zio);
        let again = self.log.starts.iter().any(|(_, other)| *other == serial);
        assert!(!again, "zio {serial} was started twice");
        self.log.starts.push((self.now, serial));
        let ask = self.asks[serial].1;
        if ask.store == Duration::ZERO {
            return Some(Followup::Done(zio, ask.outcome));
        }
        self.store.push((self.now + ask.store, zio, ask.outcome));
        self.store.sort_by_key(|(at, zio, _)| (*at, *zio));
        None
    }

    fn end(&mut self, zio: ZioId, end: End) {
        let serial = self.serial(zio);
        assert_eq!(self.end_of(serial), None, "zio {serial} ended twice");
        let working = self.store.iter().any(|(_, other, _)| *other == zio);
        assert!(!working, "zio {serial} ended with the store at work on it");
        self.log.ends.push((self.now, serial, end));
    }

    fn serial(&self, zio: ZioId) -> usize {
        let held = self.ids.get(zio.0 as usize).copied().flatten();
        held.unwrap_or_else(|| panic!("{zio:?} is not in use"))
    }
}
