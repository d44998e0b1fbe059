//! Checks that a pool's figures are consistent.

use dashpot_engine::pool::{Class, PoolState, ThrottleConfig, Tunable, TxgState};
use dashpot_engine::{Command, Engine, Op, PoolId};

use crate::calls::Request;
use crate::scenario::{Scenario, Target};

/// The bounds for the figures of all pools.
#[derive(Debug)]
pub(crate) struct Views {
    pools: Vec<Bounds>,
    /// For each volume, its pool and its block size.
    volumes: Vec<(usize, u64)>,
}

/// The bounds for the figures of a pool. A tunable may change at any time, but I/O in flight need not follow
/// at once, so a bound is the largest value that its tunable ever has.
#[derive(Clone, Debug)]
struct Bounds {
    dirty_max: u64,
    active_max: [u64; Class::ALL.len()],
    /// Clients now wait for some writes. The number is the total size, in bytes, of the blocks that
    /// these writes touch.
    writing: u64,
    /// The largest value of `writing` so far.
    most_writing: u64,
    /// Whether `dirty_max` bounds dirty data. With the legacy throttle, it does not.
    bounded: bool,
    /// The oldest live txg at the last check.
    oldest_txg: u64,
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

    /// The pool in which a request makes data dirty, and the maximum number of bytes that it makes dirty.
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

    pub(crate) fn check(&mut self, engine: &Engine) -> Result<(), String> {
        for (pool, bounds) in (0..).zip(&mut self.pools) {
            if let Some(state) = engine.pool_state(PoolId(pool)) {
                let checked = bounds.check(&state);
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
                        changes,
                    } if *at as usize == pool => Some(changes),
                    _ => None,
                });
            let tuned = tuned.flatten().filter(|(tuned, _)| *tuned == tunable);
            let tuned = tuned.map(|(_, value)| *value);
            tuned.chain([tunables.get(tunable)]).max().unwrap_or(0)
        };
        let throttle = scenario.pools[pool].throttle;
        Bounds {
            dirty_max: most(Tunable::DirtyDataMax),
            active_max: Class::ALL.map(|class| most(max_active(class))),
            writing: 0,
            most_writing: 0,
            bounded: !matches!(throttle, ThrottleConfig::Legacy(_)),
            oldest_txg: 0,
        }
    }

    fn check(&mut self, pool: &PoolState) -> Result<(), String> {
        let most = self.dirty_max.saturating_add(self.most_writing);
        if self.bounded && pool.dirty > most {
            return Err(format!(
                "{} bytes are dirty: more than the maximum of {} and the {} that were admitted",
                pool.dirty, self.dirty_max, self.most_writing
            ));
        }
        for queue in &pool.queues {
            for (class, max) in Class::ALL.iter().zip(self.active_max) {
                let active = queue.active[*class as usize];
                if u64::from(active) > max {
                    return Err(format!(
                        "disk {} has {active} zios of class {} active, but {max} are allowed",
                        queue.disk.0,
                        class.name()
                    ));
                }
            }
        }
        self.check_txgs(&pool.txgs)
    }

    fn check_txgs(&mut self, txgs: &[(u64, TxgState)]) -> Result<(), String> {
        let follows = |pair: &[(u64, TxgState)]| {
            let ((older, its_state), (newer, state)) = (pair[0], pair[1]);
            newer == older + 1 && rank(state) < rank(its_state)
        };
        if let Some(pair) = txgs.windows(2).find(|pair| !follows(pair)) {
            return Err(format!(
                "txg {:?} is followed by txg {:?}",
                pair[0], pair[1]
            ));
        }
        match txgs {
            [(oldest, _), ..] if *oldest < self.oldest_txg => Err(format!(
                "txg {oldest} is live, but the oldest was {}",
                self.oldest_txg
            )),
            [(oldest, _), .., (_, TxgState::Open)] | [(oldest, TxgState::Open)] => {
                self.oldest_txg = *oldest;
                Ok(())
            }
            _ => Err(format!("no txg is open: {txgs:?}")),
        }
    }
}

/// The rank of a txg's state. From a pool's newest txg to its oldest, the rank never falls.
fn rank(state: TxgState) -> u32 {
    match state {
        TxgState::Open => 0,
        TxgState::Quiesced => 1,
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
