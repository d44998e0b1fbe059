//! Disks: what they are, what they have counted, and whether they are suspended.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use dashpot_engine::Duration;
use dashpot_export::STORE_THREADS;
use serde::Deserialize;
use utoipa::IntoParams;

use super::to_the_end;
use crate::api::error::{Body, Options};
use crate::api::types::{
    Disk, DiskLatency, Error, Host, Lose, LostSectors, Resumed, Shard, Status, Suspend, Suspended,
    VersionInfo, View,
};
use crate::daemon::{Daemon, Refusal};
use crate::promises::promises;

/// How much is to be said of a disk.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct Detail {
    /// How many of the zios in flight are shown, the oldest first [1].
    #[serde(default = "one")]
    oldest: usize,
}

fn one() -> usize {
    1
}

/// What is served.
#[utoipa::path(get, path = "/v1/status", tag = "disks", params(Detail),
    responses((status = 200, body = Status), (status = 400, body = Error)))]
pub(crate) async fn status(
    State(daemon): State<Arc<Daemon>>,
    Options(detail): Options<Detail>,
) -> Result<Json<Status>, Refusal> {
    let disks = all(&daemon, &detail).await;
    let host = Host::now(Some(daemon.counted_before()));
    let shards = Shard::all(&disks, daemon.spins(), |shard| daemon.probe(shard));
    Ok(Json(Status {
        version: VersionInfo::current(),
        pid: std::process::id(),
        store_threads: STORE_THREADS,
        promises: promises(&host, &shards),
        host,
        shards,
        disks,
    }))
}

/// Every disk.
#[utoipa::path(get, path = "/v1/disks", tag = "disks", params(Detail),
    responses((status = 200, body = Vec<Disk>), (status = 400, body = Error)))]
pub(crate) async fn list(
    State(daemon): State<Arc<Daemon>>,
    Options(detail): Options<Detail>,
) -> Result<Json<Vec<Disk>>, Refusal> {
    Ok(Json(all(&daemon, &detail).await))
}

/// One disk. A `/` in its name is written `%2F`.
#[utoipa::path(get, path = "/v1/disks/{disk}", tag = "disks", params(("disk" = String, Path), Detail),
    responses((status = 200, body = Disk), (status = 404, body = Error)))]
pub(crate) async fn show(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Options(detail): Options<Detail>,
) -> Result<Json<Disk>, Refusal> {
    let index = daemon.disk(&name)?;
    Ok(Json(one_of(&daemon, index, &detail).await))
}

/// The histograms of a disk since the start; of an interval: the difference of two answers.
#[utoipa::path(get, path = "/v1/disks/{disk}/latency", tag = "disks", params(("disk" = String, Path)),
    responses((status = 200, body = DiskLatency), (status = 404, body = Error)))]
pub(crate) async fn latency(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Result<Json<DiskLatency>, Refusal> {
    let index = daemon.disk(&name)?;
    viewed(&daemon, index, 1, |view| view.latency())
        .await
        .map(Json)
}

/// Stops new zios of a disk. Answered when none is in flight, unless `now`.
#[utoipa::path(post, path = "/v1/disks/{disk}/suspend", tag = "disks", params(("disk" = String, Path)),
    request_body = Suspend,
    responses((status = 200, body = Suspended), (status = 404, body = Error)))]
pub(crate) async fn suspend(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(suspend): Body<Suspend>,
) -> Result<Json<Suspended>, Refusal> {
    let lasts = suspend.for_ns.map(Duration::from_nanos);
    let in_flight = daemon.suspend(&name, lasts, suspend.now).await?;
    Ok(Json(Suspended { in_flight }))
}

/// Issues what was suspended.
#[utoipa::path(post, path = "/v1/disks/{disk}/resume", tag = "disks", params(("disk" = String, Path)),
    responses((status = 200, body = Resumed), (status = 404, body = Error)))]
pub(crate) async fn resume(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Result<Json<Resumed>, Refusal> {
    let waiting = to_the_end(async move { daemon.resume(&name).await }).await?;
    Ok(Json(Resumed { waiting }))
}

/// Has a disk on a `lossy` store lose a random part of what was not synced, as a power cut does.
#[utoipa::path(post, path = "/v1/disks/{disk}/lose", tag = "disks", params(("disk" = String, Path)),
    request_body = Lose,
    responses((status = 200, body = LostSectors), (status = 404, body = Error),
        (status = 409, body = Error)))]
pub(crate) async fn lose(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(lose): Body<Lose>,
) -> Result<Json<LostSectors>, Refusal> {
    let lost = daemon.lose(&name, lose.seed).await?;
    Ok(Json(LostSectors {
        kept: lost.kept,
        dropped: lost.dropped,
    }))
}

async fn all(daemon: &Daemon, detail: &Detail) -> Vec<Disk> {
    let mut disks = Vec::new();
    for (index, _) in daemon.disks() {
        disks.push(one_of(daemon, index, detail).await);
    }
    disks
}

/// A disk, also if its shard has failed.
async fn one_of(daemon: &Daemon, index: usize, detail: &Detail) -> Disk {
    let disk = viewed(daemon, index, detail.oldest, |view| view.disk()).await;
    disk.unwrap_or_else(|refusal| {
        let (info, uris) = (daemon.info(index), daemon.uris(index));
        Disk::failed(info, uris, daemon.started(), refusal.error)
    })
}

/// Makes something of a disk's snapshot with the `oldest` of its zios in flight.
async fn viewed<T>(
    daemon: &Daemon,
    index: usize,
    oldest: usize,
    make: impl FnOnce(&View<'_>) -> T,
) -> Result<T, Refusal> {
    let snapshot = daemon.snapshot(index, oldest).await?;
    let view = View {
        info: daemon.info(index),
        uris: daemon.uris(index),
        since: daemon.started(),
        snapshot: &snapshot,
    };
    Ok(make(&view))
}
