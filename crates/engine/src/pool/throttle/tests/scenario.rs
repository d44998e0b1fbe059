//! The flood of A. Leventhal's article on the write throttle (2014): a thousand writers of 8 KiB behind a
//! link ten times faster than the disks. A minimal pool drives the throttle: one txg is open, one quiesced,
//! and one syncs at a constant rate.

use super::{OPEN, Throttle, Tunable, Verdict, tunables, tx};
use crate::pool::{LegacyConfig, ThrottleConfig};
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

const WRITE: u64 = 8 << 10;
/// How long the disks take for one write at 100 MiB/s, in nanoseconds.
const DISKS_PER_WRITE: u64 = 78_125;
/// How long the link takes for one write at 1000 MiB/s, in nanoseconds.
const LINK_PER_WRITE: u64 = 7_812;
/// How many writes the disks finish in the five seconds of a sync.
const WRITES_PER_TXG: u64 = 64_000;
/// How many bytes the disks write in a millisecond.
const THROUGHPUT: u64 = 104_858;

struct Flood {
    throttle: Throttle,
    now: Instant,
    open: u64,
    quiesced: Option<u64>,
    /// The syncing txg, when its sync began, and when it ends.
    syncing: Option<(u64, Instant, Instant)>,
    sync_started: Instant,
    /// Clients that wait for the link.
    link: VecDeque<u32>,
    /// When the link delivers the next write.
    delivers: Instant,
    /// When each write reached the volume.
    arrived: BTreeMap<u32, Instant>,
    waits: Vec<Duration>,
}

impl Flood {
    fn new(delay_slots: Option<u32>, synctime_ms: u64) -> Flood {
        let tunables = tunables(&[(Tunable::TxgSynctimeMs, synctime_ms)]);
        let config = ThrottleConfig::Legacy(LegacyConfig {
            delay_slots,
            full_pipeline: Some(THROUGHPUT),
        });
        let mut flood = Flood {
            throttle: Throttle::new(config, &tunables, OPEN),
            now: Instant::ZERO,
            open: OPEN,
            quiesced: None,
            syncing: None,
            sync_started: Instant::ZERO,
            link: (0..1_000).collect(),
            delivers: Instant::from_nanos(LINK_PER_WRITE),
            arrived: BTreeMap::new(),
            waits: Vec::new(),
        };
        for _ in 0..2 {
            let limit = flood.throttle.write_limit().unwrap();
            flood.throttle.dirtied_beside(flood.now, flood.open, limit);
            flood.quiesce();
        }
        flood
    }

    fn quiesce(&mut self) {
        self.throttle.quiesce_asked();
        self.take_out();
        self.quiesced = Some(self.open);
        self.open += 1;
        self.throttle.txg_opened(self.open);
        self.start_sync();
    }

    fn start_sync(&mut self) {
        if let (None, Some(txg)) = (self.syncing, self.quiesced) {
            self.quiesced = None;
            let takes = self.throttle.dirty_of(txg) / WRITE * DISKS_PER_WRITE;
            self.syncing = Some((txg, self.now, self.now + Duration::from_nanos(takes)));
            self.sync_started = self.now;
            self.throttle.sync_started(txg);
        }
    }

    fn end_sync(&mut self, txg: u64, began: Instant) {
        self.syncing = None;
        let dirty = self.throttle.dirty_of(txg);
        self.throttle.retired(self.now, txg, dirty);
        self.throttle.synced(txg, self.now.since(began));
        self.start_sync();
    }

    fn take_out(&mut self) {
        while let Some(zio) = self.throttle.pop_admitted(self.now) {
            self.admitted(zio.0);
        }
    }

    fn settle(&mut self) {
        self.take_out();
        while self.throttle.wants_quiesce() && self.quiesced.is_none() {
            self.quiesce();
            self.take_out();
        }
    }

    /// Makes a write dirty and acknowledges it. The write's client sends the next write.
    fn admitted(&mut self, client: u32) {
        self.throttle.dirtied(self.now, self.open, WRITE);
        let arrived = self.arrived.remove(&client).unwrap();
        self.waits.push(self.now.since(arrived));
        if self.link.is_empty() {
            self.delivers = self.now + Duration::from_nanos(LINK_PER_WRITE);
        }
        self.link.push_back(client);
    }

    fn deliver(&mut self) {
        let client = self.link.pop_front().unwrap();
        self.delivers = self.now + Duration::from_nanos(LINK_PER_WRITE);
        self.arrived.insert(client, self.now);
        if self.throttle.ask(self.now, tx(client, self.now, WRITE)) == Verdict::Admitted {
            self.admitted(client);
        }
    }

    /// Takes the next event. Under a flood, something always happens before the timer of five seconds runs
    /// out.
    fn step(&mut self) {
        let link = (!self.link.is_empty()).then_some(self.delivers);
        let sync = self.syncing.map(|(.., ends)| ends);
        let wake = self.throttle.next_wake();
        self.now = [link, sync, wake].into_iter().flatten().min().unwrap();
        match self.syncing {
            Some((txg, began, ends)) if ends == self.now => self.end_sync(txg, began),
            _ if wake == Some(self.now) => self.throttle.wake(self.now),
            _ => self.deliver(),
        }
        self.settle();
    }

    /// Runs until a txg opens.
    fn run_to(&mut self, txg: u64) {
        while self.open < txg {
            self.step();
        }
    }

    /// Counts how long the writes of ten txgs waited, once the txgs follow each other evenly. A wait above
    /// `long_ms` counts as a stop.
    fn shape(mut self, long_ms: u64) -> Shape {
        self.run_to(OPEN + 5);
        self.waits.clear();
        self.run_to(OPEN + 15);
        let count = |ms: RangeInclusive<u64>| {
            let waits = self.waits.iter().map(|wait| wait.as_nanos());
            let within = waits.filter(|ns| ms.contains(&ns.div_ceil(1_000_000)));
            within.count() as u64 * WRITES_PER_TXG / self.waits.len() as u64
        };
        Shape {
            at_once: count(0..=0),
            delayed: count(1..=10),
            between: count(11..=long_ms),
            stopped: count(long_ms + 1..=u64::MAX),
            longest: self.waits.iter().copied().max().unwrap_or_default(),
        }
    }
}

/// How many of 64,000 writes did not wait at all, waited up to 10 ms, waited longer, and waited very long.
#[derive(Debug)]
struct Shape {
    at_once: u64,
    delayed: u64,
    between: u64,
    stopped: u64,
    longest: Duration,
}

impl Shape {
    fn counts(&self) -> [u64; 4] {
        [self.at_once, self.delayed, self.between, self.stopped]
    }
}

#[test]
fn a_flood_is_fast_or_delayed_or_stopped_for_seconds() {
    let shape = Flood::new(None, 5_000).shape(1_000);
    // The article estimates 55,000 writes without a wait, 8,000 delayed, and 1,000 stopped for four seconds.
    // The first 1,000 writes that the throttle admits to a txg are those that it had stopped. The last 1,000
    // writes of a txg count half, because they sleep when the txg reaches its limit. So a txg takes 500
    // writes more than its limit, and the test scales these 64,500 writes to 64,000.
    assert_eq!(shape.counts(), [54_574, 8_433, 0, 992]);
    assert_eq!(shape.longest.as_nanos() / 1_000_000, 4_525);
}

#[test]
fn a_single_delay_slot_makes_them_queue() {
    let shape = Flood::new(Some(1), 5_000).shape(1_000);
    assert_eq!(shape.counts(), [62_549, 2, 198, 1_251]);
}

#[test]
fn short_syncs_stop_them_more_often_and_for_less() {
    let shape = Flood::new(None, 1_000).shape(200);
    assert_eq!(shape.counts(), [49_088, 10_101, 0, 4_810]);
    assert!(shape.longest < Duration::from_secs(1));
}
