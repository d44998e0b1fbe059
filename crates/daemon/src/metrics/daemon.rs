//! A scrape of a daemon: one snapshot of each disk, volume and pool, and the daemon's rules, shards and host.

use std::fmt;
use std::sync::Arc;

use dashpot_api::Host;
use dashpot_export::{DeviceId, ProbeReading};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;

use super::client::{self, ClientsScrape};
use super::disk::{self, DiskScrape};
use super::format::open_metrics;
use super::listener::Metrics;
use super::page::{Labels, Metric, Page};
use super::pool::{self, PoolScrape};
use super::volume::{self, VolumeScrape};
use super::{host, rule, shard};
use crate::collector::View;
use crate::host::host_now;
use crate::{Daemon, Record};

/// A daemon to be scraped.
pub struct DaemonMetrics(pub Arc<Daemon>);

impl Metrics for DaemonMetrics {
    async fn text(&self) -> Result<String, fmt::Error> {
        open_metrics(Scrape::of(&self.0).await)
    }
}

/// The state of a daemon at a scrape.
#[derive(Debug)]
pub(super) struct Scrape {
    pub(super) disks: Vec<DiskScrape>,
    pub(super) volumes: Vec<VolumeScrape>,
    pub(super) pools: Vec<PoolScrape>,
    pub(super) records: Vec<Record>,
    pub(super) disk_clients: ClientsScrape,
    pub(super) volume_clients: ClientsScrape,
    /// The last reading of each shard's prober.
    pub(super) probes: Vec<Option<ProbeReading>>,
    pub(super) host: Host,
    /// The bytes that answers use, and the most bytes that answers may use.
    pub(super) answers: (usize, usize),
}

impl Scrape {
    async fn of(daemon: &Daemon) -> Scrape {
        let mut disks = Vec::new();
        for (index, info) in daemon.disks() {
            disks.push(DiskScrape {
                info: info.clone(),
                snapshot: daemon.snapshot(index, 1).await.ok(),
            });
        }
        let shards = disks.iter().map(|disk| disk.info.shard + 1).max();
        let probes = 0..shards.unwrap_or_default();
        let (disk_clients, volume_clients) = clients(daemon).await;
        Scrape {
            disk_clients,
            volume_clients,
            records: daemon.records().await,
            probes: probes.map(|shard| daemon.probe(shard).pop()).collect(),
            host: host_now(Some(daemon.counted_before())),
            answers: (daemon.answers().used(), daemon.answers().max()),
            volumes: volumes(daemon).await,
            pools: pools(daemon).await,
            disks,
        }
    }
}

async fn volumes(daemon: &Daemon) -> Vec<VolumeScrape> {
    let mut volumes = Vec::new();
    for (index, info) in daemon.volumes() {
        volumes.push(VolumeScrape {
            name: info.name.clone(),
            pool: daemon.pool_of(info).name.clone(),
            snapshot: daemon.snapshot_volume(index, 1).await.ok(),
        });
    }
    volumes
}

async fn pools(daemon: &Daemon) -> Vec<PoolScrape> {
    let mut pools = Vec::new();
    for (index, info) in daemon.pools() {
        pools.push(PoolScrape {
            name: info.name.clone(),
            snapshot: daemon.snapshot_pool(index).await.ok(),
        });
    }
    pools
}

/// The I/O of the clients of disks and of volumes.
async fn clients(daemon: &Daemon) -> (ClientsScrape, ClientsScrape) {
    let disks = daemon.disks();
    let disks = disks.map(|(index, info)| (DeviceId::of(index), info.name.as_str()));
    let volumes = daemon.volumes();
    let volumes = volumes.map(|(index, info)| (daemon.device_of_volume(index), info.name.as_str()));
    let (disks, volumes): (Vec<_>, Vec<_>) = (disks.collect(), volumes.collect());
    let look = |events: &View<'_>| {
        (
            ClientsScrape::of(events, &disks),
            ClientsScrape::of(events, &volumes),
        )
    };
    daemon.events(None, look).await
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let page = &mut Page(encoder);
        disk::write(page, &self.disks)?;
        volume::write(page, &self.volumes)?;
        pool::write(page, &self.pools)?;
        client::OF_DISKS.write(page, &self.disk_clients)?;
        client::OF_VOLUMES.write(page, &self.volume_clients)?;
        rule::write(page, &self.disks, &self.records)?;
        shard::write(page, &self.disks, &self.probes)?;
        let (used, max) = self.answers;
        page.gauge(&ANSWERS, [(Labels::new(), used as u64)])?;
        page.gauge(&ANSWERS_MAX, [(Labels::new(), max as u64)])?;
        host::write(page, &self.host)
    }
}

const ANSWERS: Metric = Metric(
    "api_answers",
    Some(Unit::Bytes),
    "Bytes of API answers above 64 KiB that are being made or that callers have not taken",
);
const ANSWERS_MAX: Metric = Metric(
    "api_answers_limit",
    Some(Unit::Bytes),
    "The bound on the bytes of all API answers above 64 KiB; beyond it the daemon answers 503",
);
