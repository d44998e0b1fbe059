//! Whether a pool's own figures make sense.

use dashpot_engine::pool::{Class, PoolStats, ThrottleConfig, Tunable, TxgState, TxgStats};
use dashpot_engine::{Command, Engine, Instant, Op, PoolId};

use crate::calls::Request;
use crate::scenario::{Scenario, Target};

/// What the figures of all pools are held against.
#[derive(Debug)]
pub(crate) struct Views {
    pools: Vec<Bounds>,
    /// By volume: its pool and its block size.
    volumes: Vec<(usize, u64)>,
}

/// What the figures of a pool are held against. A tunable may change at any time, and what is
/// under way need not follow at once: its largest value is what counts.
#[derive(Clone, Debug)]
struct Bounds {
    dirty_max: u64,
    active_max: [u64; Class::ALL.len()],
    /// Bytes of the writes that clients wait for, in whole blocks; now and at most.
    writing: u64,
    most_writing: u64,
    /// Whether dirty data is bounded by the tunable: the legacy throttle has no such bound.
    bounded: bool,
    last_txg: u64,
}

impl Views {
    pub(crate) fn new(scenario: &Scenario) -> Views {
        let volume = |at: usize| {
            let volume = &scenario.volumes[at];
            (volume.pool, u64::from(volume.block_size))
        };
        Views {
            pools: (0..scenario.pools.len())
                .map(|pool| Bounds::new(scenario, pool))
                .collect(),
            volumes: (0..scenario.volumes.len()).map(volume).collect(),
        }
    }

    pub(crate) fn submitted(&mut self, request: &Request) {
        if let Some((pool, bytes)) = self.writes(request) {
            let bounds = &mut self.pools[pool];
            bounds.writing += bytes;
            bounds.most_writing = bounds.most_writing.max(bounds.writing);
        }
    }

    pub(crate) fn ended(&mut self, request: &Request) {
        if let Some((pool, bytes)) = self.writes(request) {
            self.pools[pool].writing -= bytes;
        }
    }

    /// The pool that a request dirties, and by how much at most.
    fn writes(&self, request: &Request) -> Option<(usize, u64)> {
        let Target::Volume(volume) = request.target else {
            return None;
        };
        let (pool, block) = self.volumes[volume];
        let writes = matches!(request.op, Op::Write | Op::Zero | Op::Trim);
        let end = request.offset + u64::from(request.length);
        let blocks = end.div_ceil(block) - request.offset / block;
        writes.then_some((pool, blocks * block))
    }

    pub(crate) fn check(&mut self, engine: &Engine, now: Instant) -> Result<(), String> {
        for (pool, bounds) in (0..).zip(&mut self.pools) {
            if let Some(stats) = engine.pool_stats(PoolId(pool), now) {
                let checked = bounds.check(&stats);
                checked.map_err(|what| format!("pool {pool}: {what}"))?;
            }
        }
        Ok(())
    }
}

impl Bounds {
    fn new(scenario: &Scenario, pool: usize) -> Bounds {
        let tunables = &scenario.pools[pool].tunables;
        let most = |tunable: Tunable| {
            let tuned = scenario
                .commands
                .iter()
                .filter_map(|(_, command)| match command {
                    Command::Tune {
                        pool: PoolId(at),
                        tunable: tuned,
                        value,
                    } if *at as usize == pool && *tuned == tunable => Some(*value),
                    _ => None,
                });
            tuned.chain([tunables.get(tunable)]).max().unwrap_or(0)
        };
        let throttle = scenario.pools[pool].throttle;
        Bounds {
            dirty_max: most(Tunable::DirtyDataMax),
            active_max: Class::ALL.map(|class| most(max_active(class))),
            writing: 0,
            most_writing: 0,
            bounded: !matches!(throttle, ThrottleConfig::Legacy(_)),
            last_txg: 0,
        }
    }

    fn check(&mut self, stats: &PoolStats) -> Result<(), String> {
        let most = self.dirty_max.saturating_add(self.most_writing);
        if self.bounded && stats.dirty > most {
            return Err(format!(
                "{} bytes are dirty: more than the maximum of {} and the {} that were admitted",
                stats.dirty, self.dirty_max, self.most_writing
            ));
        }
        for queue in &stats.queues {
            for (class, max) in Class::ALL.iter().zip(self.active_max) {
                let active = queue.classes[*class as usize].active;
                if u64::from(active) > max {
                    return Err(format!(
                        "disk {} has {active} zios of class {} active, but {max} are allowed",
                        queue.disk.0,
                        class.name()
                    ));
                }
            }
        }
        self.check_txgs(&stats.txgs)
    }

    fn check_txgs(&mut self, txgs: &[TxgStats]) -> Result<(), String> {
        let follows = |pair: &[TxgStats]| {
            let (older, newer) = (pair[0], pair[1]);
            let both_done = newer.state == TxgState::Committed && older.state == newer.state;
            newer.txg == older.txg + 1
                && newer.birth >= older.birth
                && (both_done || rank(newer.state) < rank(older.state))
        };
        if let Some(pair) = txgs.windows(2).find(|pair| !follows(pair)) {
            return Err(format!(
                "txg {} {:?} is followed by txg {} {:?}",
                pair[0].txg, pair[0].state, pair[1].txg, pair[1].state
            ));
        }
        if let Some(last) = txgs.last() {
            if last.state != TxgState::Open || last.txg < self.last_txg {
                return Err(format!("the last txg is {} {:?}", last.txg, last.state));
            }
            self.last_txg = last.txg;
        }
        Ok(())
    }
}

/// The states that one txg at a time can be in, from the newest on.
fn rank(state: TxgState) -> u32 {
    match state {
        TxgState::Open => 0,
        TxgState::Quiescing | TxgState::Quiesced => 1,
        TxgState::Syncing => 2,
        TxgState::Committed => 3,
    }
}

fn max_active(class: Class) -> Tunable {
    match class {
        Class::SyncRead => Tunable::SyncReadMaxActive,
        Class::SyncWrite => Tunable::SyncWriteMaxActive,
        Class::AsyncRead => Tunable::AsyncReadMaxActive,
        Class::AsyncWrite => Tunable::AsyncWriteMaxActive,
        Class::Trim => Tunable::TrimMaxActive,
    }
}
