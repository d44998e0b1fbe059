//! The program's version, its exports and its clock: answers that need no shard.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use dashpot_api::{Clock, Error, Export, Layout, Source, Stopped, VersionInfo};
use dashpot_export::{DiskInfo, VolumeInfo};

use crate::http::charged::JsonAnswer;
use crate::http::statistics::StatisticSource;
use crate::{Daemon, Refusal, wire};

/// The disks and volumes as they were when the daemon started. The daemon asks no shard, so it answers even
/// if a disk hangs.
#[utoipa::path(get, path = "/v1/exports", operation_id = "list_exports", tag = "daemon",
    responses(
        (status = 200, body = Vec<Export>, description = "The disks, then the volumes, in the order of the lab."),
    ))]
pub(crate) async fn exports(State(daemon): State<Arc<Daemon>>) -> Result<JsonAnswer, Refusal> {
    let disk = |(index, info): (usize, &DiskInfo)| {
        let pool = info.pool.map(|pool| daemon.info_of_pool(pool));
        wire::disk_export(info, pool, daemon.uris(index), daemon.failure(index))
    };
    let volume = |(index, info): (usize, &VolumeInfo)| {
        let device = daemon.device_of_volume(index);
        let failed = daemon.failure_of(device);
        wire::volume_export(
            info,
            daemon.pool_of(info),
            daemon.uris_of_volume(index),
            failed,
        )
    };
    let volumes = daemon.volumes().map(volume);
    let exports: Vec<Export> = daemon.disks().map(disk).chain(volumes).collect();
    daemon.answers().json(&exports).map(JsonAnswer)
}

/// Ends the daemon as SIGTERM does: it finishes the I/O in flight, syncs the stores and removes its sockets. The
/// answer comes before the end. The disks of `dashpot run` end with its command.
#[utoipa::path(post, path = "/v1/stop", operation_id = "stop", tag = "daemon",
    responses(
        (status = 200, body = Stopped, description = "The daemon ends."),
        (status = 409, body = Error),
    ))]
pub(crate) async fn stop(State(daemon): State<Arc<Daemon>>) -> Result<Json<Stopped>, Refusal> {
    daemon.ask_to_end()?;
    let reached = daemon.disks().filter(|(_, disk)| disk.export.is_some());
    let disks = reached.map(|(_, disk)| disk.name.clone());
    let volumes = daemon.volumes().map(|(_, volume)| volume.name.clone());
    Ok(Json(Stopped {
        pid: std::process::id(),
        exports: disks.chain(volumes).collect(),
    }))
}

/// The time of the daemon's clock. The daemon asks no shard.
#[utoipa::path(get, path = "/v1/clock", operation_id = "get_clock", tag = "daemon",
    responses(
        (status = 200, body = Clock, description = "The time, and when the daemon started."),
    ))]
pub(crate) async fn clock(State(asked): State<Arc<dyn StatisticSource>>) -> Json<Clock> {
    Json(asked.clock())
}

/// The source that the statistics are about, and its devices. The daemon asks no shard.
#[utoipa::path(get, path = "/v1/source", operation_id = "get_source", tag = "statistics",
    responses(
        (status = 200, body = Source, description = "The source."),
    ))]
pub(crate) async fn source(State(asked): State<Arc<dyn StatisticSource>>) -> Json<Source> {
    Json(asked.source())
}

/// The boundaries of all latency histograms. The daemon asks no shard.
#[utoipa::path(get, path = "/v1/layout", operation_id = "get_layout", tag = "daemon",
    responses(
        (status = 200, body = Layout, description = "The boundaries."),
    ))]
pub(crate) async fn layout() -> Json<Layout> {
    Json(Layout::current())
}

/// Answers as long as the daemon runs. The daemon asks no shard.
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", tag = "daemon",
    responses(
        (status = 200, body = str, description = "The daemon answers."),
    ))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// The versions of the daemon and of its API.
#[utoipa::path(get, path = "/v1/version", operation_id = "get_version", tag = "daemon",
    responses(
        (status = 200, body = VersionInfo, description = "The version."),
    ))]
pub(crate) async fn version() -> Json<VersionInfo> {
    Json(VersionInfo::current())
}
