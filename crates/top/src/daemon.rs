//! Makes frames of a daemon's volumes, disks and pools, and changes the disks, through its API: two requests
//! for each frame, two more for each device, and one more for each pool.

use std::collections::BTreeMap;

use dashpot_api::{
    By, CanHold, Client, ClientError, DeviceIo, Disk, DiskLatency, Inject, Pool, Resumed, Status,
    Suspend, Suspended, Update, Volume,
};
use dashpot_observe::Layer;
use dashpot_sources::between;
use dashpot_text::rule::cleared;

use crate::ask::Ask;
use crate::frame::{ClientFrame, Condition, DiskFrame, Done, Frame};
use crate::pools::Pools;
use crate::said;

/// A daemon, and the counters of its devices and pools at the last frame.
pub(crate) struct Daemon {
    client: Client,
    /// The names of the devices to show; empty for all.
    only: Vec<String>,
    /// The latencies of each device as a whole, and by client.
    last: BTreeMap<String, [DiskLatency; 2]>,
    pools: Pools,
}

impl Daemon {
    pub(crate) fn new(client: Client, only: Vec<String>) -> Daemon {
        Daemon {
            client,
            only,
            last: BTreeMap::new(),
            pools: Pools::default(),
        }
    }

    /// Makes a frame that ends an interval.
    pub(crate) fn frame(&mut self) -> anyhow::Result<Frame> {
        let status = self.client.status(1)?;
        self.pools.end_interval(&status);
        let mut frame = self.frame_of(status)?;
        for disk in &mut frame.disks {
            if matches!(disk.conditions.first(), Some(Condition::Failed(_))) {
                continue;
            }
            let now = self.latencies(disk)?;
            if let Some(before) = self.last.get(&disk.name) {
                frame.restarted |= !is_of_one_life(before, &now);
                end_interval(disk, &mut frame.notes, before, &now)?;
            }
            self.last.insert(disk.name.clone(), now);
        }
        Ok(frame)
    }

    fn latencies(&self, device: &DiskFrame) -> Result<[DiskLatency; 2], ClientError> {
        let ask = |by| match device.layer {
            Layer::Volume => self.client.volume_latency(&device.name, by),
            Layer::Disk | Layer::Store | Layer::Fs | Layer::Kernel => {
                self.client.latency(&device.name, by)
            }
        };
        Ok([ask(None)?, ask(Some(By::Client))?])
    }

    /// A frame that ends no interval.
    pub(crate) fn glance(&self) -> Result<Frame, ClientError> {
        self.frame_of(self.client.status(1)?)
    }

    fn frame_of(&self, status: Status) -> Result<Frame, ClientError> {
        let shown = |device: &DiskFrame| self.only.is_empty() || self.only.contains(&device.name);
        let volumes = status.volumes.iter().map(volume_frame);
        let devices = volumes.chain(status.disks.iter().map(disk_frame));
        let devices: Vec<DiskFrame> = devices.filter(shown).collect();
        let has_device = |pool: &&Pool| {
            let mut pools = devices.iter().filter_map(|device| device.pool.as_ref());
            pool.failed.is_none() && pools.any(|name| *name == pool.name)
        };
        let pools = status.pools.iter().filter(has_device);
        let pools = pools.map(|pool| self.pools.frame(&self.client, pool));
        let mut promises = status.promises;
        promises.retain(|promise| promise.can_hold != CanHold::Yes);
        Ok(Frame {
            pools: pools.collect::<Result<_, _>>()?,
            disks: devices,
            rules: self.client.rules()?,
            shards: status.shards,
            promises,
            ..Frame::default()
        })
    }

    /// Carries out a request. Returns a text about what was done.
    pub(crate) fn carry_out(&self, ask: &Ask) -> Result<String, ClientError> {
        match ask {
            Ask::Arm { disk, words } => self.arm(disk, words),
            Ask::Update { rule, words } => {
                let update = Update {
                    rule: words.clone(),
                };
                let rules = self.client.update(&rule.to_string(), &update)?;
                Ok(said::armed(&rules))
            }
            Ask::Clear { rule } => {
                let done = self.client.clear(&rule.to_string(), false)?;
                Ok(cleared(&done.cleared, done.held, done.hung))
            }
            Ask::Suspend { disk } => self.suspend(disk),
            Ask::Resume { disk } => {
                let Resumed { waiting } = self.client.resume(disk)?;
                Ok(said::resumed(disk, waiting))
            }
            Ask::Every(_) => Ok(String::new()),
        }
    }

    fn arm(&self, disk: &str, words: &str) -> Result<String, ClientError> {
        let request = Inject {
            rule: words.to_owned(),
            ..Inject::default()
        };
        let rules = self.client.inject(disk, &request)?;
        Ok(said::armed(&rules))
    }

    /// Suspends a disk without waiting for the zios in flight. The screen shows when they have ended.
    fn suspend(&self, disk: &str) -> Result<String, ClientError> {
        let request = Suspend {
            now: true,
            ..Suspend::default()
        };
        let Suspended { in_flight } = self.client.suspend(disk, &request)?;
        Ok(said::suspended(disk, in_flight))
    }
}

/// Whether the counters of both frames come from the same run of the daemon.
fn is_of_one_life(before: &[DiskLatency; 2], now: &[DiskLatency; 2]) -> bool {
    let mut pairs = before.iter().zip(now);
    pairs.all(|(before, now)| before.since_ns == now.since_ns)
}

/// Adds the I/O between two frames to the later frame, unless the frames come from different runs of the
/// daemon.
fn end_interval(
    disk: &mut DiskFrame,
    notes: &mut Vec<String>,
    before: &[DiskLatency; 2],
    now: &[DiskLatency; 2],
) -> anyhow::Result<()> {
    if !is_of_one_life(before, now) {
        return Ok(());
    }
    let [whole, by_client] = [0, 1].map(|at| between(&before[at], &now[at]));
    disk.done = Done::of(&whole?);
    let mut active = ClientFrame::all(&by_client?);
    for client in &mut disk.clients {
        let own = active.iter().position(|one| one.name == client.name);
        let own = own.map_or_else(ClientFrame::default, |at| active.remove(at));
        client.per_second = Some(own.per_second.unwrap_or(0.0));
        client.p99_ns = own.p99_ns;
    }
    // Omit clients without I/O in the interval: they have gone, or count in `other` now.
    active.retain(|one| one.per_second > Some(0.0));
    disk.clients.append(&mut active);
    let dropped = now[1].dropped.saturating_sub(before[1].dropped);
    if dropped > 0 {
        let name = &disk.name;
        notes.push(format!(
            "{name}: {dropped} events were dropped in this interval: figures by client miss them"
        ));
    }
    Ok(())
}

fn disk_frame(disk: &Disk) -> DiskFrame {
    DiskFrame {
        name: disk.name.clone(),
        pool: disk.pool.clone(),
        store: disk.store.clone(),
        conditions: conditions(disk),
        ..device_frame(&disk.io)
    }
}

fn volume_frame(volume: &Volume) -> DiskFrame {
    let conditions = [
        volume.failed.clone().map(Condition::Failed),
        (volume.io.stalled > 0).then_some(Condition::Stalled(volume.io.stalled)),
    ];
    DiskFrame {
        name: volume.name.clone(),
        layer: Layer::Volume,
        pool: Some(volume.pool.clone()),
        conditions: conditions.into_iter().flatten().collect(),
        ..device_frame(&volume.io)
    }
}

/// The part of a frame that disks and volumes have in common.
fn device_frame(io: &DeviceIo) -> DiskFrame {
    let oldest = io.oldest.first();
    let clients = io.clients.iter().map(|client| ClientFrame {
        name: client.name.clone(),
        connections: Some(client.connections),
        ..ClientFrame::default()
    });
    DiskFrame {
        clients: clients.collect(),
        in_flight: u64::from(io.in_flight),
        oldest_ns: oldest.map(|zio| zio.age_ns),
        wait: oldest.map(|zio| match zio.rule {
            Some(rule) => format!("{}, rule {rule}", zio.wait),
            None => zio.wait.clone(),
        }),
        ..DiskFrame::default()
    }
}

fn conditions(disk: &Disk) -> Vec<Condition> {
    let suspended = disk.suspended.as_ref().map(|one| Condition::Suspended {
        age_ns: one.age_ns,
        left_ns: one.remaining_ns,
    });
    [
        disk.failed.clone().map(Condition::Failed),
        disk.faulted.clone().map(Condition::Faulted),
        suspended,
        (disk.io.stalled > 0).then_some(Condition::Stalled(disk.io.stalled)),
        disk.read_only.then_some(Condition::ReadOnly),
    ]
    .into_iter()
    .flatten()
    .collect()
}
