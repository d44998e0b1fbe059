//! Scenarios: rules in time, which last as long as the connection of the caller that began them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as AxumState;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use dashpot_api::{Error, RunScenario, ScenarioRun};
use dashpot_rules::scenario::{BUILT_IN, BuiltIn};
use dashpot_rules::{Speed, parse_speed};
use serde::Deserialize;
use utoipa::IntoParams;

use super::to_the_end;
use crate::answers::AnswerBuilder;
use crate::http::charged::JsonAnswer;
use crate::http::error::{Body, Name, Options};
use crate::http::held::Held;
use crate::scenario::{begin, stop as stop_run};
use crate::wire::scenario;
use crate::{Daemon, Refusal};

/// The scenario to stop.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stopping {
    /// Only the run with this id.
    run: Option<u64>,
}

/// The scenarios that run, and those that ended last.
#[utoipa::path(get, path = "/v1/scenarios", operation_id = "list_scenarios", tag = "scenarios",
    responses(
        (status = 200, body = Vec<ScenarioRun>, description = "The scenarios, the oldest first."),
    ))]
pub(crate) async fn list(
    AxumState(daemon): AxumState<Arc<Daemon>>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let runs = daemon.runs().all();
    making.reserve(runs.len() * RUN_MAX)?;
    let runs: Vec<ScenarioRun> = runs.iter().map(|run| scenario(&daemon, run)).collect();
    making.json(&runs).map(JsonAnswer)
}

/// Makes a scenario on disks. The answer begins when the steps at its beginning are made. Its first line has the
/// scenario as it is then, and the last line the scenario as it ended. The scenario ends, and what it did is undone,
/// when its last step is made, when a step fails, when it is stopped, and when the caller hangs up.
#[utoipa::path(post, path = "/v1/scenarios", operation_id = "run_scenario", tag = "scenarios",
    request_body = RunScenario,
    responses(
        (status = 201, body = ScenarioRun, content_type = "application/x-ndjson",
            description = "The scenario as it begins and as it ends, in a line each."),
        (status = 404, body = Error),
        (status = 409, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn run(
    AxumState(daemon): AxumState<Arc<Daemon>>,
    mut making: AnswerBuilder,
    Body(request): Body<RunScenario>,
) -> Result<Response, Refusal> {
    let speed = request.speed.as_deref();
    let speed = speed.map_or(Ok(Speed::ONE), parse_speed)?;
    making.reserve(RUN_MAX)?;
    // The run is held from its beginning on, so that it ends if the caller hangs up before the answer.
    let begun = to_the_end(async move {
        let RunScenario {
            name,
            scenario: text,
            disks,
            ..
        } = request;
        let text = text.map_or_else(|| built_in(&name), Ok)?;
        let run = begin(&daemon, &name, &text, &disks, speed).await?;
        let line = making.json(&scenario(&daemon, &run));
        Ok((Held::new(daemon, run), line?))
    });
    let (held, line) = begun.await?;
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    let body = axum::body::Body::new(held.body(line));
    Ok((StatusCode::CREATED, kind, body).into_response())
}

/// Stops the scenario of a disk. The answer comes when what it did is undone.
#[utoipa::path(delete, path = "/v1/disks/{disk}/scenario", operation_id = "stop_scenario", tag = "scenarios",
    params(("disk" = String, Path), Stopping),
    responses(
        (status = 200, body = ScenarioRun, description = "The scenario as it ended."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn stop(
    AxumState(daemon): AxumState<Arc<Daemon>>,
    Name(disk): Name,
    Options(stopping): Options<Stopping>,
) -> Result<Json<ScenarioRun>, Refusal> {
    let run = stop_run(&daemon, &disk, stopping.run).await?;
    Ok(Json(scenario(&daemon, &run)))
}

fn built_in(name: &str) -> Result<String, Refusal> {
    let known = BuiltIn::find(name);
    let known = known.map(|known| known.text.to_owned());
    known.ok_or_else(|| {
        let names = BUILT_IN.iter().map(|known| known.name);
        Refusal::not_found("scenario", name, names)
    })
}

/// More bytes than a run in an answer takes.
const RUN_MAX: usize = 128 << 10;
