//! The root: routes each input to the disk it is for, and meets deadlines.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use crate::command::{Action, Answer, Command, CommandError, CommandId, Input, Target};
use crate::disk::{Context, Disk};
use crate::flight::{Flight, Flights, State};
use crate::heap::IndexedHeap;
use crate::inject::{GroupId, RULES_MAX, Rule, RuleId, RuleSpec};
use crate::stats::{DiskStats, InFlight, RuleView};
use crate::time::{Duration, Instant};
use crate::zio::{DiskId, Errno, ZioId};

/// What a disk is, to the engine.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// Seeds the draws of its rules.
    pub seed: u64,
}

/// The disks of one shard or of one simulation.
#[derive(Debug, Default)]
pub struct Engine {
    disks: Vec<Disk>,
    flights: Flights,
    /// When suspended disks resume by themselves.
    resumes: IndexedHeap<Instant>,
    now: Instant,
    /// The largest id that a rule has had.
    last_rule: u32,
}

impl Engine {
    /// An engine without disks.
    pub fn new() -> Engine {
        Engine::default()
    }

    /// Adds a disk. Ids count from 0.
    pub fn add_disk(&mut self, config: DiskConfig) -> DiskId {
        self.disks.push(Disk::new(config.seed));
        DiskId(self.disks.len() as u32 - 1)
    }

    /// Takes one input, and appends to `actions` all that follows from it and from the time. The
    /// time must not go back.
    pub fn step(&mut self, now: Instant, input: Input<'_>, actions: &mut Vec<Action>) {
        debug_assert!(now >= self.now, "time went back");
        // What was due before has been met before; only time and this input make more due.
        if now > self.now {
            self.now = now;
            self.meet_deadlines(actions);
        }
        self.route(input, actions);
        self.meet_deadlines(actions);
    }

    /// When to step again with [`Input::Tick`], if nothing else happens before.
    pub fn next_deadline(&self) -> Option<Instant> {
        let resume = self.resumes.peek().map(|(at, _)| at);
        match (self.flights.next_deadline(), resume) {
            (Some(zio), Some(resume)) => Some(zio.min(resume)),
            (zio, resume) => zio.or(resume),
        }
    }

    /// A guess, for who wants to prepare: most of the zios that wake up by `by`, the soonest first.
    pub fn due_by(&self, by: Instant) -> impl Iterator<Item = ZioId> {
        self.flights.due_by(by)
    }

    /// What a disk has counted up to `now`.
    pub fn disk_stats(&self, disk: DiskId, now: Instant) -> Option<DiskStats> {
        Some(self.disk(disk)?.stats_at(now))
    }

    /// The rules of a disk, in the order of their ids.
    pub fn rules(&self, disk: DiskId, now: Instant) -> impl Iterator<Item = RuleView<'_>> {
        let views = self.disk(disk).map(|disk| disk.injector.views(now));
        views.into_iter().flatten()
    }

    /// The zios of a disk that have not been replied to, in no particular order.
    pub fn in_flight(&self, disk: DiskId) -> impl Iterator<Item = InFlight> {
        let of_disk = move |flight: &&Flight| flight.zio.disk == disk;
        let disk = self.disk(disk);
        let flights = self.flights.iter().filter(of_disk);
        flights.filter_map(move |flight| Some(disk?.view(flight)))
    }

    /// Whether a zio is held for ever: by a rule that hangs, and only a command can end it.
    pub fn never_ends(&self, zio: ZioId) -> bool {
        let flight = self.flights.get(zio);
        flight.is_some_and(|flight| flight.target == Instant::NEVER)
    }

    /// How many zios of a disk have not been replied to.
    pub fn in_flight_total(&self, disk: DiskId) -> u32 {
        self.disk(disk).map_or(0, Disk::outstanding)
    }

    /// Since when a disk is suspended, and for how long it will have been, if it resumes by itself.
    pub fn suspended(&self, disk: DiskId) -> Option<(Instant, Option<Duration>)> {
        self.disk(disk)?.suspended()
    }

    fn disk(&self, disk: DiskId) -> Option<&Disk> {
        self.disks.get(disk.0 as usize)
    }

    fn route(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        match input {
            Input::Submit(zio) => {
                self.with_disk(zio.disk, actions, |disk, ctx| disk.submit(zio, ctx));
            }
            Input::Done(zio, outcome) => {
                self.with_disk_of(zio, actions, |disk, ctx| disk.done(zio, outcome, ctx));
            }
            Input::Replied { zio, offered } => {
                self.with_disk_of(zio, actions, |disk, ctx| disk.replied(zio, offered, ctx));
            }
            Input::Abort(zios) => self.abort(zios, actions),
            Input::Join { disk, client, name } => {
                self.with_disk(disk, actions, |disk, _| {
                    disk.clients.join(client, name);
                    disk.injector.find_clients(&disk.clients);
                });
            }
            Input::Command(id, command) => self.command(id, command, actions),
            Input::Tick => {}
        }
    }

    fn with_disk<T>(
        &mut self,
        disk: DiskId,
        actions: &mut Vec<Action>,
        act: impl FnOnce(&mut Disk, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let mut ctx = Context {
            now: self.now,
            flights: &mut self.flights,
            actions,
        };
        Some(act(self.disks.get_mut(disk.0 as usize)?, &mut ctx))
    }

    fn with_disk_of(
        &mut self,
        zio: ZioId,
        actions: &mut Vec<Action>,
        act: impl FnOnce(&mut Disk, &mut Context<'_>),
    ) {
        if let Some(disk) = self.flights.get(zio).map(|flight| flight.zio.disk) {
            self.with_disk(disk, actions, act);
        }
    }

    fn meet_deadlines(&mut self, actions: &mut Vec<Action>) {
        while let Some((at, disk)) = self.resumes.peek() {
            if at > self.now {
                break;
            }
            self.resume(DiskId(disk), actions);
        }
        while let Some(zio) = self.flights.pop_due(self.now) {
            self.with_disk_of(zio, actions, |disk, ctx| disk.due(zio, ctx));
        }
    }

    /// Zios of one connection are of one disk, but nothing here depends on it.
    fn abort(&mut self, zios: &[ZioId], actions: &mut Vec<Action>) {
        let disk_of = |flights: &Flights, zio: &ZioId| Some(flights.get(*zio)?.zio.disk);
        let mut rest = zios.to_vec();
        rest.retain(|zio| self.flights.get(*zio).is_some());
        while let Some(disk) = rest.first().and_then(|zio| disk_of(&self.flights, zio)) {
            let of_disk = |zio: &ZioId| disk_of(&self.flights, zio) == Some(disk);
            let (ids, others) = rest.into_iter().partition::<Vec<_>, _>(of_disk);
            self.with_disk(disk, actions, |disk, ctx| disk.abort(&ids, ctx));
            rest = others;
        }
    }

    fn command(&mut self, id: CommandId, command: Command, actions: &mut Vec<Action>) {
        let answer = match command {
            Command::Inject { disk, group, rules } => self.inject(disk, group, rules),
            Command::Update(rule, spec) => self.update(rule, spec, actions),
            Command::Clear { target, release } => self.clear(target, release, actions),
            Command::Suspend { disk, lasts, now } => {
                match self.suspend(id, disk, lasts, now, actions) {
                    Ok(()) => return,
                    Err(error) => Err(error),
                }
            }
            Command::Resume(disk) => match self.resume(disk, actions) {
                Some(waiting) => Ok(Answer::Resumed { waiting }),
                None => Err(CommandError::UnknownDisk(disk)),
            },
            Command::FailHeld(errno) => {
                self.fail_held(errno, actions);
                Ok(Answer::Done)
            }
        };
        actions.push(Action::Answer(id, answer));
    }

    fn inject(
        &mut self,
        disk: DiskId,
        group: GroupId,
        rules: Vec<(RuleId, RuleSpec)>,
    ) -> Result<Answer, CommandError> {
        let now = self.now;
        let target = self.disks.get_mut(disk.0 as usize);
        let target = target.ok_or(CommandError::UnknownDisk(disk))?;
        let armed = target.injector.rules();
        if armed.len() + rules.len() > RULES_MAX {
            return Err(CommandError::TooManyRules { limit: RULES_MAX });
        }
        let last = check_all(&rules, self.last_rule)?;
        let arm = |(id, spec)| Rule::new(id, group, spec, target.seed, now, &target.clients);
        target.injector.add(rules.into_iter().map(arm));
        self.last_rule = last;
        Ok(Answer::Done)
    }

    fn update(
        &mut self,
        rule: RuleId,
        spec: RuleSpec,
        actions: &mut Vec<Action>,
    ) -> Result<Answer, CommandError> {
        check(&spec)?;
        let disk = self.disk_of_rule(rule)?;
        self.with_disk(disk, actions, |disk, ctx| disk.update(rule, spec, ctx));
        Ok(Answer::Done)
    }

    fn clear(
        &mut self,
        target: Target,
        release: bool,
        actions: &mut Vec<Action>,
    ) -> Result<Answer, CommandError> {
        let mut cleared = Vec::new();
        // What rules that are gone have left held belongs to the disk, and goes with all of it.
        let whole = !matches!(target, Target::Rule(_));
        for (disk, rules) in self.rules_of(target)? {
            let gone = |rule| whole || rules.contains(&rule);
            if release {
                let held = self.zios_of(disk, |state| {
                    matches!(state, State::HeldBefore | State::Held | State::Store)
                });
                self.with_disk(disk, actions, |disk, ctx| disk.release(gone, &held, ctx));
            }
            self.with_disk(disk, actions, |disk, ctx| disk.remove(&rules, ctx));
            cleared.extend(rules);
        }
        cleared.sort_unstable();
        Ok(Answer::Cleared(cleared))
    }

    /// The rules that a command is for, of each disk in the order of their ids.
    fn rules_of(&self, target: Target) -> Result<Vec<(DiskId, Vec<RuleId>)>, CommandError> {
        let of_disk = |disk: DiskId| {
            let rules = self.disks[disk.0 as usize].injector.rules();
            (disk, rules.iter().map(|rule| rule.id).collect())
        };
        match target {
            Target::Rule(rule) => Ok(vec![(self.disk_of_rule(rule)?, vec![rule])]),
            Target::Disk(disk) if self.disk(disk).is_none() => Err(CommandError::UnknownDisk(disk)),
            Target::Disk(disk) => Ok(vec![of_disk(disk)]),
            Target::All => Ok((0..self.disks.len() as u32)
                .map(|disk| of_disk(DiskId(disk)))
                .collect()),
        }
    }

    fn disk_of_rule(&self, rule: RuleId) -> Result<DiskId, CommandError> {
        let disk = self
            .disks
            .iter()
            .position(|disk| disk.injector.find(rule).is_some());
        disk.map(|disk| DiskId(disk as u32))
            .ok_or(CommandError::UnknownRule(rule))
    }

    fn zios_of(&self, disk: DiskId, wanted: impl Fn(State) -> bool) -> Vec<ZioId> {
        let of_disk = |flight: &&Flight| flight.zio.disk == disk && wanted(flight.state);
        let mut flights: Vec<&Flight> = self.flights.iter().filter(of_disk).collect();
        flights.sort_unstable_by_key(|flight| flight.order);
        flights.into_iter().map(|flight| flight.zio.id).collect()
    }

    fn suspend(
        &mut self,
        id: CommandId,
        disk: DiskId,
        lasts: Option<Duration>,
        at_once: bool,
        actions: &mut Vec<Action>,
    ) -> Result<(), CommandError> {
        let resumes_at = self.with_disk(disk, actions, |disk, ctx| {
            disk.suspend(id, lasts, at_once, ctx);
            disk.resumes_at()
        });
        match resumes_at.ok_or(CommandError::UnknownDisk(disk))? {
            Some(at) => self.resumes.set(disk.0, at),
            None => self.resumes.remove(disk.0),
        }
        Ok(())
    }

    fn resume(&mut self, disk: DiskId, actions: &mut Vec<Action>) -> Option<u32> {
        self.resumes.remove(disk.0);
        self.with_disk(disk, actions, |disk, ctx| disk.resume(ctx))
    }

    fn fail_held(&mut self, errno: Errno, actions: &mut Vec<Action>) {
        for disk in (0..self.disks.len() as u32).map(DiskId) {
            let held = self.zios_of(disk, |state| {
                matches!(state, State::Suspended | State::HeldBefore | State::Held)
            });
            self.with_disk(disk, actions, |disk, ctx| disk.close(errno, &held, ctx));
        }
    }
}

fn check(spec: &RuleSpec) -> Result<(), CommandError> {
    spec.check()
        .map_err(|error| CommandError::InvalidRule(error.to_string()))
}

/// Refuses rules that cannot be carried out, and ids that have been used. Says the largest one.
fn check_all(rules: &[(RuleId, RuleSpec)], mut last: u32) -> Result<u32, CommandError> {
    for (id, spec) in rules {
        check(spec)?;
        if id.0 <= last {
            let why = "the ids of rules must grow".to_string();
            return Err(CommandError::InvalidRule(why));
        }
        last = id.0;
    }
    Ok(last)
}
