//! Transaction groups: open, quiescing, syncing (OpenZFS: `txg.c`).
//!
//! At most one txg is in each of these states at a time. A txg begins to sync when the txg before it is on
//! the disks and there is a reason: its dirty data, the time since the last sync began, or a request that
//! waits. The timer also ends txgs without dirty data, which sync in no time. An idle pool does not wake up for
//! them: they are a function of time, and the pool adds them when it next does something or is asked.

use alloc::collections::VecDeque;

use super::blocks::TXGS;
use super::stats::{Traffic, TxgState, TxgStats};
use super::volume::slot_of;
use crate::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub(super) struct Txgs {
    open: Txg,
    closed: Option<Txg>,
    syncing: Option<Txg>,
    done: VecDeque<TxgStats>,
    /// For each txg, the number of its dirty blocks, with those of metadata, and extents that are not yet on
    /// the disks.
    standing: [u32; TXGS],
    last_sync: Instant,
    /// When the last committed txg reached the disks.
    last_committed: Option<Instant>,
    /// Whether a request waits for the open txg to sync.
    sync_wanted: bool,
    /// Whether a request waits for the next txg to open.
    quiesce_wanted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Txg {
    number: u64,
    birth: Instant,
    closed: Instant,
    sync: Instant,
    dirty: u64,
    /// The zios that had reached the disks when the sync began.
    before: Traffic,
}

impl Txg {
    fn new(number: u64, birth: Instant) -> Txg {
        Txg {
            number,
            birth,
            closed: birth,
            sync: birth,
            dirty: 0,
            before: Traffic::default(),
        }
    }
}

impl Txgs {
    /// ZFS's `TXG_INITIAL`.
    pub(super) const FIRST: u64 = 4;

    pub(super) fn new(now: Instant) -> Txgs {
        Txgs {
            open: Txg::new(Txgs::FIRST, now),
            closed: None,
            syncing: None,
            done: VecDeque::with_capacity(HISTORY),
            standing: [0; TXGS],
            last_sync: now,
            last_committed: None,
            sync_wanted: false,
            quiesce_wanted: false,
        }
    }

    #[inline]
    pub(super) fn open(&self) -> u64 {
        self.open.number
    }

    pub(super) fn syncing(&self) -> Option<u64> {
        self.syncing.map(|txg| txg.number)
    }

    /// Whether a txg syncs now, or has synced since this moment.
    pub(super) fn synced_since(&self, since: Instant) -> bool {
        self.syncing.is_some() || self.last_committed.is_some_and(|at| at >= since)
    }

    /// Counts an extent or a block, also one of metadata, that has just become dirty in the open txg. The
    /// block had no version in this txg before.
    #[inline]
    pub(super) fn dirtied(&mut self) {
        self.standing[slot_of(self.open.number)] += 1;
    }

    /// Counts one more extent, because a write has split an extent in two.
    pub(super) fn parted(&mut self, txg: u64) {
        self.standing[slot_of(txg)] += 1;
    }

    /// Notes that a version has been written to the disks, or that a newer version has replaced it. Returns
    /// whether this was the last version of its txg.
    #[inline]
    pub(super) fn settled(&mut self, slot: usize) -> bool {
        self.standing[slot] -= 1;
        self.standing[slot] == 0
    }

    /// Whether a txg is syncing and all its blocks and extents have already reached the disks.
    pub(super) fn all_home(&self) -> bool {
        let home = |txg: Txg| self.standing[slot_of(txg.number)] == 0;
        self.syncing.is_some_and(home)
    }

    /// Whether a txg has dirty blocks or extents.
    pub(super) fn is_dirty(&self, txg: u64) -> bool {
        self.standing[slot_of(txg)] > 0
    }

    /// Notes that a request waits until the open txg is on the disks.
    pub(super) fn want_sync(&mut self) {
        self.sync_wanted = true;
    }

    /// Notes that a request waits for the next txg to open.
    pub(super) fn want_quiesce(&mut self) {
        self.quiesce_wanted = true;
    }

    /// Whether the open txg can be closed and there is a reason to close it.
    pub(super) fn is_to_quiesce(&self, now: Instant, timeout: Duration) -> bool {
        let due = self.syncing.is_none() && (self.sync_wanted || self.is_due(now, timeout));
        self.closed.is_none() && (due || self.quiesce_wanted)
    }

    /// Closes the open txg. A write joins a txg and becomes dirty in one step, so the txg is
    /// quiesced at once.
    pub(super) fn quiesce(&mut self, now: Instant) {
        (self.sync_wanted, self.quiesce_wanted) = (false, false);
        let next = Txg::new(self.open.number + 1, now);
        let closed = core::mem::replace(&mut self.open, next);
        self.closed = Some(Txg {
            closed: now,
            ..closed
        });
    }

    /// The closed txg, if nothing keeps it from syncing.
    pub(super) fn next_to_sync(&self) -> Option<u64> {
        let closed = self.closed.filter(|_| self.syncing.is_none())?;
        Some(closed.number)
    }

    /// Begins the sync of the closed txg.
    pub(super) fn begin_sync(&mut self, now: Instant, dirty: u64, before: Traffic) {
        let begin = |txg: Txg| Txg {
            sync: now,
            dirty,
            before,
            ..txg
        };
        self.syncing = self.closed.take().map(begin);
        self.last_sync = now;
    }

    /// Ends the syncing txg, which is now on the disks.
    pub(super) fn committed(
        &mut self,
        now: Instant,
        disks: Traffic,
        timeout: Duration,
    ) -> Option<Committed> {
        let txg = self.syncing.take()?;
        self.last_committed = Some(now);
        self.remember(stats_of(&txg, TxgState::Committed, now, disks));
        // An empty txg that was due during the sync syncs now.
        if self.is_empty() && now.since(self.last_sync) >= timeout {
            self.end_empty(now);
        }
        Some(Committed {
            number: txg.number,
            took: now.since(txg.sync),
        })
    }

    /// Opens a txg after a power cut. The live txgs are lost, and their numbers are not used again.
    pub(super) fn begin_anew(&mut self, now: Instant) {
        *self = Txgs {
            open: Txg::new(self.open.number + 1, now),
            done: core::mem::take(&mut self.done),
            ..Txgs::new(now)
        };
    }

    /// The moment at which the timer will close the open txg if nothing else closes it before.
    /// [`Instant::NEVER`] if the txg has no dirty data, or if an earlier txg is not yet synced.
    pub(super) fn next_deadline(&self, timeout: Duration) -> Instant {
        let idle = self.syncing.is_none() && self.closed.is_none();
        let dirty = self.standing[slot_of(self.open.number)] > 0;
        if idle && dirty {
            self.last_sync + timeout
        } else {
            Instant::NEVER
        }
    }

    /// The statistics of the txgs, the oldest first. `dirty_of` gives the dirty bytes of a live txg.
    pub(super) fn stats(
        &self,
        now: Instant,
        disks: Traffic,
        dirty_of: impl Fn(u64) -> u64,
    ) -> impl Iterator<Item = TxgStats> {
        let live = self.living();
        let live = live.map(move |(txg, state)| TxgStats {
            left: dirty_of(txg.number),
            ..stats_of(txg, state, now, disks)
        });
        self.done.iter().copied().chain(live)
    }

    /// The numbers and states of the live txgs, the oldest first.
    pub(super) fn live(&self) -> impl Iterator<Item = (u64, TxgState)> {
        self.living().map(|(txg, state)| (txg.number, state))
    }

    fn living(&self) -> impl Iterator<Item = (&Txg, TxgState)> {
        let syncing = self.syncing.iter().map(|txg| (txg, TxgState::Syncing));
        let closed = self.closed.iter().map(|txg| (txg, TxgState::Quiesced));
        syncing.chain(closed).chain([(&self.open, TxgState::Open)])
    }

    fn is_due(&self, now: Instant, timeout: Duration) -> bool {
        self.next_deadline(timeout) <= now
    }

    /// Whether there is nothing that any txg would write.
    fn is_empty(&self) -> bool {
        let open = self.standing[slot_of(self.open.number)];
        self.syncing.is_none() && self.closed.is_none() && open == 0
    }

    /// Ends the empty txgs that the timer would have ended by now. Returns whether there were any.
    #[inline]
    pub(super) fn pass_idle(&mut self, now: Instant, timeout: Duration) -> bool {
        if now.since(self.last_sync) < timeout || !self.is_empty() {
            return false;
        }
        let passed = now.since(self.last_sync).as_nanos() / timeout.as_nanos();
        // The history has no room for the oldest of very many.
        let forgotten = passed.saturating_sub(HISTORY as u64);
        if forgotten > 0 {
            let skipped = Duration::from_nanos(forgotten * timeout.as_nanos());
            self.last_sync = self.last_sync + skipped;
            self.open = Txg::new(self.open.number + forgotten, self.last_sync);
        }
        for _ in forgotten..passed {
            self.end_empty(self.last_sync + timeout);
        }
        true
    }

    /// Ends the open txg, which is empty, and opens the next.
    fn end_empty(&mut self, at: Instant) {
        let empty = Txg {
            closed: at,
            sync: at,
            ..self.open
        };
        self.remember(stats_of(&empty, TxgState::Committed, at, empty.before));
        self.open = Txg::new(self.open.number + 1, at);
        self.last_sync = at;
    }

    fn remember(&mut self, txg: TxgStats) {
        if self.done.len() == HISTORY {
            self.done.pop_front();
        }
        self.done.push_back(txg);
    }
}

/// A txg that has just reached the disks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed {
    pub(super) number: u64,
    pub(super) took: Duration,
}

fn stats_of(txg: &Txg, state: TxgState, now: Instant, disks: Traffic) -> TxgStats {
    let closed = if state == TxgState::Open {
        now
    } else {
        txg.closed
    };
    let syncs = matches!(state, TxgState::Syncing | TxgState::Committed);
    let sync = if syncs { txg.sync } else { now };
    TxgStats {
        txg: txg.number,
        birth: txg.birth,
        state,
        dirty: txg.dirty,
        left: 0,
        disks: if syncs {
            disks.since(txg.before)
        } else {
            Traffic::default()
        },
        open: closed.since(txg.birth),
        wait: sync.since(closed),
        sync: now.since(sync),
    }
}

/// ZFS's `zfs_txg_history`.
const HISTORY: usize = 100;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{HISTORY, Txgs};
    use crate::pool::stats::{Traffic, TxgStats};
    use crate::time::{Duration, Instant};

    #[test]
    fn a_sync_is_seen_by_those_who_were_there() {
        let at = |ns| Instant::from_nanos(ns);
        let mut txgs = Txgs::new(at(0));
        assert!(!txgs.synced_since(at(0)));
        txgs.quiesce(at(2));
        assert!(!txgs.synced_since(at(0)), "a closed txg does not sync yet");
        txgs.begin_sync(at(3), 0, Traffic::default());
        assert!(txgs.synced_since(at(4)));
        let committed = txgs.committed(at(5), Traffic::default(), Duration::from_secs(5));
        assert!(committed.is_some());
        assert!(txgs.synced_since(at(5)) && !txgs.synced_since(at(6)));
    }

    const TIMEOUT: Duration = Duration::from_secs(5);

    fn rows(txgs: &Txgs, now: Instant) -> Vec<(u64, u64, u64)> {
        let stats = txgs.stats(now, Traffic::default(), |_| 0);
        let row = |txg: TxgStats| (txg.txg, txg.birth.as_nanos(), txg.open.as_nanos());
        stats.map(row).collect()
    }

    #[test]
    fn the_txgs_of_an_idle_pool_are_the_same_whenever_it_is_asked() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let (mut often, mut seldom) = (Txgs::new(at(0)), Txgs::new(at(0)));
        for ms in (0..=3_601_234).step_by(1_237) {
            often.pass_idle(at(ms), TIMEOUT);
            if ms % 977 == 0 {
                seldom.pass_idle(at(ms), TIMEOUT);
            }
        }
        let now = at(3_601_234);
        assert!(often.pass_idle(now, TIMEOUT) || often.open() == Txgs::FIRST + 720);
        seldom.pass_idle(now, TIMEOUT);
        let rows_of_often = rows(&often, now);
        assert_eq!(rows_of_often, rows(&seldom, now));
        assert_eq!(rows_of_often.len(), HISTORY + 1, "the open txg is live");
        let second = 1_000_000_000;
        assert_eq!(rows_of_often[99], (723, 3_595 * second, 5 * second));
        assert_eq!(rows_of_often[100], (724, 3_600 * second, 1_234_000_000));
    }

    #[test]
    fn a_pool_with_dirty_data_is_not_idle() {
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        let mut txgs = Txgs::new(at(0));
        assert!(txgs.pass_idle(at(12), TIMEOUT));
        txgs.dirtied();
        assert!(!txgs.pass_idle(at(40), TIMEOUT));
        assert_eq!((txgs.open(), txgs.next_deadline(TIMEOUT)), (6, at(15)));
    }
}
