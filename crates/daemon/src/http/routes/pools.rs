//! Pools: their throttles, traffic, transaction groups and tunables.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use dashpot_api::{Crash, Error, Pool, PoolCrashed, PoolLatency, SetTunables, TunableValue, Txg};
use dashpot_rules::{parse_new_value, parse_tunable_name};

use super::device::CRASHED_MAX;
use super::to_the_end;
use crate::answers::AnswerBuilder;
use crate::http::charged::JsonAnswer;
use crate::http::error::{Body, Name};
use crate::wire::{self, PoolFacts};
use crate::{Daemon, Refusal, RefusalKind};

/// All pools.
#[utoipa::path(get, path = "/v1/pools", operation_id = "list_pools", tag = "pools",
    responses(
        (status = 200, body = Vec<Pool>, description = "The pools, in the order of the lab."),
    ))]
pub(crate) async fn list(State(daemon): State<Arc<Daemon>>) -> Result<JsonAnswer, Refusal> {
    let pools = all(&daemon).await;
    daemon.answers().json(&pools).map(JsonAnswer)
}

/// One pool.
#[utoipa::path(get, path = "/v1/pools/{pool}", operation_id = "get_pool", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, body = Pool, description = "The pool."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn show(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
) -> Result<Json<Pool>, Refusal> {
    let index = daemon.pool(&name)?;
    Ok(Json(one_of(&daemon, index).await))
}

/// The times and sizes of zios in the queues of a pool's disks since the start. Subtract an answer from a
/// later one to get the figures of the interval between the two.
#[utoipa::path(get, path = "/v1/pools/{pool}/latency", operation_id = "get_pool_latency", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, body = PoolLatency, description = "The queues of the pool's disks."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn latency(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let index = daemon.pool(&name)?;
    making.charge(LATENCY_MAX)?;
    let snapshot = daemon.snapshot_pool(index).await?;
    let facts = facts(&daemon, index);
    let latency: PoolLatency = facts.latency(daemon.started(), &snapshot);
    making.json(&latency).map(JsonAnswer)
}

/// The transaction groups of a pool, the oldest first: the last hundred that were committed, and those that
/// are not committed yet.
#[utoipa::path(get, path = "/v1/pools/{pool}/txgs", operation_id = "list_txgs", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, body = Vec<Txg>, description = "The transaction groups."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn txgs(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
) -> Result<Json<Vec<Txg>>, Refusal> {
    let snapshot = daemon.snapshot_pool(daemon.pool(&name)?).await?;
    Ok(Json(wire::txgs(&snapshot.stats)))
}

/// The tunables of a pool.
#[utoipa::path(get, path = "/v1/pools/{pool}/tunables", operation_id = "list_tunables", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, body = Vec<TunableValue>, description = "All tunables."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn tunables(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
) -> Result<Json<Vec<TunableValue>>, Refusal> {
    let snapshot = daemon.snapshot_pool(daemon.pool(&name)?).await?;
    Ok(Json(wire::tunables(&snapshot.tunables)))
}

/// Sets tunables of a pool while clients use it: all of them, or none.
#[utoipa::path(patch, path = "/v1/pools/{pool}/tunables", operation_id = "set_tunables", tag = "pools",
    params(("pool" = String, Path)),
    request_body = SetTunables,
    responses(
        (status = 200, body = Vec<TunableValue>, description = "All tunables after the change."),
        (status = 404, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn tune(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
    Body(wanted): Body<SetTunables>,
) -> Result<Json<Vec<TunableValue>>, Refusal> {
    let index = daemon.pool(&name)?;
    let changes = wanted.tunables.iter().map(|(name, words)| {
        let tunable = parse_tunable_name(name)?;
        let value = parse_new_value(tunable, words).map_err(|error| {
            Refusal::new(RefusalKind::Unprocessable, format!("{name}: {error}"))
        })?;
        Ok((tunable, value))
    });
    let changes = changes.collect::<Result<Vec<_>, Refusal>>()?;
    let tuned = to_the_end(async move { daemon.tune(index, changes).await }).await?;
    Ok(Json(wire::tunables(&tuned)))
}

/// Cuts the power of a pool whose disks are all on `lossy` stores, or restores it. Unless the pool keeps
/// serving, the cut also takes its memory, and with it all transaction groups that are not on the disks.
#[utoipa::path(post, path = "/v1/pools/{pool}/crash", operation_id = "cut_power_of_pool", tag = "pools",
    params(("pool" = String, Path)),
    request_body = Crash,
    responses(
        (status = 200, body = PoolCrashed, description = "The power is cut or restored."),
        (status = 404, body = Error),
        (status = 409, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn crash(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
    mut making: AnswerBuilder,
    Body(crash): Body<Crash>,
) -> Result<JsonAnswer, Refusal> {
    let index = daemon.pool(&name)?;
    let wanted = wire::cut(&crash)?;
    making.reserve(CRASHED_MAX)?;
    let loss = daemon.cut_pool(index, wanted).await?;
    let disks = daemon.info_of_pool(index).members.iter().flatten();
    let disks = disks.map(|disk| daemon.info(*disk).name.clone());
    let crashed = wire::pool_crashed(name, disks, &crash, loss);
    making.json(&crashed).map(JsonAnswer)
}

pub(super) async fn all(daemon: &Daemon) -> Vec<Pool> {
    let mut pools = Vec::new();
    for (index, _) in daemon.pools() {
        pools.push(one_of(daemon, index).await);
    }
    pools
}

/// The pool in the API's form, even if the pool's shard has failed.
async fn one_of(daemon: &Daemon, index: usize) -> Pool {
    let snapshot = daemon.snapshot_pool(index).await;
    let facts = facts(daemon, index);
    facts.pool(snapshot.as_ref().map_err(|refusal| refusal.error.clone()))
}

/// The fixed facts about a pool.
fn facts(daemon: &Daemon, pool: usize) -> PoolFacts<'_> {
    let info = daemon.info_of_pool(pool);
    let name = |disk: &usize| daemon.info(*disk).name.clone();
    let members = info.members.iter();
    let volumes = || {
        let volumes = daemon.volumes().map(|(_, volume)| volume);
        volumes.filter(|volume| volume.pool == pool)
    };
    PoolFacts {
        info,
        members: members
            .map(|sides| sides.iter().map(name).collect())
            .collect(),
        volumes: volumes().map(|volume| volume.name.clone()).collect(),
        allocated: volumes().map(|volume| volume.size).sum(),
    }
}

/// More bytes than an answer about the queues takes, with 25 histograms and 103 transaction groups.
const LATENCY_MAX: usize = 4 << 20;
