//! Makes the records of pools' mirrors durable.

use std::sync::Arc;

use dashpot_engine::PoolId;

use super::Shard;
use crate::message::Message;

impl Shard {
    /// Makes the keeper of a pool write the record of the pool's mirrors durably. The keeper does so on its
    /// own thread. Returns false if the pool has no keeper, and so nothing to record.
    pub(super) fn record_mirrors(&mut self, pool: PoolId) -> bool {
        let Some(keeper) = self.keepers.get(&pool) else {
            return false;
        };
        let records = self.engine.mirror_records(pool);
        let mailbox = Arc::clone(self.control.mailbox());
        keeper.keep(records, move |outcome| {
            // If the shard is gone, it needs no answer.
            let _ = mailbox.send(Message::Recorded(pool, outcome));
        });
        true
    }

    /// Makes the keepers write their last records, and waits for them. If all stores have been `synced`,
    /// these records name only the regions that are not repaired yet.
    pub(super) fn record_last(&mut self, synced: bool) {
        for (pool, keeper) in self.keepers.drain() {
            let records = if synced {
                self.engine.last_mirror_records(pool)
            } else {
                self.engine.mirror_records(pool)
            };
            keeper.keep(records, drop);
        }
    }
}
