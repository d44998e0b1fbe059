//! The status of the daemon and of everything that it serves.

use std::sync::Arc;

use axum::extract::State;
use dashpot_api::{Error, Status, VersionInfo};
use dashpot_export::STORE_THREADS;

use super::device::Detail;
use super::{disks, pools, volumes};
use crate::answers::AnswerBuilder;
use crate::host::host_now;
use crate::http::charged::JsonAnswer;
use crate::http::error::Options;
use crate::promises::promises;
use crate::wire::{memory, reclaim, shards};
use crate::{Daemon, Refusal};

/// The daemon, its host, its shards, and its disks, pools and volumes.
#[utoipa::path(get, path = "/v1/status", operation_id = "get_status", tag = "disks",
    params(Detail),
    responses(
        (status = 200, body = Status,
            description = "The daemon and its host, and each shard, disk, pool and volume."),
        (status = 400, body = Error),
    ))]
pub(crate) async fn status(
    State(daemon): State<Arc<Daemon>>,
    Options(detail): Options<Detail>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let disks = disks::all(&daemon, &detail, &mut making).await?;
    let host = host_now(Some(daemon.counted_before()));
    let shards = shards(&disks, daemon.spins(), |shard| daemon.probe(shard));
    let status = Status {
        version: VersionInfo::current(),
        pid: std::process::id(),
        store_threads: STORE_THREADS,
        promises: promises(&host, &shards, &disks),
        host,
        shards,
        memory: memory(daemon.answers(), daemon.rules_held().await),
        reclaim: reclaim(),
        disks,
        pools: pools::all(&daemon).await,
        volumes: volumes::all(&daemon, &detail, &mut making).await?,
    };
    making.json(&status).map(JsonAnswer)
}
