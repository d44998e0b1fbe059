//! Disks: their properties, counters and suspension.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use dashpot_api::{
    AttachmentFailed, By, Crash, Crashed, Disk, DiskLatency, Error, FailAttachment, InFlightZio,
    OpLatency, Resumed, Status, Suspend, Suspended, VersionInfo,
};
use dashpot_engine::histogram::Sparse;
use dashpot_engine::{Duration, Op};
use dashpot_export::{DeviceId, DiskSnapshot, STORE_THREADS};
use dashpot_rules::format_size;
use serde::Deserialize;
use utoipa::IntoParams;

use super::to_the_end;
use crate::answers::Making;
use crate::collector::{self, Collected, Part, Tally};
use crate::host::host_now;
use crate::http::charged::{JsonAnswer, Weighed};
use crate::http::error::{Body, Name, Options};
use crate::promises::promises;
use crate::wire::{View, crashed, cut, failed_disk, memory, part_latency, reclaim, shards};
use crate::{Daemon, Refusal, RefusalKind};

/// The detail of a disk in an answer.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Detail {
    #[allow(rustdoc::broken_intra_doc_links)] // `[1]` is a default, and no link.
    /// The most zios in flight that the answer lists, the oldest first [1].
    #[serde(default = "one")]
    oldest: usize,
}

fn one() -> usize {
    1
}

/// The daemon, its host, its shards and its disks.
#[utoipa::path(get, path = "/v1/status", operation_id = "get_status", tag = "disks",
    params(Detail),
    responses(
        (status = 200, body = Status,
            description = "The daemon and its host, and each shard and disk at one moment."),
        (status = 400, body = Error),
    ))]
pub(crate) async fn status(
    State(daemon): State<Arc<Daemon>>,
    Options(detail): Options<Detail>,
    mut making: Making,
) -> Result<JsonAnswer, Refusal> {
    let disks = all(&daemon, &detail, &mut making).await?;
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
    };
    making.json(&status).map(JsonAnswer)
}

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
    mut making: Making,
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
    mut making: Making,
) -> Result<JsonAnswer, Refusal> {
    let index = daemon.disk(&name)?;
    let disk = one_of(&daemon, index, &detail, &mut making).await?;
    making.json(&disk).map(JsonAnswer)
}

/// The breakdown of a disk's latencies.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Breakdown {
    /// By client, or by size in powers of two [no breakdown].
    by: Option<By>,
}

/// The histograms of a disk since the start. The difference of two answers is the interval between.
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
    mut making: Making,
) -> Result<JsonAnswer, Refusal> {
    let index = daemon.disk(&name)?;
    let snapshot = daemon.snapshot(index, 1).await?;
    let view = view(&daemon, index, &snapshot);
    let device = DeviceId::of(index);
    let look = |events: &collector::View<'_>| {
        let ops = match breakdown.by {
            Some(by) => parts(events.collected, device, by),
            None => view.ops(|op| stores(events.collected, device, op)),
        };
        view.latency(ops, events.dropped(Some(device)))
    };
    let latency = daemon.events(Some(index), look).await;
    making.charge(latency.ops.iter().map(Weighed::bytes).sum())?;
    making.json(&latency).map(JsonAnswer)
}

/// The I/O of each client, or of each size.
fn parts(collected: &Collected, device: DeviceId, by: By) -> Vec<OpLatency> {
    let name = |part| match part {
        Part::Client(place) if by == By::Client => {
            Some(collected.client(device, place).to_string())
        }
        Part::Size(None) if by == By::Size => Some("0".to_owned()),
        Part::Size(Some(power)) if by == By::Size => Some(format_size(1 << power)),
        _ => None,
    };
    let parts = collected.parts(device);
    let op = |(part, op, tally)| Some(part_latency(name(part)?, op, tally));
    parts.filter_map(op).collect()
}

/// The store's latencies of an operation.
fn stores(collected: &Collected, device: DeviceId, op: Op) -> Sparse {
    let mut all = Tally::default();
    for (part, of, tally) in collected.parts(device) {
        if of == op && matches!(part, Part::Size(_)) {
            all.merge(tally);
        }
    }
    all.store
}

/// Suspends a disk: new zios wait. The daemon answers when no zio is in flight, or at once if `now`
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
    mut making: Making,
    Body(crash): Body<Crash>,
) -> Result<JsonAnswer, Refusal> {
    let wanted = cut(&crash)?;
    making.reserve(CRASHED_MAX)?;
    let loss = daemon.cut(&name, wanted).await?;
    making.json(&crashed(name, &crash, loss)).map(JsonAnswer)
}

/// Ends an attachment of a disk: its zios in flight fail, and so does every later request to the
/// device. It stays until the host detaches it.
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
    let failed = daemon.fail_attachment(&name, &wanted.node).await?;
    Ok(Json(AttachmentFailed { failed }))
}

async fn all(daemon: &Daemon, detail: &Detail, making: &mut Making) -> Result<Vec<Disk>, Refusal> {
    let mut disks = Vec::new();
    for (index, _) in daemon.disks() {
        disks.push(one_of(daemon, index, detail, making).await?);
    }
    Ok(disks)
}

/// A disk, even if its shard has failed.
async fn one_of(
    daemon: &Daemon,
    index: usize,
    detail: &Detail,
    making: &mut Making,
) -> Result<Disk, Refusal> {
    let disk = viewed(daemon, index, detail.oldest, |view| view.disk()).await;
    let disk = disk.unwrap_or_else(|refusal| {
        let (info, uris) = (daemon.info(index), daemon.uris(index));
        failed_disk(info, uris, daemon.started(), refusal.error)
    });
    making.charge(size_of::<Disk>() + disk.oldest.len() * ZIO)?;
    Ok(disk)
}

/// Converts a disk's snapshot, which has the `oldest` of its zios in flight.
async fn viewed<T>(
    daemon: &Daemon,
    index: usize,
    oldest: usize,
    make: impl FnOnce(&View<'_>) -> T,
) -> Result<T, Refusal> {
    let snapshot = daemon.snapshot(index, oldest).await?;
    Ok(make(&view(daemon, index, &snapshot)))
}

fn view<'a>(daemon: &'a Daemon, index: usize, snapshot: &'a DiskSnapshot) -> View<'a> {
    View {
        info: daemon.info(index),
        uris: daemon.uris(index),
        since: daemon.started(),
        snapshot,
    }
}

/// Roughly the bytes of a zio in flight in an answer.
const ZIO: usize = size_of::<InFlightZio>() + 96;
/// An upper bound of the bytes of an answer about a power cut, with the longest list.
const CRASHED_MAX: usize = 4 << 20;
