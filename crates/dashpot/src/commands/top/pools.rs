//! Frames of a daemon's pools.

use std::collections::BTreeMap;

use dashpot_api::{Client, ClientError, Pool, Status, TrafficSum};
use dashpot_engine::pool::TxgStats;

use super::frame::{PoolFrame, TXGS_MAX};

/// What the clients of each pool had written at the last frame, and how fast they wrote until then.
#[derive(Default)]
pub(super) struct Pools {
    last: BTreeMap<String, (u64, TrafficSum)>,
    /// Operations and bytes per second.
    written: BTreeMap<String, (f64, f64)>,
}

impl Pools {
    /// Ends an interval.
    pub(super) fn end_interval(&mut self, status: &Status) {
        self.written.clear();
        for pool in &status.pools {
            let now = (pool.at_ns, pool.traffic.volumes);
            if let Some(before) = self.last.insert(pool.name.clone(), now) {
                self.written
                    .extend(rates(before, now).map(|rates| (pool.name.clone(), rates)));
            }
        }
    }

    /// A pool as it is now, with the writes of the last interval.
    pub(super) fn frame(&self, client: &Client, pool: &Pool) -> Result<PoolFrame, ClientError> {
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

/// The writes per second between two moments; `None` if no time has passed, or if another daemon counts now.
fn rates(before: (u64, TrafficSum), now: (u64, TrafficSum)) -> Option<(f64, f64)> {
    let elapsed_ns = now.0.checked_sub(before.0).filter(|ns| *ns > 0)?;
    let seconds = elapsed_ns as f64 / 1e9;
    let writes = now.1.writes.checked_sub(before.1.writes)?;
    let bytes = now.1.written_bytes.checked_sub(before.1.written_bytes)?;
    Some((writes as f64 / seconds, bytes as f64 / seconds))
}
