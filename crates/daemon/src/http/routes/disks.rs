//! Disks: their properties, counters and suspension.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use dashpot_api::{
    AttachmentFailed, Crash, Crashed, Disk, DiskLatency, Error, FailAttachment, Faults, Resumed,
    Suspend, Suspended,
};
use dashpot_engine::Duration;
use dashpot_export::{DeviceId, now};

use super::device::{
    Breakdown, CRASHED_MAX, Detail, FAULTS_MAX, Listed, ZIO, latency_of, or_nothing,
};
use super::to_the_end;
use crate::answers::AnswerBuilder;
use crate::http::charged::JsonAnswer;
use crate::http::error::{Body, Name, Options};
use crate::wire::{self, crashed, cut, disk};
use crate::{Daemon, Refusal, RefusalKind};

/// All disks.
#[utoipa::path(get, path = "/v1/disks", operation_id = "list_disks", tag = "disks",
    params(Detail),
    responses(
        (status = 200, body = Vec<Disk>, description = "The disks, in the order of the lab."),
        (status = 400, body = Error),
    ))]
pub(crate) async fn list(
    State(daemon): State<Arc<Daemon>>,
    Options(detail): Options<Detail>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let disks = all(&daemon, &detail, &mut making).await?;
    making.json(&disks).map(JsonAnswer)
}

/// One disk. Write a `/` in its name as `%2F`.
#[utoipa::path(get, path = "/v1/disks/{disk}", operation_id = "get_disk", tag = "disks",
    params(("disk" = String, Path), Detail),
    responses(
        (status = 200, body = Disk, description = "The disk."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn show(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
    Options(detail): Options<Detail>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let index = daemon.disk(&name)?;
    let disk = one_of(&daemon, index, &detail, &mut making).await?;
    making.json(&disk).map(JsonAnswer)
}

/// The histograms of a disk since the start. Subtract an answer from a later one to get the figures of the
/// interval between the two.
#[utoipa::path(get, path = "/v1/disks/{disk}/latency", operation_id = "get_disk_latency", tag = "disks",
    params(("disk" = String, Path), Breakdown),
    responses(
        (status = 200, body = DiskLatency, description = "The histograms of the disk."),
        (status = 400, body = Error),
        (status = 404, body = Error),
    ))]
pub(crate) async fn latency(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
    Options(breakdown): Options<Breakdown>,
    making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let index = daemon.disk(&name)?;
    let snapshot = daemon.snapshot(index, 1).await?;
    latency_of(&daemon, DeviceId::of(index), &snapshot, &breakdown, making).await
}

/// Suspends a disk, so that new zios wait. The daemon answers when no zio is in flight, or at once if `now`
/// is true.
#[utoipa::path(post, path = "/v1/disks/{disk}/suspend", operation_id = "suspend_disk", tag = "disks",
    params(("disk" = String, Path)),
    request_body = Suspend,
    responses(
        (status = 200, body = Suspended, description = "The disk is suspended."),
        (status = 404, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn suspend(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
    Body(suspend): Body<Suspend>,
) -> Result<Json<Suspended>, Refusal> {
    if suspend.for_ns == Some(0) {
        let error = "for_ns is 0: the disk would not be suspended";
        return Err(Refusal::new(RefusalKind::Unprocessable, error)
            .remedy("give a time, or leave it out to suspend the disk until it is resumed"));
    }
    let lasts = suspend.for_ns.map(Duration::from_nanos);
    let in_flight = daemon.suspend(&name, lasts, suspend.now).await?;
    Ok(Json(Suspended { in_flight }))
}

/// Resumes a disk, and issues the zios that waited.
#[utoipa::path(post, path = "/v1/disks/{disk}/resume", operation_id = "resume_disk", tag = "disks",
    params(("disk" = String, Path)),
    responses(
        (status = 200, body = Resumed, description = "The disk is resumed."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn resume(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
) -> Result<Json<Resumed>, Refusal> {
    let waiting = to_the_end(async move { daemon.resume(&name).await }).await?;
    Ok(Json(Resumed { waiting }))
}

/// Cuts the power of a disk on a `lossy` store, or restores it. A cut loses writes that no flush has
/// covered.
#[utoipa::path(post, path = "/v1/disks/{disk}/crash", operation_id = "cut_power", tag = "disks",
    params(("disk" = String, Path)),
    request_body = Crash,
    responses(
        (status = 200, body = Crashed, description = "The power is cut or restored."),
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
    let wanted = cut(&crash)?;
    making.reserve(CRASHED_MAX)?;
    let loss = daemon.cut(&name, wanted).await?;
    making.json(&crashed(name, &crash, loss)).map(JsonAnswer)
}

/// What rules have done to the data of a disk: the bytes that are wrong now, and the damaged I/Os.
#[utoipa::path(get, path = "/v1/disks/{disk}/faults", operation_id = "get_disk_faults", tag = "disks",
    params(("disk" = String, Path), Listed),
    responses(
        (status = 200, body = Faults, description = "The damage of the disk."),
        (status = 400, body = Error),
        (status = 404, body = Error),
    ))]
pub(crate) async fn faults(
    State(daemon): State<Arc<Daemon>>,
    Name(name): Name,
    Options(Listed { list }): Options<Listed>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    making.reserve(FAULTS_MAX)?;
    let report = daemon.damage(daemon.disk(&name)?).await?;
    let faults = wire::faults(name, &report, list, now());
    making.json(&faults).map(JsonAnswer)
}

/// Ends an attachment of a disk: the zios in flight of the attached device fail, and so does every later
/// request to the device. The device stays until the host detaches it.
#[utoipa::path(post, path = "/v1/disks/{disk}/fail-attachment", operation_id = "fail_attachment",
    tag = "disks",
    params(("disk" = String, Path)),
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
    daemon.disk(&name)?;
    let failed = daemon.fail_attachment(&name, &wanted.node).await?;
    Ok(Json(AttachmentFailed { failed }))
}

pub(super) async fn all(
    daemon: &Daemon,
    detail: &Detail,
    making: &mut AnswerBuilder,
) -> Result<Vec<Disk>, Refusal> {
    let mut disks = Vec::new();
    for (index, _) in daemon.disks() {
        disks.push(one_of(daemon, index, detail, making).await?);
    }
    Ok(disks)
}

/// The disk in the API's form, even if the disk's shard has failed.
async fn one_of(
    daemon: &Daemon,
    index: usize,
    detail: &Detail,
    making: &mut AnswerBuilder,
) -> Result<Disk, Refusal> {
    let snapshot = daemon.snapshot(index, detail.oldest).await;
    let (snapshot, failed) = or_nothing(daemon, snapshot);
    let (info, uris) = (daemon.info(index), daemon.uris(index));
    let pool = info.pool.map(|pool| daemon.info_of_pool(pool));
    let disk = Disk {
        failed,
        ..disk(info, pool, uris, &snapshot)
    };
    making.charge(size_of::<Disk>() + disk.io.oldest.len() * ZIO)?;
    Ok(disk)
}
