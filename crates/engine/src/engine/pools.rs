//! Handles the inputs for pools and volumes, and carries zios between pools and their disks.

use alloc::vec::Vec;

use super::{Engine, Zios};
use crate::bytes::{Buf, Segment};
use crate::command::Action;
use crate::disk::{Context, Disk};
use crate::event::{Device, Event};
use crate::flight::{Flight, Flights};
use crate::pool::{
    Child, Ended, MirrorRecord, MirrorStart, Pool, PoolConfig, PoolError, PoolState, PoolStats,
    Step, Tunables, VolumeConfig, Work,
};
use crate::stats::{DiskStats, InFlight};
use crate::time::Instant;
use crate::zio::{DiskId, Errno, Outcome, PoolId, VolumeId, Zio, ZioId};

impl Engine {
    /// Adds a pool, whose first txg opens now. Ids count from 0.
    pub fn add_pool(&mut self, config: PoolConfig, now: Instant) -> Result<PoolId, PoolError> {
        let disks: Vec<DiskId> = config.members.iter().flatten().map(|d| d.disk).collect();
        for disk in &disks {
            match self.pooled.get(disk.0 as usize) {
                None => return Err(PoolError::UnknownDisk(*disk)),
                Some(true) => return Err(PoolError::DiskUsedTwice(*disk)),
                Some(false) => {}
            }
        }
        let id = self.pools.len() as u32;
        self.pools.push(Pool::new(id, config, now)?);
        for disk in disks {
            self.pooled[disk.0 as usize] = true;
        }
        Ok(PoolId(id))
    }

    /// Adds a volume. Ids count from 0, over all pools.
    pub fn add_volume(&mut self, config: VolumeConfig) -> Result<VolumeId, PoolError> {
        let pool = config.pool.0 as usize;
        let mut actions = core::mem::take(&mut self.owed);
        let add = |pool: &mut Pool, step: &mut Step<'_>| pool.add_volume(&config, step);
        let added = self.with_pool(pool, &mut actions, add);
        self.owed = actions;
        let place = added.ok_or(PoolError::UnknownPool(config.pool))??;
        self.volumes.push((pool, place));
        Ok(VolumeId(self.volumes.len() as u32 - 1))
    }

    /// Where the blocks of a volume begin, on each disk of its pool. `None` under the dynamic layout, whose
    /// places only the engine knows.
    pub fn base_of(&self, volume: VolumeId) -> Option<u64> {
        let (pool, place) = *self.volumes.get(volume.0 as usize)?;
        self.pools.get(pool)?.map().base_of(place)
    }

    /// Turns on the durable record of a pool's mirrors. `starts` says what the driver knows of each member,
    /// in the order of the members. Until [`crate::Command::Repair`], the engine asks for no record, repairs
    /// nothing, and makes writes to the mirrors wait.
    pub fn record_mirrors(&mut self, pool: PoolId, starts: &[MirrorStart]) {
        let mut actions = core::mem::take(&mut self.owed);
        let record = |pool: &mut Pool, step: &mut Step<'_>| pool.record_mirrors(starts, step);
        self.settle_pool(pool.0 as usize, &mut actions, record);
        self.owed = actions;
    }

    /// A record of each mirror of a pool. The driver must make these records durable when [`Action::Record`]
    /// asks for them.
    pub fn mirror_records(&self, pool: PoolId) -> Vec<MirrorRecord> {
        let pool = self.pools.get(pool.0 as usize);
        pool.map_or_else(Vec::new, Pool::record)
    }

    /// The last records of a pool's mirrors, which the driver keeps when the daemon ends. They are correct
    /// only if nothing is in flight and all disks are synced.
    pub fn last_mirror_records(&self, pool: PoolId) -> Vec<MirrorRecord> {
        let pool = self.pools.get(pool.0 as usize);
        pool.map_or_else(Vec::new, Pool::last_record)
    }

    /// A zio that a pool has sent to one of its disks.
    pub fn child(&self, id: ZioId) -> Option<Zio> {
        let flight = self.children.flights.get(id.inner()?)?;
        Some(Zio { id, ..flight.zio })
    }

    /// Makes the engine tell the driver the end of each child, with [`Action::Ended`].
    pub fn watch_children(&mut self) {
        self.watches_children = true;
    }

    /// Counts a result that a client of a disk is told now. Returns how many have been told, with this one.
    /// The clock cannot tell the order of results and arrivals, because a step has one time.
    pub fn tell(&mut self) -> u64 {
        self.told += 1;
        self.told
    }

    /// How many results clients had been [told](Engine::tell) when a zio arrived at its disk. `None` if the
    /// zio is not in flight.
    pub fn told_before(&self, id: ZioId) -> Option<u64> {
        let flight = match id.inner() {
            Some(child) => self.children.flights.get(child),
            None => self.alone.flights.get(id),
        };
        Some(flight?.told_before)
    }

    /// Where the bytes of a child come from or go to, in the order of their offsets on the disk.
    pub fn segments(&self, id: ZioId) -> impl Iterator<Item = Segment> {
        let segments = self.sent_child(id).map(|child| {
            let pool = &self.pools[child.pool as usize];
            pool.segments(child.disk, child.work)
        });
        segments.into_iter().flatten()
    }

    /// The buffer of a child that moves exactly one buffer.
    pub fn sole_buffer(&self, id: ZioId) -> Option<Buf> {
        let child = self.sent_child(id)?;
        self.pools[child.pool as usize].sole_buffer(child.disk, child.work)
    }

    /// Whether a child is overhead of a txg: it carries no bytes, so the driver asks no store and reports
    /// [`Input::Done`](crate::Input::Done).
    pub fn is_overhead(&self, id: ZioId) -> bool {
        self.sent_child(id).is_some_and(|child| {
            let pool = &self.pools[child.pool as usize];
            pool.is_beside(child.disk, child.work)
        })
    }

    /// Whether the driver may leave a child's bytes on the disk until it sends the clients' replies. This is
    /// allowed if the child reads only for these replies, and if the disk keeps these bytes, or newer bytes
    /// of the same blocks, until the replies are sent.
    pub fn reads_only_for_replies(&self, id: ZioId) -> bool {
        self.sent_child(id).is_some_and(|child| {
            let pool = &self.pools[child.pool as usize];
            pool.reads_only_for_replies(child.disk, child.work)
        })
    }

    /// A child that is still in flight.
    fn sent_child(&self, id: ZioId) -> Option<&Child> {
        let id = id.inner()?;
        self.children.flights.get(id)?;
        Some(self.sent.get(id))
    }

    /// The size in bytes of a buffer that the engine has named. The size never changes.
    pub fn buffer_size(&self, buf: Buf) -> Option<u32> {
        self.buffers.size(buf)
    }

    /// The state of a pool now.
    pub fn pool_state(&self, pool: PoolId) -> Option<PoolState> {
        Some(self.pools.get(pool.0 as usize)?.state())
    }

    /// The state of a pool, and all its counters.
    pub fn pool_stats(&self, pool: PoolId, now: Instant) -> Option<PoolStats> {
        Some(self.pools.get(pool.0 as usize)?.stats(now))
    }

    /// The counters of a volume up to `now`. A volume's counters mean the same as the counters of a disk,
    /// but the volume's [`LatencyKind::Disk`](crate::LatencyKind) counts from the submission to the reply.
    pub fn volume_stats(&self, volume: VolumeId, now: Instant) -> Option<DiskStats> {
        let (pool, place) = *self.volumes.get(volume.0 as usize)?;
        Some(self.pools[pool].volume_stats(place, now))
    }

    /// A zio that a volume has not yet replied to.
    pub fn at_volume(&self, volume: VolumeId, zio: ZioId) -> Option<InFlight> {
        let (pool, _) = *self.volumes.get(volume.0 as usize)?;
        self.pools[pool].view(zio)
    }

    /// The zios that a volume has not yet replied to, in the order of submission.
    pub fn in_flight_at_volume(&self, volume: VolumeId) -> Vec<InFlight> {
        match self.volumes.get(volume.0 as usize) {
            Some((pool, place)) => self.pools[*pool].in_flight(*place),
            None => Vec::new(),
        }
    }

    /// The number of dirty bytes of clients in all pools.
    pub fn dirty(&self) -> u64 {
        self.pools.iter().map(Pool::dirty_bytes).sum()
    }

    /// Whether any pool cannot write acknowledged data because a disk fails.
    pub fn is_degraded(&self) -> bool {
        self.pools.iter().any(Pool::is_degraded)
    }

    pub fn disks_of(&self, pool: PoolId) -> Vec<DiskId> {
        let pool = self.pools.get(pool.0 as usize);
        pool.map_or_else(Vec::new, Pool::disks)
    }

    pub fn pool_of(&self, volume: VolumeId) -> Option<PoolId> {
        let (pool, _) = *self.volumes.get(volume.0 as usize)?;
        Some(PoolId(pool as u32))
    }

    /// The tunables of a pool now.
    pub fn tunables(&self, pool: PoolId) -> Option<&Tunables> {
        Some(self.pools.get(pool.0 as usize)?.tunables())
    }

    /// Switches events of finished zios on or off. Events are off at first.
    pub fn record_events(&mut self, on: bool) {
        self.events.wanted = on;
    }

    /// Takes the events of the zios that have finished since the last call.
    pub fn events(&mut self) -> impl ExactSizeIterator<Item = Event> + '_ {
        self.events.waiting.drain(..)
    }
}

/// Tells disks in pools from the others.
impl Engine {
    pub(super) fn disk(&self, disk: DiskId) -> Option<&Disk> {
        self.disks.get(disk.0 as usize)
    }

    pub(super) fn with_disk<T>(
        &mut self,
        disk: DiskId,
        actions: &mut Vec<Action>,
        act: impl FnOnce(&mut Disk, &mut Flights, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let (zios, actions) = if *self.pooled.get(disk.0 as usize)? {
            (&mut self.children, &mut self.child_actions)
        } else {
            (&mut self.alone, actions)
        };
        let mut ctx = Context {
            now: self.now,
            deadlines: &mut zios.deadlines,
            actions,
        };
        let disk = self.disks.get_mut(disk.0 as usize)?;
        Some(act(disk, &mut zios.flights, &mut ctx))
    }

    pub(super) fn zios(&self, disk: DiskId) -> &Zios {
        if self.is_pooled(disk) {
            &self.children
        } else {
            &self.alone
        }
    }

    pub(super) fn is_pooled(&self, disk: DiskId) -> bool {
        self.pooled.get(disk.0 as usize) == Some(&true)
    }
}

/// Handles the inputs for pools. These functions are not inlined into [`Engine::step`], because they would
/// slow down zios of disks outside of pools.
impl Engine {
    pub(super) fn with_pool<T>(
        &mut self,
        pool: usize,
        actions: &mut Vec<Action>,
        act: impl FnOnce(&mut Pool, &mut Step<'_>) -> T,
    ) -> Option<T> {
        let mut step = Step {
            now: self.now,
            actions,
            buffers: &mut self.buffers,
            children: &mut self.sent,
            events: &mut self.events,
        };
        let pool = self.pools.get_mut(pool)?;
        pool.pass_idle_txgs(step.now);
        Some(act(pool, &mut step))
    }

    /// Does something with a pool, and then everything that follows from it.
    pub(super) fn settle_pool<T>(
        &mut self,
        pool: usize,
        actions: &mut Vec<Action>,
        act: impl FnOnce(&mut Pool, &mut Step<'_>) -> T,
    ) -> Option<T> {
        self.with_pool(pool, actions, |pool, step| {
            let done = act(pool, step);
            pool.settle(step);
            done
        })
    }

    #[inline(never)]
    pub(super) fn submit_to_volume(&mut self, zio: Zio<VolumeId>, actions: &mut Vec<Action>) {
        if let Some((pool, place)) = self.volumes.get(zio.device.0 as usize).copied() {
            self.with_pool(pool, actions, |pool, step| pool.submit(zio, place, step));
        }
    }

    #[inline(never)]
    pub(super) fn volume_replied(
        &mut self,
        zio: ZioId,
        offered: Instant,
        actions: &mut Vec<Action>,
    ) {
        let Some(at) = self.pools.iter().position(|pool| pool.has(zio)) else {
            return;
        };
        if self.events.wanted {
            let event = self.pools[at].event(zio, offered, self.now);
            self.events.waiting.push(event);
        }
        self.with_pool(at, actions, |pool, step| pool.replied(zio, offered, step));
    }

    #[cold]
    pub(super) fn recorded(&mut self, pool: PoolId, outcome: Outcome, actions: &mut Vec<Action>) {
        let recorded = |pool: &mut Pool, step: &mut Step<'_>| pool.recorded(outcome, step);
        self.settle_pool(pool.0 as usize, actions, recorded);
    }

    pub(super) fn abort_of_volumes(&mut self, zios: &[ZioId], actions: &mut Vec<Action>) {
        for pool in 0..self.pools.len() {
            self.settle_pool(pool, actions, |pool, step| pool.abort(zios, step));
        }
    }

    #[inline(never)]
    pub(super) fn earliest_of_pools(&self) -> Instant {
        let children = self.children.deadlines.next();
        let pools = self.pools.iter().map(Pool::next_deadline);
        pools.fold(children, Instant::min)
    }

    #[inline(never)]
    pub(super) fn meet_deadlines_of_pools(&mut self, actions: &mut Vec<Action>) {
        while let Some(child) = self.children.deadlines.pop_due(self.now) {
            self.with_child(child, Disk::due);
        }
        for pool in 0..self.pools.len() {
            if self.pools[pool].next_deadline() <= self.now {
                self.with_pool(pool, actions, Pool::tick);
            }
        }
        self.carry_children(actions);
    }
}

/// Carries zios between pools and their disks.
impl Engine {
    #[inline(never)]
    pub(super) fn child_done(&mut self, id: ZioId, outcome: Outcome) {
        if let Some(child) = id.inner() {
            self.with_child(child, |disk, flight, ctx| disk.done(flight, outcome, ctx));
        }
    }

    /// Continues the work of pools that takes more than one step.
    pub(super) fn go_on_with_jobs(&mut self, actions: &mut Vec<Action>) {
        for pool in 0..self.pools.len() {
            self.with_pool(pool, actions, Pool::go_on_with_jobs);
        }
    }

    fn has_to_carry(&self) -> bool {
        !(self.sent.outbox.is_empty() && self.child_actions.is_empty())
    }

    /// Passes zios from the pools to their disks, and the disks' answers back to the pools, until there are
    /// no more.
    #[inline(never)]
    pub(super) fn carry_children(&mut self, actions: &mut Vec<Action>) {
        while self.has_to_carry() {
            let mut sent = core::mem::take(&mut self.sent.outbox);
            for zio in sent.drain(..) {
                let told = self.told;
                self.with_disk(zio.device, actions, |disk, flights, ctx| {
                    let flight = flights.insert(zio, ctx.now);
                    flight.told_before = told;
                    disk.submit(flight, ctx);
                });
            }
            // The answers below make pools send more zios into this outbox.
            self.sent.outbox = sent;
            let mut answers = core::mem::take(&mut self.child_actions);
            for answer in answers.drain(..) {
                match answer {
                    Action::Start(child) => actions.push(Action::Start(child.outer())),
                    Action::StartDamaged(child, fault) => {
                        actions.push(Action::StartDamaged(child.outer(), fault));
                    }
                    Action::Complete(child, outcome) => self.child_ended(child, outcome, actions),
                    Action::Drop(orphan) => {
                        let child = self.sent.take(orphan);
                        self.tell_end(orphan, child, Err(Errno::Shutdown), actions);
                    }
                    other => actions.push(other),
                }
            }
            if self.child_actions.is_empty() {
                self.child_actions = answers;
            }
        }
    }

    fn child_ended(&mut self, id: ZioId, outcome: Outcome, actions: &mut Vec<Action>) {
        let now = self.now;
        if self.events.wanted {
            self.note_child(id);
        }
        self.with_child(id, |disk, flight, ctx| disk.replied(flight, now, ctx));
        let child = self.sent.take(id);
        let told = match child.work {
            Work::Orphan => Err(Errno::Shutdown),
            _ => outcome,
        };
        self.tell_end(id, child, told, actions);
        let ended = Ended { child, outcome };
        self.with_pool(child.pool as usize, actions, |pool, step| {
            pool.ended(ended, step);
        });
    }

    /// Tells the driver that a child has ended, if the driver wants to know.
    fn tell_end(&mut self, id: ZioId, child: Child, outcome: Outcome, actions: &mut Vec<Action>) {
        if self.watches_children {
            actions.push(Action::Ended {
                zio: id.outer(),
                disk: self.pools[child.pool as usize].disk(child.disk),
                outcome,
                told: self.tell(),
            });
        }
    }

    /// Keeps the event of a child that is about to end.
    fn note_child(&mut self, id: ZioId) {
        let number = self.events.number();
        let Some(flight) = self.children.flights.get(id) else {
            return;
        };
        let child = self.sent.get(id);
        let event = self.event_of(flight, self.now, number);
        let event = self.pools[child.pool as usize].describe(child, event);
        self.events.waiting.push(event);
    }

    /// Keeps the event of a zio that has finished on a disk outside of a pool. This function is not inlined
    /// into [`Engine::step`], which often records no events.
    #[inline(never)]
    pub(super) fn note_alone(&mut self, id: ZioId, offered: Instant) {
        let number = self.events.number();
        if let Some(flight) = self.alone.flights.get(id) {
            let event = self.event_of(flight, offered, number);
            self.events.waiting.push(event);
        }
    }

    /// This function is inlined, and lists all fields, so that the compiler builds the event in place,
    /// without a copy.
    #[inline(always)]
    fn event_of(&self, flight: &Flight, offered: Instant, number: u64) -> Event {
        let zio = &flight.zio;
        let disk = &self.disks[zio.device.0 as usize];
        let (rule, lane) = disk.injector.decision(flight);
        // A zio that never reached the store counts as if the driver had asked the store at once.
        let started = flight.started.max(flight.issued);
        Event {
            number,
            parent: None,
            device: Device::Disk(zio.device),
            client: zio.client,
            class: None,
            txg_syncing: None,
            op: zio.op,
            fua: zio.fua,
            call: zio.call,
            offset: zio.offset,
            length: zio.length,
            depth: flight.depth,
            outcome: flight.outcome,
            arrived: zio.arrived,
            submitted: flight.submitted,
            admitted: flight.submitted,
            issued: flight.issued,
            started,
            store_done: started + flight.worked,
            target: flight.due(),
            offered,
            ended: self.now,
            rule,
            lane,
        }
    }

    fn with_child(
        &mut self,
        child: ZioId,
        act: impl FnOnce(&mut Disk, &mut Flight, &mut Context<'_>),
    ) {
        let mut ctx = Context {
            now: self.now,
            deadlines: &mut self.children.deadlines,
            actions: &mut self.child_actions,
        };
        if let Some(flight) = self.children.flights.get_mut(child) {
            let disk = &mut self.disks[flight.zio.device.0 as usize];
            act(disk, flight, &mut ctx);
            self.children.flights.remove_ended(child);
        }
    }
}
