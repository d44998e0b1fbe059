//! Plays random histories, in which the throttle and the naive model must agree at every step.

use super::naive::Naive;
use super::{OPEN, Throttle, Tunable, Tunables, Verdict, tunables, tx};
use crate::pool::{LegacyConfig, ThrottleConfig};
use crate::random::Random;
use crate::time::{Duration, Instant};
use crate::zio::ZioId;
use alloc::vec::Vec;

/// The maximum of dirty data and the legacy limit, in bytes.
const MAX: u64 = 100_000;

struct History {
    throttle: Throttle,
    naive: Naive,
    tunables: Tunables,
    random: Random,
    now: Instant,
    open: u64,
    quiesced: Option<u64>,
    syncing: Option<u64>,
    asked: u32,
    /// Waiting writes: the zio, and the bytes that it may make dirty.
    waiting: Vec<(u32, u64)>,
}

impl History {
    fn new(config: ThrottleConfig, seed: u64) -> History {
        let tunables = tunables(&[
            (Tunable::DirtyDataMax, MAX),
            (Tunable::WriteLimitOverride, MAX),
        ]);
        History {
            throttle: Throttle::new(config, &tunables, OPEN),
            naive: Naive::new(config, &tunables),
            tunables,
            random: Random::new(seed),
            now: Instant::ZERO,
            open: OPEN,
            quiesced: None,
            syncing: None,
            asked: 0,
            waiting: Vec::new(),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn step(&mut self) {
        match self.below(200) {
            0..90 => self.ask(),
            90..160 => self.pass(),
            160..185 => self.retire(),
            185..190 => self.sync(),
            190 => self.quiesce(),
            191..198 => self.forget(),
            _ => self.tune(),
        }
        self.settle();
    }

    fn ask(&mut self) {
        let served = Duration::from_nanos(self.below(3) * self.below(3_000_000));
        let started = Instant::from_nanos(self.now.as_nanos().saturating_sub(served.as_nanos()));
        let tx = tx(self.asked, started, self.below(6_000));
        self.asked += 1;
        let verdict = self.throttle.ask(self.now, tx);
        let at_once = self.naive.ask(self.now, tx);
        assert_eq!(verdict == Verdict::Admitted, at_once);
        match verdict {
            Verdict::Admitted => self.make_dirty(tx.bytes),
            Verdict::Waits => self.waiting.push((tx.zio.0, tx.bytes)),
        }
    }

    /// Makes less than `bytes` dirty, as if some of the blocks had already been dirty.
    fn make_dirty(&mut self, bytes: u64) {
        for part in [bytes / 2, self.random.below(2) * (bytes / 3)] {
            self.throttle.dirtied(self.now, self.open, part);
            self.naive.dirtied(self.now, part);
        }
    }

    fn pass(&mut self) {
        self.now = self.now + Duration::from_nanos(self.random.below(2_000_000));
        self.throttle.wake(self.now);
        self.naive.wake(self.now);
    }

    fn retire(&mut self) {
        let txg = self.syncing.unwrap_or(self.open);
        let bytes = self.throttle.dirty_of(txg).min(self.random.below(12_000));
        self.retire_from(txg, bytes);
    }

    fn retire_from(&mut self, txg: u64, bytes: u64) {
        self.throttle.retired(self.now, txg, bytes);
        self.naive.retired(self.now, bytes);
    }

    /// Ends the current sync, and begins the next one.
    fn sync(&mut self) {
        if let Some(txg) = self.syncing.take() {
            self.retire_from(txg, self.throttle.dirty_of(txg));
            self.throttle.synced(txg, Duration::ZERO);
        }
        if let Some(txg) = self.quiesced.take() {
            self.syncing = Some(txg);
            self.throttle.sync_started(txg);
            self.naive.sync_started(txg);
        }
    }

    fn quiesce(&mut self) {
        self.throttle.quiesce_asked();
        self.naive.quiesce_asked();
        self.settle();
        if self.quiesced.is_none() {
            self.quiesced = Some(self.open);
            self.open += 1;
            self.throttle.txg_opened(self.open);
            self.naive.txg_opened();
        }
    }

    fn forget(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let at = self.random.below(self.waiting.len() as u64) as usize;
        let (zio, _) = self.waiting.remove(at);
        self.throttle.forget(self.now, &[ZioId(zio)]);
        self.naive.forget(self.now, ZioId(zio));
    }

    fn tune(&mut self) {
        let max = MAX / 2 + self.below(MAX);
        let delay = 5_000_000 + self.below(10_000_000);
        let changes = [
            (Tunable::DirtyDataMax, max),
            (Tunable::WriteLimitOverride, max),
            (Tunable::DelayMinDirtyPercent, 40 + self.below(61)),
            (Tunable::ThrottleDelay, delay),
        ];
        self.tunables.set_all(changes).unwrap();
        self.throttle.tuned(self.now, &self.tunables);
        self.naive.tuned(self.now, &self.tunables);
    }

    /// Takes out the writes that the throttle has released, and compares the state that remains with the
    /// model's.
    fn settle(&mut self) {
        loop {
            let zio = self.throttle.pop_admitted(self.now);
            assert_eq!(zio, self.naive.pop(self.now));
            let Some(zio) = zio else { break };
            let at = self.waiting.iter().position(|(one, _)| *one == zio.0);
            let (_, bytes) = self.waiting.remove(at.expect("it waits, and only once"));
            self.make_dirty(bytes);
        }
        assert_eq!(self.throttle.next_wake(), self.naive.next_wake());
        assert_eq!(self.throttle.waiting() as usize, self.waiting.len());
        assert_eq!(self.naive.waiting(), self.waiting.len());
        assert_eq!(self.throttle.wants_quiesce(), self.naive.wants_quiesce());
    }

    /// Ends the history: no new writes, and enough syncs for every waiting write to be admitted.
    fn end(&mut self) {
        for _ in 0..4 * self.waiting.len() + 4 {
            self.now = self.throttle.next_wake().unwrap_or(self.now).max(self.now);
            self.pass();
            self.settle();
            self.sync();
            self.settle();
            self.quiesce();
            self.settle();
        }
        assert!(self.waiting.is_empty(), "{:?} wait for ever", self.waiting);
        assert_eq!(self.throttle.dirty(), 0);
    }
}

fn histories(config: ThrottleConfig) -> impl Iterator<Item = History> {
    (0..20).map(move |seed| {
        let mut history = History::new(config, seed);
        (0..3_000).for_each(|_| history.step());
        history.end();
        history
    })
}

#[test]
fn with_the_hard_stop_alone() {
    let stopped =
        histories(ThrottleConfig::None).map(|history| history.throttle.admissions().dirty_over_max);
    assert!(stopped.sum::<u64>() > 1_000, "the stop is reached");
}

#[test]
fn with_delays() {
    for history in histories(ThrottleConfig::OpenZfs) {
        let delays = &history.naive.delays;
        assert!(delays.len() > 50, "delays are reached");
        let stopped = history.throttle.admissions().dirty_over_max;
        assert!(stopped > 20, "the stop is reached");
        for pair in delays.windows(2) {
            assert!(pair[1].ends >= pair[1].started + pair[1].lasts);
            assert!(pair[1].ends >= pair[0].ends + pair[1].lasts);
        }
    }
}

#[test]
fn with_limits_of_txgs() {
    for delay_slots in [None, Some(1), Some(3)] {
        let config = LegacyConfig {
            delay_slots,
            full_pipeline: None,
        };
        for history in histories(ThrottleConfig::Legacy(config)) {
            let admissions = history.throttle.admissions();
            assert!(admissions.delay > 20, "delays are reached");
            assert!(admissions.write_limit > 20, "the stop is reached");
        }
    }
}
