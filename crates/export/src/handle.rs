//! Gives the rest of the program access to the shards, through messages to their mailboxes.
//!
//! Every call returns at once. When the shard has made the change or has the answer, it calls the caller's
//! closure. The shard calls the closure on its own thread, so the closure must do no more than pass the
//! answer on.

use std::io;
use std::sync::Arc;

use dashpot_engine::{Answer, Command, CommandError, Device, DiskId, Duration, PoolId};
use dashpot_sys::seccomp::Listener;

use crate::clock;
use crate::damage::DamageReport;
use crate::deal::Infos;
use crate::events::{DeviceId, Drops};
use crate::export::{ExportId, Followed, Follower, Uring};
use crate::info::{DiskInfo, PoolInfo, ServedDevice, VolumeInfo};
use crate::message::{Attach, AttachError, Message, Outlet, follow};
use crate::power::{Cut, CutError, Loss, PoolLoss};
use crate::prober::{ProbeReading, Readings};
use crate::route::{Route, Routes};
use crate::snapshot::{DiskSnapshot, PoolSnapshot};

/// The shard is gone because it has failed or panicked. Its exports fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shard of this disk has failed; see the daemon's log, and restart the daemon")]
pub struct ShardGone;

/// Gives access to the shards of a running server. A handle is cheap to clone.
#[derive(Clone)]
pub struct Handle {
    infos: Arc<Infos>,
    routes: Arc<Routes>,
    /// The readings of each shard's prober.
    readings: Arc<[Arc<Readings>]>,
    spins: bool,
}

impl Handle {
    pub(crate) fn new(
        infos: Infos,
        routes: Routes,
        readings: Vec<Arc<Readings>>,
        spins: bool,
    ) -> Handle {
        Handle {
            infos: infos.into(),
            routes: routes.into(),
            readings: readings.into(),
            spins,
        }
    }

    /// The served disks, in the order of the configuration. Other methods take the index of a disk, pool or
    /// volume in the lists of this handle, or the index of an export, which [`DiskInfo`] and [`VolumeInfo`]
    /// contain.
    pub fn disks(&self) -> &[DiskInfo] {
        &self.infos.disks
    }

    /// The served pools, in the order of the configuration.
    pub fn pools(&self) -> &[PoolInfo] {
        &self.infos.pools
    }

    /// The served volumes, in the order of the configuration.
    pub fn volumes(&self) -> &[VolumeInfo] {
        &self.infos.volumes
    }

    /// Lets the pools use their mirrors: from now on, each pool records the state of its mirrors, and repairs
    /// sides that differ.
    pub(crate) fn use_mirrors(&self) {
        for pool in &self.routes.pools {
            let repair = Command::Repair(pool.id);
            // If the shard is gone, it has no mirrors to use.
            let _ = pool.mailbox.send(Message::Command(repair, Box::new(drop)));
        }
    }

    /// The id of a volume, which is unique among all devices.
    pub fn device_of_volume(&self, volume: usize) -> DeviceId {
        DeviceId::of(self.disks().len() + volume)
    }

    /// The disk or the volume with this id.
    pub fn device(&self, id: DeviceId) -> ServedDevice<'_> {
        let index = id.index();
        match self.disks().get(index) {
            Some(disk) => ServedDevice::Disk(disk),
            None => ServedDevice::Volume(&self.volumes()[index - self.disks().len()]),
        }
    }

    /// The names of the exports, in the order of their indices: disks outside of pools, then volumes.
    pub fn exports(&self) -> impl Iterator<Item = &str> {
        let lone = self.disks().iter().filter(|disk| disk.export.is_some());
        let volumes = self.volumes().iter().map(|volume| volume.name.as_str());
        lone.map(|disk| disk.name.as_str()).chain(volumes)
    }

    /// Whether the shards spin to meet their deadlines.
    pub fn spins(&self) -> bool {
        self.spins
    }

    /// The readings of a shard's prober in the last minute, the oldest first. If the prober has been waiting
    /// long for an answer, its wait so far is the last reading. The list is empty if no client has sent the
    /// shard a request in that minute.
    pub fn probe(&self, shard: usize) -> Vec<ProbeReading> {
        let readings = self.readings.get(shard);
        readings.map_or_else(Vec::new, |readings| readings.last_minute(clock::now()))
    }

    /// Fails if the shard of a disk has ended. Does not ask the shard.
    pub fn is_served(&self, disk: usize) -> Result<(), ShardGone> {
        if self.disk(disk)?.mailbox.is_closed() {
            Err(ShardGone)
        } else {
            Ok(())
        }
    }

    /// Sends a command to the shard of a disk. `build` makes the command from the disk's id in that shard.
    pub fn command(
        &self,
        disk: usize,
        build: impl FnOnce(DiskId) -> Command,
        answer: impl FnOnce(Result<Answer, CommandError>) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.disk(disk)?;
        let command = build(route.id);
        send(route, Message::Command(command, Box::new(answer)))
    }

    /// Takes a snapshot of a disk. It includes the disk's oldest zios in flight, at most `oldest` of them. The shard
    /// does not serve its clients while it looks for these zios, so ask for no more than you need.
    pub fn snapshot(
        &self,
        disk: usize,
        oldest: usize,
        answer: impl FnOnce(DiskSnapshot) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.disk(disk)?;
        let device = Device::Disk(route.id);
        send(route, Message::Snapshot(device, oldest, Box::new(answer)))
    }

    /// Sends a command to the shard of a pool. `build` makes the command from the pool's id in that shard.
    pub fn command_pool(
        &self,
        pool: usize,
        build: impl FnOnce(PoolId) -> Command,
        answer: impl FnOnce(Result<Answer, CommandError>) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.routes.pools.get(pool).ok_or(ShardGone)?;
        let command = build(route.id);
        send(route, Message::Command(command, Box::new(answer)))
    }

    /// Reports the damage of a disk.
    pub fn damage(
        &self,
        disk: usize,
        answer: impl FnOnce(DamageReport) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.disk(disk)?;
        send(route, Message::Damage(route.id, Box::new(answer)))
    }

    /// Takes a snapshot of a pool.
    pub fn snapshot_pool(
        &self,
        pool: usize,
        answer: impl FnOnce(PoolSnapshot) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.routes.pools.get(pool).ok_or(ShardGone)?;
        send(route, Message::SnapshotPool(route.id, Box::new(answer)))
    }

    /// Takes a snapshot of a volume, with at most `oldest` of its zios in flight, the oldest ones.
    pub fn snapshot_volume(
        &self,
        volume: usize,
        oldest: usize,
        answer: impl FnOnce(DiskSnapshot) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.routes.volumes.get(volume).ok_or(ShardGone)?;
        let device = Device::Volume(route.id);
        send(route, Message::Snapshot(device, oldest, Box::new(answer)))
    }

    /// Publishes the events of all zios that the disk's shard has finished. The answer has the counts of the
    /// events that the shard had to drop.
    pub fn flush_events(
        &self,
        disk: usize,
        answer: impl FnOnce(Drops) + Send + 'static,
    ) -> Result<(), ShardGone> {
        send(self.disk(disk)?, Message::Events(Box::new(answer)))
    }

    /// Cuts the power of an export on a `lossy` store, or restores the power.
    pub fn cut(
        &self,
        export: usize,
        cut: Cut,
        answer: impl FnOnce(Result<Loss, CutError>) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.export(export)?;
        send(route, Message::Cut(route.id, cut, Box::new(answer)))
    }

    /// Cuts the power of a pool whose disks are all on `lossy` stores, or restores the power.
    pub fn cut_pool(
        &self,
        pool: usize,
        cut: Cut,
        answer: impl FnOnce(Result<PoolLoss, CutError>) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.routes.pools.get(pool).ok_or(ShardGone)?;
        send(route, Message::CutPool(route.id, cut, Box::new(answer)))
    }

    /// Makes the kernel a client of an export. The shard calls `answer` once it is ready to read the kernel's
    /// requests.
    pub fn attach(
        &self,
        export: usize,
        attach: Attach,
        answer: impl FnOnce(Result<(), AttachError>) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.export(export)?;
        send(route, Message::Attach(route.id, attach, Box::new(answer)))
    }

    /// Ends the attachment of an export to the block device `node`. The zios in flight fail, and so does
    /// every later request of the kernel. The answer is the number of zios that were in flight, or `None` if
    /// there is no such attachment.
    pub fn fail_attachment(
        &self,
        export: usize,
        node: String,
        answer: impl FnOnce(Option<u32>) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.export(export)?;
        let message = Message::FailAttachment(route.id, node, Box::new(answer));
        send(route, message)
    }

    /// Makes a program and its descendants the clients of all path disks. Their calls on the files of a path disk become
    /// zios of the disk. `follower` is informed about the calls.
    pub fn follow(
        &self,
        listener: Listener,
        uring: Uring,
        follower: Box<dyn Follower>,
    ) -> io::Result<Followed> {
        let files = |(disk, route): &(usize, Route<ExportId>)| {
            let info = &self.infos.disks[*disk];
            let (files, counts) = (info.followed.clone()?, Arc::clone(&info.path_counts));
            let mailbox = Arc::clone(&route.mailbox);
            // If the shard is gone, the message is lost, and the program's calls go on.
            let send = move |message| drop(mailbox.send(message));
            Some(((files, counts), route.id, Box::new(send) as Outlet))
        };
        let files = self.routes.followed.iter().filter_map(files);
        follow(listener, files, uring, follower)
    }

    /// Ends the grace period of a shutdown, so that zios that are held fail now.
    pub fn hurry(&self) {
        for route in &self.routes.disks {
            // If the shard is gone, it needs no message.
            let _ = send(route, Message::Shutdown(Duration::ZERO));
        }
    }

    fn disk(&self, disk: usize) -> Result<&Route<DiskId>, ShardGone> {
        self.routes.disks.get(disk).ok_or(ShardGone)
    }

    fn export(&self, export: usize) -> Result<&Route<ExportId>, ShardGone> {
        self.routes.exports.get(export).ok_or(ShardGone)
    }
}

fn send<Id>(route: &Route<Id>, message: Message) -> Result<(), ShardGone> {
    route.mailbox.send(message).map_err(|_| ShardGone)
}
