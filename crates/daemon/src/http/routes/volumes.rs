//! Volumes: their properties and counters.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use dashpot_api::{AttachmentFailed, DiskLatency, Error, FailAttachment, Volume};

use super::device::{Breakdown, Detail, ZIO, latency_of, or_nothing};
use crate::answers::AnswerBuilder;
use crate::http::charged::JsonAnswer;
use crate::http::error::{Body, Name, Options};
use crate::wire::volume;
use crate::{Daemon, Refusal};

/// All volumes.
#[utoipa::path(get, path = "/v1/volumes", operation_id = "list_volumes", tag = "pools",
    params(Detail),
    responses(
        (status = 200, body = Vec<Volume>, description = "The volumes, in the order of the lab."),
        (status = 400, body = Error),
    ))]
pub(crate) async fn list(
    State(daemon): State<Arc<Daemon>>,
    Options(detail): Options<Detail>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let volumes = all(&daemon, &detail, &mut making).await?;
    making.json(&volumes).map(JsonAnswer)
}

/// One volume. Write the `/` in its name as `%2F`.
#[utoipa::path(get, path = "/v1/volumes/{volume}", operation_id = "get_volume", tag = "pools",
    params(("volume" = String, Path), Detail),
    responses(
        (status = 200, body = Volume, description = "The volume."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn show(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
    Options(detail): Options<Detail>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let index = daemon.volume(&name)?;
    let volume = one_of(&daemon, index, &detail, &mut making).await?;
    making.json(&volume).map(JsonAnswer)
}

/// The histograms of a volume since the start. Subtract an answer from a later one to get the figures of the
/// interval between the two.
#[utoipa::path(get, path = "/v1/volumes/{volume}/latency", operation_id = "get_volume_latency",
    tag = "pools",
    params(("volume" = String, Path), Breakdown),
    responses(
        (status = 200, body = DiskLatency, description = "The histograms of the volume."),
        (status = 400, body = Error),
        (status = 404, body = Error),
    ))]
pub(crate) async fn latency(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
    Options(breakdown): Options<Breakdown>,
    making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let index = daemon.volume(&name)?;
    let snapshot = daemon.snapshot_volume(index, 1).await?;
    let device = daemon.device_of_volume(index);
    latency_of(&daemon, device, &snapshot, &breakdown, making).await
}

/// Ends an attachment of a volume, as `/v1/disks/{disk}/fail-attachment` does for a disk.
#[utoipa::path(post, path = "/v1/volumes/{volume}/fail-attachment",
    operation_id = "fail_volume_attachment", tag = "pools",
    params(("volume" = String, Path)),
    request_body = FailAttachment,
    responses(
        (status = 200, body = AttachmentFailed, description = "The attachment has ended."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn fail_attachment(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
    Body(wanted): Body<FailAttachment>,
) -> Result<Json<AttachmentFailed>, Refusal> {
    daemon.volume(&name)?;
    let failed = daemon.fail_attachment(&name, &wanted.node).await?;
    Ok(Json(AttachmentFailed { failed }))
}

pub(super) async fn all(
    daemon: &Daemon,
    detail: &Detail,
    making: &mut AnswerBuilder,
) -> Result<Vec<Volume>, Refusal> {
    let mut volumes = Vec::new();
    for (index, _) in daemon.volumes() {
        volumes.push(one_of(daemon, index, detail, making).await?);
    }
    Ok(volumes)
}

/// The volume in the API's form, even if the volume's shard has failed.
async fn one_of(
    daemon: &Daemon,
    index: usize,
    detail: &Detail,
    making: &mut AnswerBuilder,
) -> Result<Volume, Refusal> {
    let snapshot = daemon.snapshot_volume(index, detail.oldest).await;
    let (snapshot, failed) = or_nothing(daemon, snapshot);
    let info = daemon.info_of_volume(index);
    let (pool, uris) = (daemon.pool_of(info), daemon.uris_of_volume(index));
    let volume = Volume {
        failed,
        ..volume(info, pool, uris, &snapshot)
    };
    making.charge(size_of::<Volume>() + volume.io.oldest.len() * ZIO)?;
    Ok(volume)
}
