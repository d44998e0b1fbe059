//! Distributes disks, pools and volumes among shards that are not running yet.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use dashpot_engine::pool::{PoolDisk, PoolError, ThrottleConfig, WritePolicy};
use dashpot_engine::{
    ClientId, Device, DiskConfig as EngineDisk, DiskId, Engine, Input, PoolId, VolumeId,
};
use dashpot_rules::{DiskConfig, PoolSpec, VolumeSpec};

use crate::clock;
use crate::complain::complain;
use crate::config::ServerConfig;
use crate::events::{DeviceId, DeviceIds};
use crate::export::{ExportId, ExportInfo, Power, Served};
use crate::info::{DiskInfo, PoolInfo, VolumeInfo};
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::route::{Route, Routes};
use crate::store::{Keeper, Opened, Side, Size, Start, Store, assemble, data_of};

/// Why the disks, pools and volumes cannot be distributed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DealError {
    /// A pool or a volume cannot be created.
    #[error("{what} `{name}`: {why}")]
    Pool {
        what: &'static str,
        name: String,
        why: String,
    },
    /// The system has no free descriptor.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl DealError {
    fn pool(pool: &PoolSpec, why: impl ToString) -> DealError {
        DealError::Pool {
            what: "pool",
            name: pool.name.clone(),
            why: why.to_string(),
        }
    }

    fn volume(volume: &VolumeSpec, why: impl ToString) -> DealError {
        DealError::Pool {
            what: "volume",
            name: volume.name.clone(),
            why: why.to_string(),
        }
    }
}

/// A shard that is not running yet.
pub(crate) struct Built {
    pub(crate) engine: Engine,
    pub(crate) stores: Vec<Store>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) served: Vec<Served>,
    pub(crate) devices: DeviceIds,
    pub(crate) mailbox: Arc<Mailbox<Message>>,
    /// For each pool, the keeper that records the state of the pool's mirrors.
    pub(crate) keepers: HashMap<PoolId, Keeper>,
}

/// Everything that the server serves, with the routes to it.
pub(crate) struct Dealt {
    pub(crate) shards: Vec<Built>,
    pub(crate) routes: Routes,
    pub(crate) infos: Infos,
    /// The exports, in the order of [`Routes::exports`].
    pub(crate) exports: Vec<ExportInfo>,
}

/// The facts about all disks, pools and volumes that the server serves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Infos {
    pub(crate) disks: Vec<DiskInfo>,
    pub(crate) pools: Vec<PoolInfo>,
    pub(crate) volumes: Vec<VolumeInfo>,
}

/// Distributes disks, pools and volumes among the shards. Disks without a pool go to the shards in turn.
/// Pools also go to the shards in turn, each with its disks and volumes.
pub(crate) fn deal(config: &ServerConfig, opened: Vec<Opened>) -> Result<Dealt, DealError> {
    let built = |_| Built::new();
    let shards = (0..config.shards.max(1)).map(built);
    let mut dealt = Dealt {
        shards: shards.collect::<io::Result<Vec<Built>>>()?,
        routes: Routes::default(),
        infos: Infos::default(),
        exports: Vec::new(),
    };
    let disks = config.disks.iter().zip(opened).enumerate();
    for (at, (disk, opened)) in disks {
        let pool = config.pools.iter().position(|pool| has_disk(pool, at));
        let seed = config.seed ^ (at as u64) << 32;
        dealt.add_disk(at, disk, opened, pool, seed);
    }
    for pool in &config.pools {
        dealt.add_pool(pool, &config.disks)?;
    }
    for (at, volume) in config.volumes.iter().enumerate() {
        dealt.add_volume(config.disks.len() + at, volume)?;
    }
    Ok(dealt)
}

fn has_disk(pool: &PoolSpec, disk: usize) -> bool {
    pool.disks().any(|other| other == disk)
}

impl Dealt {
    fn add_disk(
        &mut self,
        at: usize,
        disk: &DiskConfig,
        opened: Opened,
        pool: Option<usize>,
        seed: u64,
    ) {
        let shard = pool.unwrap_or(at) % self.shards.len();
        let mut info = DiskInfo {
            name: disk.name.clone(),
            size: opened.size,
            block: opened.block,
            physical: opened.physical,
            read_only: opened.read_only,
            store: disk.store.to_string(),
            store_id: opened.store.identity(),
            shard,
            followed: opened.followed,
            path_counts: Arc::default(),
            export: None,
            pool,
        };
        let built = &mut self.shards[shard];
        let route = built.add_disk(seed, opened.store, opened.size);
        built
            .devices
            .push_disk(DeviceId::of(at), info.followed.is_some());
        if info.followed.is_some() {
            let export = export_of(&info, disk.store.kind());
            let served = Served {
                info: export,
                device: Device::Disk(route.id),
            };
            self.routes.followed.push((at, built.serve(served)));
        } else if pool.is_none() {
            let kind = format!("disk: {}", disk.store.kind());
            info.export = Some(self.serve(shard, Device::Disk(route.id), export_of(&info, &kind)));
        }
        self.routes.disks.push(route);
        self.infos.disks.push(info);
    }

    fn add_pool(&mut self, pool: &PoolSpec, disks: &[DiskConfig]) -> Result<(), DealError> {
        let shard = self.routes.pools.len() % self.shards.len();
        for disk in pool.disks() {
            if self.infos.disks[disk].followed.is_some() {
                let name = &disks[disk].name;
                let why = format!("its disk `{name}` has no bytes of its own; leave it out");
                return Err(DealError::pool(pool, why));
            }
            if self.infos.disks[disk].read_only {
                let name = &disks[disk].name;
                let why =
                    format!("its disk `{name}` is read-only; make it writable, or leave it out");
                return Err(DealError::pool(pool, why));
            }
        }
        let (routes, infos) = (&self.routes, &self.infos);
        let config = pool.for_engine(|at| PoolDisk {
            disk: routes.disks[at].id,
            size: infos.disks[at].size,
            rotational: disks[at].rotational,
        });
        let size = pool.capacity(|disk| infos.disks[disk].size);
        let built = &mut self.shards[shard];
        let added = built.engine.add_pool(config, clock::now());
        let id = added.map_err(|error: PoolError| DealError::pool(pool, error))?;
        self.routes.pools.push(built.route(id));
        self.assemble_mirrors(shard, id, pool)?;
        self.infos.pools.push(PoolInfo {
            name: pool.name.clone(),
            members: pool.members.clone(),
            throttle: pool.throttle,
            size,
            shard,
        });
        let pool_id = self.infos.pools.len() - 1;
        self.name_at_disks(pool_id, ClientId::POOL, &pool.name);
        Ok(())
    }

    /// Reads the labels of a pool's mirrors, and tells the engine in which state each mirror starts. From
    /// then on, the engine keeps records of the mirrors, which the pool's keeper makes durable.
    fn assemble_mirrors(
        &mut self,
        shard: usize,
        id: PoolId,
        pool: &PoolSpec,
    ) -> Result<(), DealError> {
        let mut starts = Vec::new();
        for sides in &pool.members {
            let start = self.assemble_mirror(shard, sides, pool)?;
            for note in start.iter().filter_map(|start| start.note.as_ref()) {
                complain(format_args!("dashpot: pool `{}`: {note}", pool.name));
            }
            starts.push(start);
        }
        if starts.iter().all(Option::is_none) {
            return Ok(());
        }
        let known = starts.iter().map(|start| {
            start
                .as_ref()
                .map_or_else(Default::default, |start| start.known.clone())
        });
        let built = &mut self.shards[shard];
        built.engine.record_mirrors(id, &known.collect::<Vec<_>>());
        built
            .keepers
            .insert(id, Keeper::new(starts, pool.bitmap.clone())?);
        Ok(())
    }

    /// The state in which a member of a pool starts as a mirror. `None` if the member is not a mirror, or if
    /// none of its sides keeps its bytes after the daemon ends.
    fn assemble_mirror(
        &self,
        shard: usize,
        sides: &[usize],
        pool: &PoolSpec,
    ) -> Result<Option<Start>, DealError> {
        let stores = || {
            let route = |disk: &usize| (*disk, self.routes.disks[*disk].id.0 as usize);
            let stores = sides.iter().map(route);
            stores.map(|(disk, at)| (&self.infos.disks[disk], &self.shards[shard].stores[at]))
        };
        if sides.len() < 2 || !stores().any(|(_, store)| store.outlives()) {
            return Ok(None);
        }
        let size = stores().map(|(disk, _)| disk.size).min().unwrap_or(0);
        let mut found = Vec::new();
        for (disk, store) in stores() {
            let side = Side::of(&disk.name, store, pool.bitmap.as_deref());
            let (side, label) = side.map_err(|error| {
                let why = format!("the label of `{}` cannot be read: {error}", disk.name);
                DealError::pool(pool, why)
            })?;
            found.push((side, label, data_of(store, size)));
        }
        let start = assemble(found, size);
        start.map(Some).map_err(|why| DealError::pool(pool, why))
    }

    fn add_volume(&mut self, at: usize, volume: &VolumeSpec) -> Result<(), DealError> {
        let pool = &self.infos.pools[volume.pool];
        let shard = pool.shard;
        let sides = pool.members.iter().flatten();
        let largest = sides.map(|disk| self.infos.disks[*disk].block).max();
        if let Some(block) = largest.filter(|block| *block > volume.block_size) {
            let why = format!(
                "its block_size is {}, and a disk of its pool takes no less than {}: make it larger",
                Size(volume.block_size.into()),
                Size(block.into())
            );
            return Err(DealError::volume(volume, why));
        }
        let policy = policy_word(pool.throttle, volume.write);
        let info = ExportInfo {
            name: volume.name.clone(),
            description: format!("dashpot volume: {policy}, {}", Size(volume.size)),
            size: volume.size,
            block: 1,
            preferred: volume.block_size,
            read_only: false,
            power: Power::default(),
        };
        let built = &mut self.shards[shard];
        let config = volume.for_engine(self.routes.pools[volume.pool].id);
        let added = built.engine.add_volume(config);
        let id = added.map_err(|error| DealError::volume(volume, error))?;
        built.devices.push_volume(DeviceId::of(at));
        self.name_at_disks(volume.pool, self.client_of(volume), &volume.name);
        let built = &mut self.shards[shard];
        self.routes.volumes.push(built.route(id));
        let store_id = self.identity_of(volume, id);
        let export = self.serve(shard, Device::Volume(id), info);
        self.infos.volumes.push(VolumeInfo {
            name: volume.name.clone(),
            size: volume.size,
            block_size: volume.block_size,
            write: volume.write,
            store_id,
            pool: volume.pool,
            export,
        });
        Ok(())
    }

    /// A text that identifies the bytes of a volume: it names the stores of the pool's disks, and says where
    /// on them the volume begins. `None` if acknowledged writes may be lost when this process ends, because
    /// they are in memory or in a store that does not outlive the process.
    fn identity_of(&self, volume: &VolumeSpec, id: VolumeId) -> Option<String> {
        if volume.write == WritePolicy::Back {
            return None;
        }
        let pool = &self.infos.pools[volume.pool];
        let base = self.shards[pool.shard].engine.base_of(id)?;
        let member = |sides: &Vec<usize>| {
            let stores = sides
                .iter()
                .map(|disk| self.infos.disks[*disk].store_id.clone());
            Some(stores.collect::<Option<Vec<_>>>()?.join("="))
        };
        let members = pool.members.iter().map(member);
        let members = members.collect::<Option<Vec<_>>>()?.join(",");
        Some(format!("volume:{members}:{base}:{}", volume.block_size))
    }

    /// The id that a volume gets as a client of its pool's disks. Call this before `infos` has the volume,
    /// because the id follows from the number of the pool's earlier volumes.
    fn client_of(&self, volume: &VolumeSpec) -> ClientId {
        let volumes = self.infos.volumes.iter();
        ClientId::of_volume(volumes.filter(|other| other.pool == volume.pool).count())
    }

    /// Makes a pool, or one of its volumes, a named client of the pool's disks, so that the disks' rules and
    /// events can name it.
    fn name_at_disks(&mut self, pool: usize, client: ClientId, name: &str) {
        let info = &self.infos.pools[pool];
        let built = &mut self.shards[info.shard];
        if client == ClientId::OTHER {
            return;
        }
        for disk in info.members.iter().flatten() {
            let device = Device::Disk(self.routes.disks[*disk].id);
            let mut actions = Vec::new();
            let join = Input::Join {
                device,
                client,
                name,
            };
            built.engine.step(clock::now(), join, &mut actions);
            built.devices.push_name(device, client, name);
        }
    }

    /// Adds an export of a device. Returns the index of the export.
    fn serve(&mut self, shard: usize, device: Device, info: ExportInfo) -> usize {
        self.exports.push(info.clone());
        let route = self.shards[shard].serve(Served { info, device });
        self.routes.exports.push(route);
        self.exports.len() - 1
    }
}

/// The write policy of a volume, in the words of the lab file.
pub(crate) fn policy_word(throttle: ThrottleConfig, write: WritePolicy) -> &'static str {
    match (write, throttle) {
        (WritePolicy::Through, _) => "through",
        (WritePolicy::Back, ThrottleConfig::None) => "none",
        (WritePolicy::Back, ThrottleConfig::OpenZfs) => "openzfs",
        (WritePolicy::Back, ThrottleConfig::Legacy(_)) => "legacy",
    }
}

fn export_of(disk: &DiskInfo, kind: &str) -> ExportInfo {
    ExportInfo {
        name: disk.name.clone(),
        description: format!("dashpot {kind}, {}", Size(disk.size)),
        size: disk.size,
        block: disk.block,
        preferred: disk.physical.unwrap_or(disk.block),
        read_only: disk.read_only,
        power: Power::default(),
    }
}

impl Built {
    fn new() -> io::Result<Built> {
        Ok(Built {
            engine: Engine::default(),
            stores: Vec::new(),
            sizes: Vec::new(),
            served: Vec::new(),
            devices: DeviceIds::default(),
            mailbox: Arc::new(Mailbox::new()?),
            keepers: HashMap::new(),
        })
    }

    /// Adds a disk to the engine. Returns the disk's route.
    pub(crate) fn add_disk(&mut self, seed: u64, store: Store, size: u64) -> Route<DiskId> {
        self.stores.push(store);
        self.sizes.push(size);
        let disk = self.engine.add_disk(EngineDisk { seed });
        self.route(disk)
    }

    /// Adds an export. Returns the export's route.
    pub(crate) fn serve(&mut self, served: Served) -> Route<ExportId> {
        let export = ExportId(self.served.len() as u32);
        self.served.push(served);
        self.route(export)
    }

    fn route<Id>(&self, id: Id) -> Route<Id> {
        Route {
            mailbox: Arc::clone(&self.mailbox),
            id,
        }
    }
}
