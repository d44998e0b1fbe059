//! A naive throttle: a list of threads, each with the reason that it waits. The model computes everything
//! else from this list.

use super::{OPEN, Tunable, Tunables, Tx};
use crate::pool::ThrottleConfig;
use crate::time::{Duration, Instant};
use crate::zio::ZioId;
use alloc::vec::Vec;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Stopped,
    Sleeping(Instant),
    Behind,
    Woken,
    TriesAgain,
}

#[derive(Clone, Copy, Debug)]
struct Writer {
    tx: Tx,
    state: State,
}

pub(super) struct Naive {
    config: ThrottleConfig,
    tunables: Tunables,
    dirty: u64,
    to_write: u64,
    open: u64,
    syncing: u64,
    quiesce_asked: bool,
    last_wakeup: Instant,
    /// Waiting writers, in the order in which they began their current wait.
    writers: Vec<Writer>,
    /// The delays that were served, in the order in which the model decided on them.
    pub(super) delays: Vec<Delay>,
}

pub(super) struct Delay {
    zio: ZioId,
    pub(super) started: Instant,
    pub(super) lasts: Duration,
    pub(super) ends: Instant,
}

impl Naive {
    pub(super) fn new(config: ThrottleConfig, tunables: &Tunables) -> Naive {
        Naive {
            config,
            tunables: tunables.clone(),
            dirty: 0,
            to_write: 0,
            open: OPEN,
            syncing: OPEN - 1,
            quiesce_asked: false,
            last_wakeup: Instant::ZERO,
            writers: Vec::new(),
            delays: Vec::new(),
        }
    }

    /// Whether the write continues at once.
    pub(super) fn ask(&mut self, now: Instant, tx: Tx) -> bool {
        match self.config {
            ThrottleConfig::Legacy(_) => self.attempt(now, tx),
            ThrottleConfig::OpenZfs if self.dirty <= self.mark() => true,
            _ if self.dirty >= self.max() => self.wait(tx, State::Stopped),
            _ => self.delay(now, tx),
        }
    }

    pub(super) fn dirtied(&mut self, now: Instant, bytes: u64) {
        self.dirty += bytes;
        self.to_write += bytes;
        self.signal(now);
    }

    pub(super) fn retired(&mut self, now: Instant, bytes: u64) {
        self.dirty -= bytes;
        self.signal(now);
    }

    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.earliest().map(|(wake, _)| wake)
    }

    pub(super) fn wake(&mut self, now: Instant) {
        while let Some((wake, at)) = self.earliest() {
            if wake > now {
                break;
            }
            self.change(at, State::Woken);
        }
    }

    pub(super) fn pop(&mut self, now: Instant) -> Option<ZioId> {
        loop {
            let ready = |state| matches!(state, State::Woken | State::TriesAgain);
            let first = self.writers.iter().position(|one| ready(one.state));
            let behind = || {
                self.writers
                    .iter()
                    .position(|one| one.state == State::Behind)
            };
            let free = self.asleep() < self.slots();
            let at = first.or_else(|| behind().filter(|_| free))?;
            let writer = self.writers.remove(at);
            if writer.state == State::Woken || self.ask(now, writer.tx) {
                return Some(writer.tx.zio);
            }
        }
    }

    pub(super) fn forget(&mut self, now: Instant, zio: ZioId) {
        let Some(at) = self.writers.iter().position(|one| one.tx.zio == zio) else {
            return;
        };
        let gone = self.writers.remove(at);
        if matches!(gone.state, State::Sleeping(_)) {
            self.delays.retain(|delay| delay.zio != zio);
        }
        let latest = self.writers.iter().filter_map(|one| match one.state {
            State::Sleeping(wake) => Some(wake),
            _ => None,
        });
        self.last_wakeup = self.last_wakeup.min(latest.max().unwrap_or(now));
        if matches!(gone.state, State::Sleeping(_) | State::Woken) {
            self.signal(now);
        }
    }

    pub(super) fn tuned(&mut self, now: Instant, tunables: &Tunables) {
        self.tunables = tunables.clone();
        self.signal(now);
    }

    pub(super) fn quiesce_asked(&mut self) {
        self.quiesce_asked = true;
        self.end_delays();
    }

    pub(super) fn txg_opened(&mut self) {
        self.open += 1;
        self.to_write = 0;
        self.quiesce_asked = false;
        self.end_delays();
        while let Some(at) = self.first_stopped().filter(|_| self.is_legacy()) {
            self.change(at, State::TriesAgain);
        }
    }

    pub(super) fn sync_started(&mut self, txg: u64) {
        self.syncing = txg;
        if txg + 1 >= self.open {
            self.end_delays();
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.writers.len()
    }

    pub(super) fn wants_quiesce(&self) -> bool {
        self.is_legacy() && self.first_stopped().is_some()
    }

    fn max(&self) -> u64 {
        self.tunables.get(Tunable::DirtyDataMax)
    }

    fn mark(&self) -> u64 {
        self.max() * self.tunables.get(Tunable::DelayMinDirtyPercent) / 100
    }

    fn is_legacy(&self) -> bool {
        matches!(self.config, ThrottleConfig::Legacy(_))
    }

    fn slots(&self) -> usize {
        match self.config {
            ThrottleConfig::Legacy(legacy) => legacy.delay_slots.map_or(usize::MAX, |n| n as usize),
            _ => 0,
        }
    }

    /// Writers that hold a slot and a reservation.
    fn sleepers(&self) -> impl Iterator<Item = &Writer> {
        let asleep = |one: &&Writer| matches!(one.state, State::Sleeping(_) | State::Woken);
        self.writers.iter().filter(asleep)
    }

    fn asleep(&self) -> usize {
        self.sleepers().count()
    }

    fn wait(&mut self, tx: Tx, state: State) -> bool {
        self.writers.push(Writer { tx, state });
        false
    }

    fn change(&mut self, at: usize, state: State) {
        let writer = self.writers.remove(at);
        self.wait(writer.tx, state);
    }

    fn earliest(&self) -> Option<(Instant, usize)> {
        let sleeping = self.writers.iter().enumerate();
        let wakes = sleeping.filter_map(|(at, one)| match one.state {
            State::Sleeping(wake) => Some((wake, at)),
            _ => None,
        });
        wakes.min()
    }

    fn first_stopped(&self) -> Option<usize> {
        let stopped = |one: &Writer| one.state == State::Stopped;
        self.writers.iter().position(stopped)
    }

    fn signal(&mut self, now: Instant) {
        if self.is_legacy() || self.dirty >= self.max() {
            return;
        }
        if let Some(at) = self.first_stopped() {
            let writer = self.writers.remove(at);
            if self.delay(now, writer.tx) {
                self.wait(writer.tx, State::Woken);
            }
        }
    }

    fn delay(&mut self, now: Instant, tx: Tx) -> bool {
        if self.config == ThrottleConfig::None || self.dirty <= self.mark() {
            return true;
        }
        let scale = self.tunables.get(Tunable::DelayScale);
        let ns = scale * (self.dirty - self.mark()) / (self.max() - self.dirty);
        let delay = Duration::from_nanos(ns.min(100_000_000));
        if ns == 0 || now > tx.started + delay {
            return true;
        }
        self.last_wakeup = (self.last_wakeup + delay).max(tx.started + delay);
        self.delays.push(Delay {
            zio: tx.zio,
            started: tx.started,
            lasts: delay,
            ends: self.last_wakeup,
        });
        self.last_wakeup <= now || self.wait(tx, State::Sleeping(self.last_wakeup))
    }

    fn attempt(&mut self, now: Instant, tx: Tx) -> bool {
        let limit = self.tunables.get(Tunable::WriteLimitOverride);
        let reserved: u64 = self.sleepers().map(|one| one.tx.bytes).sum();
        let full = self.to_write + reserved / 2;
        if self.asleep() >= self.slots() {
            return self.wait(tx, State::Behind);
        }
        if full > limit {
            self.wait(tx, State::Stopped);
            self.quiesce_asked();
            return false;
        }
        let could_quiesce = self.syncing + 1 >= self.open || self.quiesce_asked;
        if full <= limit - limit / 8 || could_quiesce {
            return true;
        }
        let delay = Duration::from_nanos(self.tunables.get(Tunable::ThrottleDelay));
        self.wait(tx, State::Sleeping(now + delay))
    }

    fn end_delays(&mut self) {
        while let Some((_, at)) = self.earliest().filter(|_| self.is_legacy()) {
            self.change(at, State::Woken);
        }
    }
}
