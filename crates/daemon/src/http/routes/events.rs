//! Finished zios, one by one.

use std::ops::Range;
use std::sync::Arc;

use axum::extract::State;
use dashpot_api::{Error, FinishedZio, FinishedZios, LayerWord};
use dashpot_engine::OpSet;
use dashpot_export::{DeviceId, FinishedZio as Finished};
use dashpot_observe::{FinishedIo, Knows, Predicates, Statistic};
use dashpot_rules::parse_ops;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::answers::AnswerBuilder;
use crate::collector::View;
use crate::http::charged::JsonAnswer;
use crate::http::error::Options;
use crate::http::statistics::check_known;
use crate::wire::io_of;
use crate::{Daemon, Refusal, RefusalKind};

/// The finished zios that the caller wants.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Only zios that finished after this cursor, which is `next` of an earlier answer, or 0 for all zios
    /// that the daemon remembers. Without it the answer has no zios, and `next` is the present cursor.
    after: Option<u64>,
    /// Only zios of the disk or the volume with this name. Without it, zios of all disks and volumes,
    /// including the zios that a pool sends to its disks.
    disk: Option<String>,
    /// Only zios of these operations, separated by commas, such as `read,write`.
    op: Option<String>,
    /// Only zios whose total latency is at least this long.
    #[serde(default)]
    min_ns: u64,
    /// Only zios that ended at this moment or later.
    from_ns: Option<u64>,
    /// Only zios that ended before this moment.
    to_ns: Option<u64>,
    /// Only zios that meet these conditions of a statistic, such as `[op=write][latency>=10ms]`.
    r#where: Option<String>,
    /// Only zios of this layer, which is `disk` or `volume`.
    layer: Option<LayerWord>,
    #[allow(rustdoc::broken_intra_doc_links)] // `[1,000]` is a default, and no link.
    /// The maximum number of zios in an answer; at most 10,000 [1,000].
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    1_000
}

/// Finished zios, one by one.
#[utoipa::path(get, path = "/v1/events", operation_id = "list_events", tag = "events",
    params(Wanted),
    responses(
        (status = 200, body = FinishedZios, description = "The zios that were asked for."),
        (status = 400, body = Error),
        (status = 404, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn finished(
    State(daemon): State<Arc<Daemon>>,
    Options(wanted): Options<Wanted>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    if wanted.limit > LIMIT_MAX {
        let error = format!(
            "limit is {}: an answer has at most {LIMIT_MAX} zios",
            wanted.limit
        );
        return Err(Refusal::new(RefusalKind::Unprocessable, error)
            .remedy("ask for the others with 'after', set to 'next' of the last answer"));
    }
    let device = device_of(&daemon, wanted.disk.as_deref())?;
    let ops = match &wanted.op {
        Some(words) => parse_ops(words)?,
        None => OpSet::EVERY,
    };
    let ended_ns = wanted.from_ns.unwrap_or(0)..wanted.to_ns.unwrap_or(u64::MAX);
    let mut search = Search {
        devices: daemon.device_names(),
        device,
        ops,
        min_ns: wanted.min_ns,
        ended_ns,
        predicates: conditions(wanted.r#where.as_deref())?,
        layer: wanted.layer,
        limit: wanted.limit,
        end: None,
        found: FinishedZios {
            zios: Vec::new(),
            next: wanted.after.unwrap_or(u64::MAX),
            forgotten: 0,
            dropped: 0,
            since_ns: daemon.started().as_nanos(),
        },
    };
    let mut is_over = daemon.events(device, |view| search.go_on(view)).await;
    while !is_over {
        // Between two parts, the daemon answers other callers.
        tokio::task::yield_now().await;
        is_over = daemon.collected(|view| search.go_on(view));
    }
    making.charge(search.found.zios.len() * ZIO)?;
    making.json(&search.found).map(JsonAnswer)
}

/// A search among the finished zios. The search proceeds in parts, because the collector cannot empty the
/// shards' rings while the daemon searches.
struct Search {
    device: Option<DeviceId>,
    ops: OpSet,
    min_ns: u64,
    ended_ns: Range<u64>,
    predicates: Predicates,
    layer: Option<LayerWord>,
    devices: Vec<Arc<str>>,
    limit: usize,
    /// The cursor at which the search ends. Zios that finish later are left for the next request.
    end: Option<u64>,
    /// The zios found so far. The search continues at the cursor `next`, unless `next` is beyond `end`.
    found: FinishedZios,
}

impl Search {
    /// Searches the next part. Returns true if the search is over.
    fn go_on(&mut self, view: &View<'_>) -> bool {
        let recent = view.collected.recent();
        let end = *self.end.get_or_insert(recent.now());
        let from = self.found.next.min(end);
        self.found.forgotten += recent.forgotten(from).min(end - from);
        self.found.dropped = view.dropped(self.device);
        let part = recent.after(from).take(PART);
        for (cursor, zio, client) in part.take_while(|(cursor, ..)| *cursor < end) {
            if let Some(io) = self.wanted(zio, client) {
                if self.found.zios.len() == self.limit {
                    self.found.next = cursor;
                    return true;
                }
                self.found.zios.push(FinishedZio::of(&io));
            }
            self.found.next = cursor + 1;
        }
        let is_over = self.found.next <= from || self.found.next >= end;
        if is_over {
            self.found.next = end;
        }
        is_over
    }

    fn wants(&self, zio: &Finished) -> bool {
        self.device.is_none_or(|device| zio.device == device)
            && self.ops.means(ops_of(zio))
            && zio.waits().total().as_nanos() >= self.min_ns
            && self.ended_ns.contains(&zio.ended().as_nanos())
            && self.layer.is_none_or(|layer| layer == layer_of(zio))
    }

    /// The zio as an I/O, if it meets the conditions.
    fn wanted(&self, zio: &Finished, client: &str) -> Option<FinishedIo> {
        if !self.wants(zio) {
            return None;
        }
        let device = Arc::clone(self.devices.get(zio.device.index())?);
        let io = io_of(zio, device, client.into());
        self.predicates.select(&io).then_some(io)
    }
}

/// Parses the conditions of a statistic, each in brackets.
fn conditions(text: Option<&str>) -> Result<Predicates, Refusal> {
    let Some(text) = text else {
        return Ok(Predicates::default());
    };
    if !text.is_empty() && !text.starts_with('[') {
        let error = format!("where is '{text}': it does not begin with '['");
        return Err(Refusal::bad_request(error).remedy(BRACKETS));
    }
    let statistic: Statistic = format!("disk.ops{text}").parse()?;
    if let Some(by) = statistic.by {
        let error = format!("where is '{text}': [{}] is not a condition", by.word());
        return Err(Refusal::bad_request(error).remedy(BRACKETS));
    }
    check_known(&statistic.predicates, Knows::Zios)?;
    Ok(statistic.predicates)
}

fn layer_of(zio: &Finished) -> LayerWord {
    if zio.is_of_volume() {
        LayerWord::Volume
    } else {
        LayerWord::Disk
    }
}

/// The operation of a zio, with `FUA` if it is a write that had to be durable before its reply.
fn ops_of(zio: &Finished) -> OpSet {
    OpSet::of(zio.op).union(if zio.fua { OpSet::FUA } else { OpSet::EMPTY })
}

pub(super) fn device_of(daemon: &Daemon, name: Option<&str>) -> Result<Option<DeviceId>, Refusal> {
    name.map(|name| daemon.device(name)).transpose()
}

const BRACKETS: &str = "write each condition as [latency>=10ms]";
const LIMIT_MAX: usize = 10_000;
/// Roughly how many bytes a finished zio takes in an answer.
const ZIO: usize = size_of::<FinishedZio>() + 128;
/// Number of zios in a part. A part takes about 2 ms.
const PART: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::{BRACKETS, conditions};

    #[test]
    fn conditions_without_brackets_are_refused_with_the_form() {
        for text in [
            "op=write",
            "txg=syncing,class=async_write",
            " [op=write]",
            "[client]",
        ] {
            let refused = conditions(Some(text)).expect_err(text);
            assert!(refused.error.starts_with("where is"), "{}", refused.error);
            assert_eq!(refused.remedy.as_deref(), Some(BRACKETS));
        }
        assert!(conditions(Some("")).is_ok_and(|all| all.is_empty()));
        assert!(conditions(Some("[op=write]")).is_ok_and(|all| !all.is_empty()));
    }
}
