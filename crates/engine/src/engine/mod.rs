//! The engine: it routes each input to its disk or volume, and wakes zios at their deadlines.

mod commands;
mod part;
mod parts;
mod pools;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use self::part::{Part, ZIOS_PER_STEP};
use crate::client::ClientId;
use crate::command::{Action, Input};
use crate::deadlines::Deadlines;
use crate::depths::DepthTimes;
use crate::disk::{Context, Disk};
use crate::event::{Device, Events};
use crate::flight::{Flight, Flights};
use crate::heap::IndexedHeap;
use crate::inject::RuleId;
use crate::pool::{Buffers, Children, Pool};
use crate::stats::{DiskStats, InFlight, RuleView};
use crate::time::{Duration, Instant};
use crate::zio::{DiskId, Zio, ZioId};

/// The configuration of a disk.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// The seed of the random draws of the disk's rules.
    pub seed: u64,
}

/// The disks of one shard or of one simulation.
#[derive(Debug, Default)]
pub struct Engine {
    disks: Vec<Disk>,
    /// For each disk, whether it belongs to a pool.
    pooled: Vec<bool>,
    /// The zios of disks that belong to no pool.
    alone: Zios,
    /// The zios of disks in pools. The engine chooses the ids of these zios.
    children: Zios,
    pools: Vec<Pool>,
    /// The pool of each volume, and the volume's index in it.
    volumes: Vec<(usize, usize)>,
    /// Actions of the disks of pools, before the engine passes them to the pools or to the driver.
    child_actions: Vec<Action>,
    sent: Children,
    /// Whether the driver wants to know the end of each child.
    watches_children: bool,
    /// How many results the clients of disks have been told, as far as the driver wants to know.
    told: u64,
    /// Actions that calls between steps have caused, such as adding a pool's first volume. The next step
    /// returns these actions.
    owed: Vec<Action>,
    buffers: Buffers,
    events: Events,
    /// When suspended disks resume automatically.
    resumes: IndexedHeap<Instant>,
    /// Whether more zios were due than one step is allowed to handle. If so, ticks handle the other due zios,
    /// and each step with a new zio handles a few of them.
    behind: bool,
    /// The unfinished parts of commands.
    parts: VecDeque<Part>,
    now: Instant,
    /// The smallest id that the next rule may have.
    next_rule: u32,
}

/// The zios of some disks, and their deadlines.
#[derive(Debug, Default)]
struct Zios {
    flights: Flights,
    deadlines: Deadlines,
}

impl Engine {
    /// An engine without disks.
    pub fn new() -> Engine {
        Engine::default()
    }

    /// Adds a disk. Ids count from 0.
    pub fn add_disk(&mut self, config: DiskConfig) -> DiskId {
        self.disks.push(Disk::new(config.seed));
        self.pooled.push(false);
        DiskId(self.disks.len() as u32 - 1)
    }

    /// Takes one input, and appends to `actions` all effects of the input and of the time that has passed.
    /// `now` must not go back. If much is due at once, a step does only as much as fits into a fraction of a
    /// millisecond. If work remains, [`Engine::next_deadline`] is not later than `now`.
    pub fn step(&mut self, now: Instant, input: Input<'_>, actions: &mut Vec<Action>) {
        debug_assert!(now >= self.now, "time went back");
        if let Input::Stopped { from, until } = input {
            self.note_stop(from, until);
        }
        if !self.owed.is_empty() {
            actions.append(&mut self.owed);
        }
        let later = now > self.now;
        self.now = now;
        if self.behind {
            self.catch_up(&input, actions);
        }
        // Earlier steps have done everything that was due before, unless it was too much for one step.
        if later && !self.behind && self.earliest() <= now {
            self.meet_deadlines(actions);
        }
        self.route(input, actions);
        if !self.pools.is_empty() {
            self.carry_children(actions);
        }
        if !self.behind && self.earliest() <= now {
            self.meet_deadlines(actions);
        }
    }

    /// When to step again with [`Input::Tick`], if nothing else happens first.
    pub fn next_deadline(&self) -> Option<Instant> {
        if !self.owed.is_empty() || self.pools.iter().any(Pool::has_jobs) {
            return Some(self.now);
        }
        let next = self.earliest();
        (next < Instant::NEVER).then_some(next)
    }

    /// The zios of disks outside of pools that wake up by `by`, the soonest first. The list may lack some of
    /// these zios, because drivers use it only to prepare.
    pub fn due_by(&self, by: Instant) -> impl Iterator<Item = ZioId> {
        self.alone.deadlines.due_by(by)
    }

    /// Lets no rule of a disk damage data as long as `spares`, because the driver has no room to note what it
    /// damages.
    pub fn spare_data(&mut self, disk: DiskId, spares: bool) {
        if let Some(disk) = self.disks.get_mut(disk.0 as usize) {
            disk.injector.spares_data = spares;
        }
    }

    /// Notes that a client's zio has not got the damage that [`Action::StartDamaged`] has asked for. The driver
    /// says so before [`Input::Done`].
    pub fn spare(&mut self, zio: ZioId) {
        if let Some(flight) = self.alone.flights.get_mut(zio) {
            let disk = &mut self.disks[flight.zio.device.0 as usize];
            disk.injector.spare(flight);
        }
    }

    /// The counters of a disk, up to `now`.
    pub fn disk_stats(&self, disk: DiskId, now: Instant) -> Option<DiskStats> {
        Some(self.disk(disk)?.stats_at(now))
    }

    /// The time that a disk has spent at each depth, up to `now`.
    pub fn depths(&self, disk: DiskId, now: Instant) -> Option<DepthTimes> {
        Some(self.disk(disk)?.depths_at(now))
    }

    /// Whether a rule is armed on a disk.
    pub fn has_rules(&self, disk: DiskId) -> bool {
        self.disk(disk)
            .is_some_and(|disk| disk.injector.has_rules())
    }

    /// Whether this rule is armed on a disk.
    pub fn has_rule(&self, disk: DiskId, rule: RuleId) -> bool {
        self.disk(disk)
            .is_some_and(|disk| disk.injector.find(rule).is_some())
    }

    /// A disk's clients to which [`Input::Join`] has given names, with their current names.
    pub fn clients(&self, disk: DiskId) -> impl Iterator<Item = (ClientId, &str)> {
        let disk = self.disk(disk).into_iter();
        disk.flat_map(|disk| disk.clients.names())
    }

    /// The rules of a disk, in the order of their ids.
    pub fn rules(&self, disk: DiskId, now: Instant) -> impl Iterator<Item = RuleView<'_>> {
        let views = self.disk(disk).map(|found| found.injector.views(now));
        views.into_iter().flatten()
    }

    /// The zios that a disk has not yet replied to, in the order of arrival.
    pub fn in_flight(&self, disk_id: DiskId) -> impl Iterator<Item = InFlight> {
        let disk = self.disk(disk_id);
        let flights = self.zios(disk_id).flights.of_disk(disk_id);
        flights.filter_map(move |flight| Some(disk?.view(flight)))
    }

    /// Whether a rule with a hang holds a zio, which then ends only by a command.
    pub fn never_ends(&self, zio: ZioId) -> bool {
        let flight = match zio.inner() {
            Some(child) => self.children.flights.get(child),
            None => self.alone.flights.get(zio),
        };
        flight.is_some_and(|flight| flight.target == Instant::NEVER)
    }

    /// Whether the store works on a client's zio first, and a rule then holds the zio or makes it fail. False
    /// if the rule holds the zio for ever.
    pub fn is_done_first(&self, zio: ZioId) -> bool {
        let flight = self.alone.flights.get(zio);
        let first = |flight: &Flight| flight.decider.is_some() || flight.outcome.is_err();
        flight.is_some_and(|flight| first(flight) && flight.target != Instant::NEVER)
    }

    /// How many zios of a disk have not been replied to.
    pub fn in_flight_total(&self, disk: DiskId) -> u32 {
        self.disk(disk).map_or(0, Disk::outstanding)
    }

    /// When a disk was suspended, and the total length of the suspension if it ends automatically. `None` if
    /// the disk is not suspended.
    pub fn suspended(&self, disk: DiskId) -> Option<(Instant, Option<Duration>)> {
        self.disk(disk)?.suspended()
    }

    fn route(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        match input {
            Input::Submit(zio) => self.submit(zio, self.now, actions),
            Input::SubmitSinceArrival(zio) => self.submit(zio, zio.arrived.min(self.now), actions),
            Input::Done(zio, outcome) if zio.is_child() => self.child_done(zio, outcome),
            Input::Done(zio, outcome) => {
                self.with_flight(zio, actions, |disk, flight, ctx| {
                    disk.done(flight, outcome, ctx);
                });
            }
            Input::Replied { zio, offered } => {
                if self.events.wanted {
                    self.note_alone(zio, offered);
                }
                let replied = self.with_flight(zio, actions, |disk, flight, ctx| {
                    disk.replied(flight, offered, ctx);
                });
                if replied.is_none() {
                    self.volume_replied(zio, offered, actions);
                }
            }
            Input::SubmitToVolume(zio) => self.submit_to_volume(zio, actions),
            Input::Abort(zios) => self.abort(zios, actions),
            Input::Join {
                device,
                client,
                name,
            } => self.join(device, client, name),
            Input::Command(id, command) => self.command(id, command, actions),
            Input::Recorded(pool, outcome) => self.recorded(pool, outcome, actions),
            Input::Tick => self.go_on_with_jobs(actions),
            Input::Stopped { .. } => {}
        }
    }

    /// Names a client. Only rules ask for names, and only disks have rules.
    #[cold]
    fn join(&mut self, device: Device, client: ClientId, name: &str) {
        if let Device::Disk(disk) = device
            && let Some(disk) = self.disks.get_mut(disk.0 as usize)
        {
            disk.join(client, name);
        }
    }

    /// Tells the disks when the host stopped the driver, before the engine acts on any deadline.
    #[cold]
    fn note_stop(&mut self, from: Instant, until: Instant) {
        for disk in &mut self.disks {
            disk.injector.stops.add(from, until);
        }
    }

    /// Issues a zio to a disk, as of the moment `since`. Ignores a zio for a pool's disk, because only the pool may use its disks.
    #[inline]
    fn submit(&mut self, zio: Zio, since: Instant, actions: &mut Vec<Action>) {
        if self.pooled.get(zio.device.0 as usize) != Some(&false) {
            return;
        }
        let mut ctx = Context {
            now: self.now,
            deadlines: &mut self.alone.deadlines,
            actions,
        };
        let disk = &mut self.disks[zio.device.0 as usize];
        let flight = self.alone.flights.insert(zio, since);
        flight.told_before = self.told;
        disk.submit(flight, &mut ctx);
    }

    /// Calls `act` with a zio and its disk. `None` if no disk outside of a pool has this zio.
    #[inline]
    fn with_flight(
        &mut self,
        zio: ZioId,
        actions: &mut Vec<Action>,
        act: impl FnOnce(&mut Disk, &mut Flight, &mut Context<'_>),
    ) -> Option<()> {
        let mut ctx = Context {
            now: self.now,
            deadlines: &mut self.alone.deadlines,
            actions,
        };
        let flight = self.alone.flights.get_mut(zio)?;
        let disk = &mut self.disks[flight.zio.device.0 as usize];
        act(disk, flight, &mut ctx);
        self.alone.flights.remove_ended(zio);
        Some(())
    }

    /// The earliest of all deadlines, or [`Instant::NEVER`].
    #[inline]
    fn earliest(&self) -> Instant {
        let resume = self.resumes.peek().map_or(Instant::NEVER, |(at, _)| at);
        let alone = self
            .alone
            .deadlines
            .next()
            .min(resume)
            .min(self.next_part());
        if self.pools.is_empty() {
            alone
        } else {
            alone.min(self.earliest_of_pools())
        }
    }

    /// This function is not inlined into [`Engine::step`], because most steps have no deadline to meet.
    #[inline(never)]
    fn meet_deadlines(&mut self, actions: &mut Vec<Action>) {
        while let Some((at, disk)) = self.resumes.peek() {
            if at > self.now {
                break;
            }
            self.resume(DiskId(disk), actions);
        }
        if !self.parts.is_empty() {
            self.go_on(ZIOS_PER_STEP, actions);
        }
        self.meet_zios(ZIOS_PER_STEP, actions);
        self.behind = self.alone.deadlines.next().min(self.next_part()) <= self.now;
        if !self.pools.is_empty() {
            self.meet_deadlines_of_pools(actions);
        }
    }

    /// Continues the work that was too much for one step. A tick does as much of this work as one step is
    /// allowed to do. Each step with a new zio does a little of it, so that zios do not arrive faster than
    /// they end.
    #[cold]
    fn catch_up(&mut self, input: &Input<'_>, actions: &mut Vec<Action>) {
        match input {
            Input::Tick => self.behind = false,
            Input::Submit(_) | Input::SubmitSinceArrival(_) => {
                self.go_on(ZIOS_PER_SUBMIT, actions);
                self.meet_zios(ZIOS_PER_SUBMIT, actions);
            }
            _ => {}
        }
    }

    /// Wakes at most `most` of the zios that are due.
    fn meet_zios(&mut self, most: usize, actions: &mut Vec<Action>) {
        for _ in 0..most {
            let Some(zio) = self.alone.deadlines.pop_due(self.now) else {
                return;
            };
            self.with_flight(zio, actions, Disk::due);
        }
    }

    /// The zios of one connection belong to one disk, but this function does not rely on that.
    #[cold]
    fn abort(&mut self, zios: &[ZioId], actions: &mut Vec<Action>) {
        self.abort_of_volumes(zios, actions);
        let disk_of = |flights: &Flights, zio: &ZioId| Some(flights.get(*zio)?.zio.device);
        let mut rest = zios.to_vec();
        rest.retain(|zio| self.alone.flights.get(*zio).is_some());
        while let Some(disk) = rest
            .first()
            .and_then(|zio| disk_of(&self.alone.flights, zio))
        {
            let of_disk = |zio: &ZioId| disk_of(&self.alone.flights, zio) == Some(disk);
            let (ids, others) = rest.into_iter().partition::<Vec<_>, _>(of_disk);
            self.with_disk(disk, actions, |disk, flights, ctx| {
                disk.abort(&ids, flights, ctx);
            });
            rest = others;
        }
    }
}

/// How many due zios a step with a new zio wakes while the engine is behind. The number is larger than one,
/// so that the engine catches up.
const ZIOS_PER_SUBMIT: usize = 2;
