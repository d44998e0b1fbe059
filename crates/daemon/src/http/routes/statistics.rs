//! Routes of statistics: the words in their names, the columns of a past period, a stream with each second
//! when it ends, and the comparison of the I/Os in a rectangle of a heat map with all I/Os in view.

use std::sync::Arc;

use axum::body::Body as AnyBody;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use dashpot_api::{Columns, Difference, Error, StatisticIos, StatisticWord, StatisticWords, Watch};
use dashpot_observe::{Dimension, Knows, Layer, Metric, Predicates, Statistic, Unit};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::answers::AnswerBuilder;
use crate::http::charged::JsonAnswer;
use crate::http::error::{Body, Options};
use crate::http::statistics::{
    Interval, Listed, Rectangle, StatisticSource, Watched, compare, list, parse, unit_word,
};
use crate::{Refusal, RefusalKind};

/// The layers, metrics and dimensions of statistics, and the values that are known now.
#[utoipa::path(get, path = "/v1/statistics", operation_id = "list_statistics", tag = "statistics",
    responses(
        (status = 200, body = StatisticWords, description = "The words."),
    ))]
pub(crate) async fn words(
    State(asked): State<Arc<dyn StatisticSource>>,
) -> Result<JsonAnswer, Refusal> {
    let layers = Layer::ALL.into_iter();
    let layers: Vec<(Layer, Knows)> = layers
        .filter_map(|layer| Some((layer, asked.knows(layer)?)))
        .collect();
    let words_of = |is_known: &dyn Fn(Knows) -> bool| -> Vec<String> {
        let own = layers.iter().filter(|(_, knows)| is_known(*knows));
        own.map(|(layer, _)| layer.word().to_owned()).collect()
    };
    let layers_of = |dimension: Dimension| words_of(&|knows| dimension.is_known(knows));
    let is_known = |dimension: &Dimension| !layers_of(*dimension).is_empty();
    let mut dimensions = Vec::new();
    for dimension in Dimension::ALL.into_iter().filter(is_known) {
        dimensions.push(StatisticWord {
            word: dimension.word().to_owned(),
            meaning: dimension.meaning().to_owned(),
            unit: unit_word(dimension.unit()),
            values: match dimension {
                Dimension::Fua => ["no", "yes"].map(str::to_owned).to_vec(),
                _ => asked.values(dimension).await,
            },
            layers: layers_of(dimension),
        });
    }
    let has_metric = |metric: &Metric| match metric {
        Metric::Of(number) => is_known(number),
        // The columns do not have the busy time.
        Metric::Busy => false,
        Metric::Ops | Metric::Bytes | Metric::Errors => true,
    };
    let metrics = Metric::all()
        .filter(has_metric)
        .map(|metric| StatisticWord {
            word: metric.word().to_owned(),
            meaning: metric.meaning().to_owned(),
            unit: unit_word(unit_of(metric)),
            values: Vec::new(),
            layers: match metric {
                Metric::Of(number) => layers_of(number),
                _ => words_of(&|_| true),
            },
        });
    let (remembered, since) = asked.remembered();
    let words = StatisticWords {
        remembered,
        singles_since_ns: since
            .saturating_mul(1_000_000_000)
            .max(asked.clock().started_ns),
        layers: words_of(&|_| true),
        metrics: metrics.collect(),
        dimensions,
    };
    asked.answers().json(&words).map(JsonAnswer)
}

fn unit_of(metric: Metric) -> Unit {
    match metric {
        Metric::Ops | Metric::Errors | Metric::Busy => Unit::Count,
        Metric::Bytes => Unit::Bytes,
        Metric::Of(number) => number.unit(),
    }
}

/// The statistic and the interval that the caller wants.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WantedColumns {
    /// The statistic: `disk.latency[op=write][client]`.
    statistic: String,
    /// The beginning of the interval, at a whole second of the daemon's clock. Without it the interval has 60
    /// seconds.
    from_ns: Option<u64>,
    /// The end of the interval, which is excluded, at a whole second. Without it, or if it is in the future,
    /// the interval ends with the last second that is over.
    to_ns: Option<u64>,
    #[allow(rustdoc::broken_intra_doc_links)] // [1 s] is a default, not a link.
    /// The length of a column in nanoseconds, a multiple of one second [1 s]. Columns begin at multiples of
    /// this length.
    #[serde(default = "second")]
    step_ns: u64,
}

fn second() -> u64 {
    1_000_000_000
}

/// A statistic over an interval of whole seconds, in at most 3,600 columns.
#[utoipa::path(get, path = "/v1/statistics/columns", operation_id = "get_columns", tag = "statistics",
    params(WantedColumns),
    responses(
        (status = 200, body = Columns, description = "The columns, as far as the daemon remembers them."),
        (status = 400, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn columns(
    State(asked): State<Arc<dyn StatisticSource>>,
    Options(wanted): Options<WantedColumns>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let statistic = parse(&wanted.statistic, &*asked)?;
    let now_ns = asked.clock().now_ns;
    let interval = Interval::of(wanted.from_ns, wanted.to_ns, wanted.step_ns, now_ns)?;
    let counted = asked.count(&statistic, &interval, &mut making).await?;
    let columns = counted.answer(&statistic, &interval, now_ns);
    making.json(&columns).map(JsonAnswer)
}

/// Sends statistics as they happen, as server-sent events. The event is `second` with a WatchedSecond for
/// each second that is over, or `refused` with the reason.
#[utoipa::path(post, path = "/v1/statistics/watch", operation_id = "watch_statistics", tag = "statistics",
    request_body = Watch,
    responses(
        (status = 200, content_type = "text/event-stream", body = String, description = "The events; the stream does not end by itself."),
        (status = 400, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn watch(
    State(asked): State<Arc<dyn StatisticSource>>,
    Body(wanted): Body<Watch>,
) -> Result<Response, Refusal> {
    let names = wanted.statistics.iter();
    let parsed: Result<Vec<Statistic>, Refusal> = names.map(|name| parse(name, &*asked)).collect();
    let watched = Watched::begin(&asked, parsed?)?;
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
    /// The statistic, such as `disk.latency[op=write]`. Its metric must be a number.
    statistic: String,
    /// The beginning of the view, at a whole second.
    from_ns: u64,
    /// The end of the view, which is excluded, at a whole second.
    to_ns: u64,
    /// The beginning of the rectangle, at a whole second of the view.
    begin_ns: u64,
    /// The end of the rectangle, which is excluded.
    end_ns: u64,
    /// The least value that the rectangle covers.
    least: u64,
    /// The greatest value that the rectangle covers. Without it there is no upper bound.
    most: Option<u64>,
}

/// Compares the I/Os in a rectangle of a heat map with all I/Os in view, by every known fact about these
/// I/Os.
#[utoipa::path(get, path = "/v1/statistics/diff", operation_id = "compare_rectangle", tag = "statistics",
    params(WantedDifference),
    responses(
        (status = 200, body = Difference, description = "The facts that differ, the most telling first."),
        (status = 400, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn diff(
    State(asked): State<Arc<dyn StatisticSource>>,
    Options(wanted): Options<WantedDifference>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let rectangle = Rectangle {
        statistic: parse(&wanted.statistic, &*asked)?,
        view_ns: wanted.from_ns..wanted.to_ns,
        inside_ns: wanted.begin_ns..wanted.end_ns,
        numbers: wanted.least..=wanted.most.unwrap_or(u64::MAX),
    };
    let difference = compare(&*asked, &rectangle, &mut making).await?;
    making.json(&difference).map(JsonAnswer)
}

/// The individual I/Os that a caller wants.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WantedIos {
    /// The statistic that counts the I/Os. It needs no breakdown.
    statistic: String,
    /// Only I/Os that ended at this whole second or later.
    from_ns: u64,
    /// Only I/Os that ended before this whole second.
    to_ns: u64,
    /// The least value of the statistic's metric that an I/O in the answer may have. Without it there is no
    /// lower bound.
    least: Option<u64>,
    /// The greatest value of the statistic's metric that an I/O in the answer may have. Without it there is
    /// no upper bound.
    most: Option<u64>,
    /// How many of the longest I/Os to leave out, because an earlier answer had them; at most 100,000.
    #[serde(default)]
    skip: usize,
    #[allow(rustdoc::broken_intra_doc_links)] // [100] is a default, not a link.
    /// The maximum number of I/Os in an answer; at most 1,000 [100].
    #[serde(default = "hundred")]
    limit: usize,
}

fn hundred() -> usize {
    100
}

/// The individual I/Os that a part of a statistic counts: a cell, a rectangle, or a whole interval. The
/// longest come first.
#[utoipa::path(get, path = "/v1/statistics/ios", operation_id = "list_statistic_ios", tag = "statistics",
    params(WantedIos),
    responses(
        (status = 200, body = StatisticIos, description = "The I/Os."),
        (status = 400, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn ios(
    State(asked): State<Arc<dyn StatisticSource>>,
    Options(wanted): Options<WantedIos>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    for (name, value, most) in [
        ("skip", wanted.skip, 100_000),
        ("limit", wanted.limit, 1_000),
    ] {
        if value > most {
            let error = format!("{name} is {value}: it is at most {most}");
            return Err(Refusal::new(RefusalKind::Unprocessable, error)
                .remedy("look at a smaller part of the heat map"));
        }
    }
    let statistic = parse(&wanted.statistic, &*asked)?;
    let rectangle = Rectangle {
        view_ns: wanted.from_ns..wanted.to_ns,
        inside_ns: wanted.from_ns..wanted.to_ns,
        numbers: wanted.least.unwrap_or(0)..=wanted.most.unwrap_or(u64::MAX),
        statistic,
    };
    let is_bounded = wanted.least.is_some() || wanted.most.is_some();
    let listed = Listed {
        bounds: if is_bounded {
            rectangle.conditions()?
        } else {
            Predicates::default()
        },
        statistic: rectangle.statistic,
        ended_ns: rectangle.view_ns,
        skip: wanted.skip,
        limit: wanted.limit,
    };
    let found = list(&*asked, listed, &mut making).await?;
    making.json(&found).map(JsonAnswer)
}
