//! Gives the rest of the program access to the shards, by messages to their mailboxes.
//!
//! Every call returns at once. The shard runs the caller's closure with the answer on its own
//! thread, after the change took effect. The closure must do no more than pass the answer on.

use std::sync::Arc;

use dashpot_engine::{Answer, Command, CommandError, DiskId, Duration};

use crate::clock;
use crate::events::Drops;
use crate::export::ExportId;
use crate::message::{Attach, AttachError, Message};
use crate::power::{Cut, CutError, Loss};
use crate::prober::{ProbeReading, Readings};
use crate::route::{Route, Routes};
use crate::snapshot::DiskSnapshot;

/// One served disk, as it was at the start.
#[derive(Clone, Debug)]
pub struct DiskInfo {
    /// Its name, which is also its export name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The smallest read or write, in bytes.
    pub block: u32,
    /// The smallest write that the store does without reading, in bytes, if it is known.
    pub physical: Option<u32>,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Its store, in the words of the lab file: `ram`, `file:/path`.
    pub store: String,
    /// Identifies the bytes of its store; `None` if they are lost when this process ends.
    pub store_id: Option<String>,
    /// The shard that owns it.
    pub shard: usize,
}

/// The shard is gone: it panicked, and its exports fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shard of this disk has failed; see the daemon's log, and restart it")]
pub struct ShardGone;

/// Access to the shards of a running server. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    disks: Arc<[DiskInfo]>,
    routes: Arc<Routes>,
    /// By shard.
    readings: Arc<[Arc<Readings>]>,
    spins: bool,
}

impl Handle {
    pub(crate) fn new(
        disks: Vec<DiskInfo>,
        routes: Routes,
        readings: Vec<Arc<Readings>>,
        spins: bool,
    ) -> Handle {
        Handle {
            disks: disks.into(),
            routes: routes.into(),
            readings: readings.into(),
            spins,
        }
    }

    /// The served disks, in the order of the configuration. Other methods take the index of a disk in
    /// this list, or of an export: each disk is one, so the two are equal.
    pub fn disks(&self) -> &[DiskInfo] {
        &self.disks
    }

    /// Whether the shards meet their deadlines by spinning.
    pub fn spins(&self) -> bool {
        self.spins
    }

    /// The readings of a shard's prober in the last minute, the oldest first. If the prober has
    /// been waiting for an answer for long, the last reading is the wait so far. There are no
    /// readings if no client asked the shard for anything.
    pub fn probe(&self, shard: usize) -> Vec<ProbeReading> {
        let readings = self.readings.get(shard);
        readings.map_or_else(Vec::new, |readings| readings.last_minute(clock::now()))
    }

    /// Whether the shard of a disk is running. Does not ask the shard.
    pub fn is_served(&self, disk: usize) -> Result<(), ShardGone> {
        match self.disk(disk)?.mailbox.is_closed() {
            true => Err(ShardGone),
            false => Ok(()),
        }
    }

    /// Sends a command to the shard of a disk. `build` gets the disk's id in that shard.
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

    /// Takes a snapshot of a disk, with its `oldest` zios in flight. The shard needs time to find them
    /// that it could spend on its clients, so ask for no more than you need.
    pub fn snapshot(
        &self,
        disk: usize,
        oldest: usize,
        answer: impl FnOnce(DiskSnapshot) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.disk(disk)?;
        send(route, Message::Snapshot(route.id, oldest, Box::new(answer)))
    }

    /// Publishes the events of all finished zios of the disk's shard. Then answers with the count
    /// of the events that the shard had to drop.
    pub fn flush_events(
        &self,
        disk: usize,
        answer: impl FnOnce(Drops) + Send + 'static,
    ) -> Result<(), ShardGone> {
        send(self.disk(disk)?, Message::Events(Box::new(answer)))
    }

    /// Cuts the power of an export on a `lossy` store, or restores it.
    pub fn cut(
        &self,
        export: usize,
        cut: Cut,
        answer: impl FnOnce(Result<Loss, CutError>) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.export(export)?;
        send(route, Message::Cut(route.id, cut, Box::new(answer)))
    }

    /// Makes the kernel a client of an export. Answers once the shard reads the kernel's requests.
    pub fn attach(
        &self,
        export: usize,
        attach: Attach,
        answer: impl FnOnce(Result<(), AttachError>) + Send + 'static,
    ) -> Result<(), ShardGone> {
        let route = self.export(export)?;
        send(route, Message::Attach(route.id, attach, Box::new(answer)))
    }

    /// Ends the attachment of an export that has this node. The zios in flight fail, and so does every
    /// later request of the kernel. Returns how many zios were in flight, or nothing if there is no
    /// such attachment.
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

    /// Ends the grace period of a shutdown: zios that are held fail now.
    pub fn hurry(&self) {
        for route in &self.routes.disks {
            // A shard that is gone needs no message.
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
