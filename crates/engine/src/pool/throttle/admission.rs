//! The throttle's interface to the pool, and the queues of waiting writers.
//!
//! After each call that can admit a writer, the pool takes the admitted writers out one by one with
//! [`Throttle::pop_admitted`], and makes the blocks of each writer dirty before it takes the next writer. So
//! each writer finds the dirty data of earlier writers, as a thread in ZFS finds what earlier threads did.
//! Writers that a quiesce releases still belong to the txg that quiesces, so the pool takes them out before
//! the next txg opens.

use super::dirty::Dirty;
use super::legacy::{Attempt, Legacy};
use super::openzfs::{Marks, WakeUps};
use crate::lines::{Line, Lines};
use crate::pool::config::ThrottleConfig;
use crate::pool::stats::{Admissions, ThrottleLevel};
use crate::pool::tunable::Tunables;
use crate::time::{Duration, Instant};
use crate::zio::ZioId;

/// One transaction: one write request of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tx {
    /// The request.
    pub(crate) zio: ZioId,
    /// When the request got its last lock. The time since then counts towards the request's delay.
    pub(crate) started: Instant,
    /// The largest number of bytes that the request can make dirty: the size of all blocks that it touches.
    pub(crate) bytes: u64,
}

/// The immediate answer to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The transaction joins the open txg now.
    Admitted,
    /// [`Throttle::pop_admitted`] returns the transaction later.
    Waits,
}

/// The throttle of one pool.
#[derive(Debug)]
pub(crate) struct Throttle {
    policy: Policy,
    marks: Marks,
    dirty: Dirty,
    /// Writes that wait until dirty data falls below the hard stop or, in the legacy throttle, until the next
    /// txg opens.
    stopped: Line,
    /// Writes that sleep, the earliest wake-up first.
    sleepers: Line,
    /// Writes that wait for a delay slot of the legacy throttle.
    behind: Line,
    /// Writes that the throttle has released, and that the pool has not yet taken out.
    ready: Line,
    /// The writes of these four lines.
    pub(super) waiting: Lines<Waiter>,
    admissions: Admissions,
    /// How many bytes the last admitted write, or the current part of a long write, may still make dirty.
    promised: u64,
    /// How many bytes the admitted writes will make dirty in later steps. A new write finds these bytes as if
    /// they were dirty already. Otherwise the throttle would admit many long writes before the first of them
    /// is dirty.
    coming: u64,
}

#[derive(Debug)]
enum Policy {
    None,
    OpenZfs(WakeUps),
    Legacy(Legacy),
}

/// A write that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    tx: Tx,
    /// If the write is admitted, when it wakes. A write that is not admitted tries again when it is ready.
    wakes: Option<Instant>,
}

impl Waiter {
    fn tries_again(tx: Tx) -> Waiter {
        Waiter { tx, wakes: None }
    }
}

impl Throttle {
    /// A new throttle: nothing is dirty, no write waits, and the first txg is `open`.
    pub(crate) fn new(config: ThrottleConfig, tunables: &Tunables, open: u64) -> Throttle {
        let policy = match config {
            ThrottleConfig::None => Policy::None,
            ThrottleConfig::OpenZfs => Policy::OpenZfs(WakeUps::default()),
            ThrottleConfig::Legacy(config) => Policy::Legacy(Legacy::new(config, tunables, open)),
        };
        Throttle {
            policy,
            marks: Marks::new(tunables),
            dirty: Dirty::default(),
            stopped: Line::EMPTY,
            sleepers: Line::EMPTY,
            behind: Line::EMPTY,
            ready: Line::EMPTY,
            waiting: Lines::default(),
            admissions: Admissions::default(),
            promised: 0,
            coming: 0,
        }
    }

    /// Forgets all dirty data and all waiting writes. The counters continue.
    pub(crate) fn begin_anew(&mut self, config: ThrottleConfig, tunables: &Tunables, open: u64) {
        *self = Throttle {
            admissions: self.admissions,
            ..Throttle::new(config, tunables, open)
        };
    }

    /// Asks whether a write may join the open txg.
    #[inline]
    pub(crate) fn ask(&mut self, now: Instant, tx: Tx) -> Verdict {
        let free = match self.policy {
            Policy::None => self.filled() < self.marks.stop_at,
            Policy::OpenZfs(_) => self.filled() <= self.marks.delay_above,
            Policy::Legacy(_) => false,
        };
        let verdict = if free {
            Verdict::Admitted
        } else {
            self.hold_back(now, tx)
        };
        if verdict == Verdict::Admitted {
            self.assign(tx);
        }
        verdict
    }

    /// Notes that the next part of an admitted write can make `bytes` dirty.
    pub(crate) fn promise(&mut self, bytes: u64) {
        self.promised = bytes;
    }

    /// Notes that an admitted write makes `bytes` dirty only in later steps.
    pub(crate) fn comes(&mut self, bytes: u64) {
        self.set_coming(self.coming + bytes);
    }

    /// Notes that `bytes` of the bytes announced by [`Throttle::comes`] become dirty now.
    pub(crate) fn came(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.coming, "{bytes} bytes of {}", self.coming);
        self.set_coming(self.coming.saturating_sub(bytes));
    }

    fn set_coming(&mut self, bytes: u64) {
        self.coming = bytes;
        if let Policy::Legacy(legacy) = &mut self.policy {
            legacy.comes(bytes);
        }
    }

    /// The number of bytes that are dirty, or that admitted writes will make dirty.
    fn filled(&self) -> u64 {
        self.dirty.total() + self.coming
    }

    /// Notes that an admitted write has made `bytes` dirty. The pool calls this function for every block of
    /// the write, because each call can signal a writer at the hard stop. For a block that was already dirty
    /// in its txg, `bytes` is zero.
    pub(crate) fn dirtied(&mut self, now: Instant, txg: u64, bytes: u64) {
        debug_assert!(
            bytes <= self.promised,
            "{bytes} bytes became dirty, and {} were admitted",
            self.promised
        );
        self.promised = self.promised.saturating_sub(bytes);
        self.dirty.add(txg, bytes);
        if let Policy::Legacy(legacy) = &mut self.policy {
            legacy.dirtied(txg, bytes);
        }
        self.signal(now);
    }

    /// Notes that `bytes` of a txg are no longer dirty, because the disks have them or the pool has given
    /// them up.
    pub(crate) fn retired(&mut self, now: Instant, txg: u64, bytes: u64) {
        self.dirty.take(txg, bytes);
        self.signal(now);
    }

    /// The moment at which to call [`Throttle::wake`].
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.waiting.get(self.sleepers.first()?)?.wakes
    }

    /// Admits the writers whose delays have ended, even if much data is dirty by now.
    pub(crate) fn wake(&mut self, now: Instant) {
        while self.next_wake().is_some_and(|wake| wake <= now) {
            if let Some((id, first)) = self.waiting.pop_front(&mut self.sleepers) {
                self.waiting.push_back(&mut self.ready, id, first);
            }
        }
    }

    /// Takes out the next writer that may continue. The pool makes the writer's blocks dirty before it asks
    /// for the next writer.
    pub(crate) fn pop_admitted(&mut self, now: Instant) -> Option<ZioId> {
        loop {
            let tx = match self.waiting.pop_front(&mut self.ready) {
                Some((_, Waiter { tx, wakes: Some(_) })) => {
                    self.policy.slept(tx);
                    self.assign(tx);
                    return Some(tx.zio);
                }
                Some((_, Waiter { tx, wakes: None })) => tx,
                None => self.pop_behind()?,
            };
            if self.hold_back(now, tx) == Verdict::Admitted {
                self.assign(tx);
                return Some(tx.zio);
            }
        }
    }

    /// Forgets these writers, if they wait, and frees the wake-ups that they have booked. Sends the signals that
    /// these writers would have sent to other writers.
    pub(crate) fn forget(&mut self, now: Instant, gone: &[ZioId]) {
        let mut signals = 0;
        for zio in gone {
            let lines = &mut [
                &mut self.stopped,
                &mut self.sleepers,
                &mut self.behind,
                &mut self.ready,
            ];
            if let Some(Waiter { tx, wakes: Some(_) }) = self.waiting.take(lines, *zio) {
                signals += 1;
                self.policy.slept(tx);
            }
        }
        if let Policy::OpenZfs(wake_ups) = &mut self.policy {
            let last = self.sleepers.last().and_then(|last| self.waiting.get(last));
            wake_ups.give_back(last.and_then(|last| last.wakes).unwrap_or(now));
        }
        for _ in 0..signals {
            self.signal(now);
        }
    }
}

/// The state that the pool reports to the throttle, and reads from it.
impl Throttle {
    /// Takes new tunables. Sleeping writers keep their wake-up times.
    pub(crate) fn tuned(&mut self, now: Instant, tunables: &Tunables) {
        self.marks = Marks::new(tunables);
        if let Policy::Legacy(legacy) = &mut self.policy {
            legacy.tuned(tunables);
        }
        self.signal(now);
    }

    /// Adds dirty data of which no write has told the throttle: metadata, and the full txgs that a pool
    /// starts with.
    pub(crate) fn dirtied_beside(&mut self, now: Instant, txg: u64, bytes: u64) {
        self.promised += bytes;
        self.dirtied(now, txg, bytes);
    }

    /// Makes retired bytes dirty again, because the write of another part of their block failed.
    pub(crate) fn dirty_again(&mut self, txg: u64, bytes: u32) {
        self.dirty.add(txg, u64::from(bytes));
    }

    /// Notes that a request waits for the open txg to quiesce. Returns whether this has released a sleeper.
    pub(crate) fn quiesce_asked(&mut self) -> bool {
        let Policy::Legacy(legacy) = &mut self.policy else {
            return false;
        };
        legacy.quiesce_asked();
        let slept = !self.sleepers.is_empty();
        self.wake_all();
        slept
    }

    /// Notes that this txg takes the writes from now on.
    pub(crate) fn txg_opened(&mut self, txg: u64) {
        if let Policy::Legacy(legacy) = &mut self.policy {
            legacy.txg_opened(txg);
            self.wake_all();
            self.waiting.append(&mut self.ready, &mut self.stopped);
        }
    }

    /// Notes that a txg has begun to sync.
    pub(crate) fn sync_started(&mut self, txg: u64) {
        if let Policy::Legacy(legacy) = &mut self.policy {
            legacy.sync_started(txg, self.dirty.of(txg));
            if !legacy.pipeline_is_full() {
                self.wake_all();
            }
        }
    }

    /// Notes that a txg is on the disks, and how long its sync took.
    pub(crate) fn synced(&mut self, txg: u64, took: Duration) {
        debug_assert_eq!(self.dirty.of(txg), 0, "txg {txg} is synced and dirty");
        if let Policy::Legacy(legacy) = &mut self.policy {
            legacy.synced(took);
        }
    }

    /// Whether the open txg is full and writers wait for the next txg. A txg is not full before the writes
    /// that it has admitted are dirty.
    pub(crate) fn wants_quiesce(&self) -> bool {
        let is_dirty = self.coming == 0;
        matches!(self.policy, Policy::Legacy(_)) && is_dirty && !self.stopped.is_empty()
    }

    /// Whether a txg has enough dirty data to be synced at once. The legacy throttle had no such
    /// rule.
    pub(crate) fn wants_sync(&self, txg: u64) -> bool {
        !matches!(self.policy, Policy::Legacy(_)) && self.dirty.of(txg) > self.marks.sync_above
    }

    /// How many async writes one disk may have now. With the legacy throttle, the answer is always the
    /// maximum, because the scheduler of that time did not look at dirty data.
    pub(crate) fn max_async_writes(&self) -> u32 {
        let always_most = matches!(self.policy, Policy::Legacy(_));
        self.marks.max_async_writes(self.dirty.total(), always_most)
    }

    /// The number of dirty bytes in the pool.
    pub(crate) fn dirty(&self) -> u64 {
        self.dirty.total()
    }

    /// The number of dirty bytes in one live txg.
    pub(crate) fn dirty_of(&self, txg: u64) -> u64 {
        self.dirty.of(txg)
    }

    /// The number of waiting writes.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.count()
    }

    /// Counts of how writes have been admitted so far.
    pub(crate) fn admissions(&self) -> Admissions {
        self.admissions
    }

    /// How close the throttle is to holding writes back.
    pub(crate) fn level(&self) -> ThrottleLevel {
        let filled = self.filled();
        let level = ThrottleLevel {
            filled,
            stops_at: self.marks.stop_at,
            ..ThrottleLevel::default()
        };
        match &self.policy {
            Policy::None => level,
            Policy::OpenZfs(_) => ThrottleLevel {
                delays_above: Some(self.marks.delay_above),
                delay: self.marks.delay(filled),
                ..level
            },
            Policy::Legacy(legacy) => legacy.level(),
        }
    }

    /// The legacy throttle's limit for one txg, in inflated bytes.
    pub(crate) fn write_limit(&self) -> Option<u64> {
        match &self.policy {
            Policy::Legacy(legacy) => Some(legacy.limit()),
            _ => None,
        }
    }
}

/// The path of one write through the throttle.
impl Throttle {
    fn assign(&mut self, tx: Tx) {
        self.admissions.assigned += 1;
        // The previous write is dirty by now, so any promised bytes that it did not use are void.
        self.promised = tx.bytes;
    }

    /// Decides what becomes of a write that is not admitted at once.
    fn hold_back(&mut self, now: Instant, tx: Tx) -> Verdict {
        match &mut self.policy {
            Policy::None => self.stop(tx),
            Policy::OpenZfs(_) => {
                self.admissions.dirty_delay += 1;
                if self.filled() < self.marks.stop_at {
                    self.delay(now, tx)
                } else {
                    self.stop(tx)
                }
            }
            Policy::Legacy(legacy) => {
                let attempt = legacy.attempt(tx.bytes);
                self.after_attempt(now, tx, attempt)
            }
        }
    }

    fn stop(&mut self, tx: Tx) -> Verdict {
        self.admissions.dirty_over_max += 1;
        let waiter = Waiter::tries_again(tx);
        self.waiting.push_back(&mut self.stopped, tx.zio, waiter);
        Verdict::Waits
    }

    /// Admits one writer at the hard stop, if there is room. ZFS signals one writer at each change of the
    /// dirty data, and that writer's dirty data signals the next writer.
    fn signal(&mut self, now: Instant) {
        let room = self.filled() < self.marks.stop_at;
        if self.stopped.is_empty() || !room || matches!(self.policy, Policy::Legacy(_)) {
            return;
        }
        if let Some((id, Waiter { tx, .. })) = self.waiting.pop_front(&mut self.stopped)
            && self.delay(now, tx) == Verdict::Admitted
        {
            let wakes = Some(now);
            self.waiting
                .push_back(&mut self.ready, id, Waiter { tx, wakes });
        }
    }

    /// Delays a write once, for a time that depends on how much data is dirty at this moment.
    fn delay(&mut self, now: Instant, tx: Tx) -> Verdict {
        let delay = self.marks.delay(self.filled());
        let wake = match &mut self.policy {
            Policy::OpenZfs(wake_ups) => wake_ups.book(now, tx.started, delay),
            _ => None,
        };
        match wake {
            Some(wake) if wake > now => self.sleep(wake, tx),
            _ => Verdict::Admitted,
        }
    }

    fn after_attempt(&mut self, now: Instant, tx: Tx, attempt: Attempt) -> Verdict {
        match attempt {
            Attempt::Admitted => Verdict::Admitted,
            Attempt::Delayed(delay) => {
                self.admissions.delay += 1;
                self.sleep(now + delay, tx)
            }
            Attempt::Blocked => {
                self.admissions.write_limit += 1;
                let waiter = Waiter::tries_again(tx);
                self.waiting.push_back(&mut self.stopped, tx.zio, waiter);
                // The write asks for a quiesce, which wakes all sleepers.
                self.wake_all();
                Verdict::Waits
            }
            Attempt::Behind => {
                let waiter = Waiter::tries_again(tx);
                self.waiting.push_back(&mut self.behind, tx.zio, waiter);
                Verdict::Waits
            }
        }
    }

    /// Adds a sleeper at its place in the order of wake-ups, which is almost always the end of the list. A
    /// new wake-up is earlier than an old one only after the legacy delay was tuned down.
    fn sleep(&mut self, wake: Instant, tx: Tx) -> Verdict {
        let wakes = Some(wake);
        let ahead = |other: &Waiter| other.wakes <= wakes;
        let sleeper = Waiter { tx, wakes };
        self.waiting
            .insert_behind(&mut self.sleepers, tx.zio, sleeper, ahead);
        Verdict::Waits
    }

    fn wake_all(&mut self) {
        self.waiting.append(&mut self.ready, &mut self.sleepers);
    }

    fn pop_behind(&mut self) -> Option<Tx> {
        match &self.policy {
            Policy::Legacy(legacy) if legacy.slot_is_free() => {
                let (_, first) = self.waiting.pop_front(&mut self.behind)?;
                Some(first.tx)
            }
            _ => None,
        }
    }
}

impl Policy {
    /// Ends the delay of a write, or forgets the write if it was aborted.
    fn slept(&mut self, tx: Tx) {
        if let Policy::Legacy(legacy) = self {
            legacy.slept(tx.bytes);
        }
    }
}
