//! Access to finished zios. `collected` shows the events that have arrived; the other functions first bring
//! the events up to date.

use dashpot_export::{DeviceId, Drops, ShardGone};

use super::{Daemon, asked};
use crate::collector::View;

impl Daemon {
    /// Runs `look` on the events of a disk or a volume, or of all devices. These events include every zio
    /// that had finished before the call.
    pub async fn events<T>(
        &self,
        device: Option<DeviceId>,
        look: impl FnOnce(&View<'_>) -> T,
    ) -> T {
        let disk = device.and_then(|device| self.disk_beside(device));
        let mut drops: Vec<(usize, Drops)> = Vec::new();
        for (index, info) in self.disks() {
            let asked = drops.iter().any(|(shard, _)| *shard == info.shard);
            if asked || disk.is_some_and(|disk| disk != index) {
                continue;
            }
            // A shard that has failed has nothing to add.
            if let Ok(dropped) = self.flush_events(index).await {
                drops.push((info.shard, dropped));
            }
        }
        self.collector.look(drops, look)
    }

    /// Runs `look` on the events that have arrived already.
    pub fn collected<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        self.collector.look(Vec::new(), look)
    }

    /// Collects all zios that ended before this second, which must have begun. The shards are asked only once
    /// for each second, however many callers want it.
    pub(crate) async fn collect_to(&self, second: u64) {
        let mut collected_to = self.collected_to.lock().await;
        if *collected_to < second {
            self.events(None, |_| ()).await;
            *collected_to = second;
        }
    }

    async fn flush_events(&self, disk: usize) -> Result<Drops, ShardGone> {
        asked(|answer| self.handle.flush_events(disk, answer)).await
    }
}
