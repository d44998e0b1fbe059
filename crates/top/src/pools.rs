//! Frames of a daemon's pools.

use std::collections::BTreeMap;
use std::time::Duration;

use dashpot_api::{Client, ClientError, Pool, Status, TrafficSum};
use dashpot_engine::pool::{Traffic, TxgStats};

use crate::frame::{PoolFrame, TXGS_MAX, written};

/// The pools at the last frame, and the writes of their clients in the interval before that frame.
#[derive(Default)]
pub(crate) struct Pools {
    /// For each pool, the moment of the last frame, and the sum of its operations until then.
    last: BTreeMap<String, (u64, TrafficSum)>,
    /// For each pool, the writes of its clients in the last interval, in operations and bytes per second.
    written: BTreeMap<String, (f64, f64)>,
}

impl Pools {
    /// Ends an interval, and works out the rates of the clients' writes in it.
    pub(crate) fn end_interval(&mut self, status: &Status) {
        self.written.clear();
        for pool in &status.pools {
            let now = (pool.at_ns, pool.traffic.volumes);
            if let Some(before) = self.last.insert(pool.name.clone(), now) {
                let written = written_between(before, now);
                self.written
                    .extend(written.map(|rates| (pool.name.clone(), rates)));
            }
        }
    }

    /// A pool as it is now, with the writes of the last interval.
    pub(crate) fn frame(&self, client: &Client, pool: &Pool) -> Result<PoolFrame, ClientError> {
        let txgs = client.txgs(&pool.name)?;
        let newest = txgs.iter().rev().take(TXGS_MAX);
        Ok(PoolFrame {
            name: pool.name.clone(),
            throttle: pool.throttle.word(),
            dirty: pool.dirty_bytes,
            level: pool.level.into(),
            throttled: pool.throttled,
            written: self.written.get(&pool.name).copied(),
            txgs: newest.map(TxgStats::from).collect(),
        })
    }
}

/// The rates between two frames; `None` if no time has passed, or if the counters have become smaller,
/// because they are now the counters of another daemon.
fn written_between(before: (u64, TrafficSum), now: (u64, TrafficSum)) -> Option<(f64, f64)> {
    let elapsed = Duration::from_nanos(now.0.checked_sub(before.0)?);
    let done = Traffic {
        writes: now.1.writes.checked_sub(before.1.writes)?,
        bytes_written: now.1.written_bytes.checked_sub(before.1.written_bytes)?,
        ..Traffic::default()
    };
    written(done, elapsed)
}
