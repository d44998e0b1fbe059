//! Any statistic: its words, columns of the past, seconds as they end, and the differences of a rectangle.

use std::sync::Arc;

use axum::body::Body as AnyBody;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use dashpot_api::{Columns, Difference, Error, StatisticWord, StatisticWords, Watch};
use dashpot_engine::Op;
use dashpot_observe::{Dimension, Knows, Layer, Metric, Statistic, Unit};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::answers::Making;
use crate::http::charged::JsonAnswer;
use crate::http::error::{Body, Options};
use crate::http::statistics::{Interval, Rectangle, Watched, compare, count, parse, unit_word};
use crate::{Daemon, Refusal};

/// The layers, metrics and dimensions of statistics, and the values that are known now.
#[utoipa::path(get, path = "/v1/statistics", operation_id = "list_statistics", tag = "statistics",
    responses(
        (status = 200, body = StatisticWords, description = "The words."),
    ))]
pub(crate) async fn words(State(daemon): State<Arc<Daemon>>) -> Result<JsonAnswer, Refusal> {
    let is_known = |dimension: &Dimension| dimension.is_known(Knows::Zios);
    let mut dimensions = Vec::new();
    for dimension in Dimension::ALL.into_iter().filter(is_known) {
        dimensions.push(StatisticWord {
            word: dimension.word().to_owned(),
            meaning: dimension.meaning().to_owned(),
            unit: unit_word(dimension.unit()),
            values: values(&daemon, dimension).await,
        });
    }
    let has_metric = |metric: &Metric| match metric {
        Metric::Of(number) => is_known(number),
        _ => true,
    };
    let metrics = Metric::all()
        .filter(has_metric)
        .map(|metric| StatisticWord {
            word: metric.word().to_owned(),
            meaning: metric.meaning().to_owned(),
            unit: unit_word(unit_of(metric)),
            values: Vec::new(),
        });
    let layers = [Layer::Disk, Layer::Volume].map(|layer| layer.word().to_owned());
    let words = StatisticWords {
        layers: layers.to_vec(),
        metrics: metrics.collect(),
        dimensions,
    };
    daemon.answers().json(&words).map(JsonAnswer)
}

fn unit_of(metric: Metric) -> Unit {
    match metric {
        Metric::Ops | Metric::Errors => Unit::Count,
        Metric::Bytes => Unit::Bytes,
        Metric::Of(number) => number.unit(),
    }
}

/// The values of a dimension that are known now.
async fn values(daemon: &Daemon, dimension: Dimension) -> Vec<String> {
    match dimension {
        Dimension::Device => {
            let names = daemon.device_names();
            names.iter().map(ToString::to_string).collect()
        }
        Dimension::Op => Op::ALL.map(|op| op.name().to_owned()).to_vec(),
        Dimension::Fua => ["no", "yes"].map(str::to_owned).to_vec(),
        Dimension::Rule => {
            let records = daemon.records().await;
            records
                .iter()
                .map(|record| record.id.0.to_string())
                .collect()
        }
        Dimension::Client => daemon.collected(|view| view.collected.client_names()),
        _ => Vec::new(),
    }
}

/// The statistic and the interval that the caller wants.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WantedColumns {
    /// The statistic: `disk.latency[op=write][client]`.
    statistic: String,
    /// The beginning: a whole second of the daemon's clock. Without it the interval has 60 seconds.
    from_ns: Option<u64>,
    /// The end, which is excluded: a whole second. Without it, and at most, the end of the last second that is
    /// over.
    to_ns: Option<u64>,
    #[allow(rustdoc::broken_intra_doc_links)] // A default, and no link.
    /// The length of a column: whole seconds [1 s]. Columns begin at its multiples.
    #[serde(default = "second")]
    step_ns: u64,
}

fn second() -> u64 {
    1_000_000_000
}

/// A statistic over the whole seconds of an interval, at most 3,600 columns.
#[utoipa::path(get, path = "/v1/statistics/columns", operation_id = "get_columns", tag = "statistics",
    params(WantedColumns),
    responses(
        (status = 200, body = Columns, description = "The columns, as far as the daemon remembers them."),
        (status = 400, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn columns(
    State(daemon): State<Arc<Daemon>>,
    Options(wanted): Options<WantedColumns>,
    mut making: Making,
) -> Result<JsonAnswer, Refusal> {
    let statistic = parse(&wanted.statistic)?;
    let now_ns = daemon.now().as_nanos();
    let interval = Interval::of(wanted.from_ns, wanted.to_ns, wanted.step_ns, now_ns)?;
    let counted = count(&daemon, &statistic, &interval, &mut making).await?;
    let columns = counted.answer(&statistic, &interval, now_ns);
    making.json(&columns).map(JsonAnswer)
}

/// Statistics as they happen, as server-sent events: `second` with a WatchedSecond for each second that is over,
/// or `refused` with the reason.
#[utoipa::path(post, path = "/v1/statistics/watch", operation_id = "watch_statistics", tag = "statistics",
    request_body = Watch,
    responses(
        (status = 200, content_type = "text/event-stream", body = String, description = "The events; the stream does not end by itself."),
        (status = 400, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn watch(
    State(daemon): State<Arc<Daemon>>,
    Body(wanted): Body<Watch>,
) -> Result<Response, Refusal> {
    let parsed: Result<Vec<Statistic>, Refusal> =
        wanted.statistics.iter().map(|name| parse(name)).collect();
    let watched = Watched::begin(&daemon, parsed?)?;
    let head = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((head, AnyBody::new(watched)).into_response())
}

/// A rectangle in the heat map of a statistic, and the view around it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WantedDifference {
    /// The statistic. Its metric is a number, such as `disk.latency[op=write]`.
    statistic: String,
    /// The beginning of the view: a whole second.
    from_ns: u64,
    /// Its end, which is excluded: a whole second.
    to_ns: u64,
    /// The beginning of the rectangle: a whole second of the view.
    begin_ns: u64,
    /// Its end, which is excluded.
    end_ns: u64,
    /// The least number of the rectangle.
    least: u64,
    /// The greatest number of the rectangle. Without it there is no upper bound.
    most: Option<u64>,
}

/// Compares the I/Os in a rectangle of a heat map with all I/Os in view, by every fact about them.
#[utoipa::path(get, path = "/v1/statistics/diff", operation_id = "compare_rectangle", tag = "statistics",
    params(WantedDifference),
    responses(
        (status = 200, body = Difference, description = "The facts that differ, the most telling first."),
        (status = 400, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn diff(
    State(daemon): State<Arc<Daemon>>,
    Options(wanted): Options<WantedDifference>,
    mut making: Making,
) -> Result<JsonAnswer, Refusal> {
    let rectangle = Rectangle {
        statistic: parse(&wanted.statistic)?,
        view_ns: wanted.from_ns..wanted.to_ns,
        inside_ns: wanted.begin_ns..wanted.end_ns,
        numbers: wanted.least..=wanted.most.unwrap_or(u64::MAX),
    };
    let difference = compare(&daemon, &rectangle, &mut making).await?;
    making.json(&difference).map(JsonAnswer)
}
