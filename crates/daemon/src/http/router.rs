//! The table of paths and their handlers.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{delete, get, post};
use dashpot_api::Error;

use super::access::{Access, guard};
use super::error::{refuse, with_whole_body};
use super::routes::{
    disks, events, expect, meta, pools, rules, scenarios, seconds, statistics, status, volumes,
};
use super::statistics::{StatisticSource, Viewed};
use super::{openapi, page};
use crate::Daemon;
use crate::http::memory::Memory;

/// The API of a daemon. Over TCP, requests need a token.
pub fn router(daemon: Arc<Daemon>, access: Option<Arc<Access>>) -> Router {
    let router = Router::new()
        .route("/v1/exports", get(meta::exports))
        .route("/v1/status", get(status::status))
        .route("/v1/disks", get(disks::list))
        .route("/v1/disks/{disk}", get(disks::show))
        .route("/v1/disks/{disk}/latency", get(disks::latency))
        .route("/v1/disks/{disk}/suspend", post(disks::suspend))
        .route("/v1/disks/{disk}/resume", post(disks::resume))
        .route("/v1/disks/{disk}/crash", post(disks::crash))
        .route("/v1/disks/{disk}/faults", get(disks::faults))
        .route(
            "/v1/disks/{disk}/fail-attachment",
            post(disks::fail_attachment),
        )
        .route(
            "/v1/disks/{disk}/rules",
            get(rules::of_disk).post(rules::inject),
        )
        .route("/v1/disks/{disk}/expect", post(expect::rules))
        .route("/v1/disks/{disk}/leases", post(rules::lease))
        .route("/v1/pools", get(pools::list))
        .route("/v1/pools/{pool}", get(pools::show))
        .route("/v1/pools/{pool}/latency", get(pools::latency))
        .route("/v1/pools/{pool}/crash", post(pools::crash))
        .route("/v1/pools/{pool}/txgs", get(pools::txgs))
        .route(
            "/v1/pools/{pool}/tunables",
            get(pools::tunables).patch(pools::tune),
        )
        .route("/v1/volumes", get(volumes::list))
        .route("/v1/volumes/{volume}", get(volumes::show))
        .route("/v1/volumes/{volume}/latency", get(volumes::latency))
        .route(
            "/v1/volumes/{volume}/fail-attachment",
            post(volumes::fail_attachment),
        )
        .route("/v1/rules", get(rules::list).delete(rules::clear_many))
        .route(
            "/v1/rules/{rule}",
            get(rules::show).patch(rules::update).delete(rules::clear),
        )
        .route("/v1/rules/{rule}/latency", get(rules::latency))
        .route("/v1/rules/{rule}/renew", post(rules::renew))
        .route("/v1/scenarios", get(scenarios::list).post(scenarios::run))
        .route("/v1/disks/{disk}/scenario", delete(scenarios::stop))
        .route("/v1/events", get(events::finished))
        .route("/v1/seconds", get(seconds::seconds))
        .route("/v1/reset", post(rules::reset))
        .route("/v1/stop", post(meta::stop))
        .with_state(Arc::clone(&daemon));
    guarded(router.merge(of_any_source(Arc::new(daemon))), access)
}

/// The part of the API that the page needs if its source is not a daemon. Over TCP, requests need a token.
pub fn page_router(memory: Arc<dyn Memory>, access: Option<Arc<Access>>) -> Router {
    guarded(of_any_source(Arc::new(Viewed::new(memory))), access)
}

/// The page, and the statistics that it asks for.
fn of_any_source(asked: Arc<dyn StatisticSource>) -> Router {
    let router = Router::new()
        .route("/", get(page::index))
        .route("/healthz", get(meta::healthz))
        .route("/v1/version", get(meta::version))
        .route("/v1/openapi.json", get(openapi::openapi))
        .route("/v1/source", get(meta::source))
        .route("/v1/clock", get(meta::clock))
        .route("/v1/layout", get(meta::layout))
        .route("/v1/statistics", get(statistics::words))
        .route("/v1/statistics/columns", get(statistics::columns))
        .route("/v1/statistics/watch", post(statistics::watch))
        .route("/v1/statistics/diff", get(statistics::diff))
        .route("/v1/statistics/ios", get(statistics::ios));
    page::other_paths()
        .fold(router, |router, path| router.route(path, get(page::file)))
        .with_state(asked)
}

fn guarded(router: Router, access: Option<Arc<Access>>) -> Router {
    let router = router
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method);
    let router = match access {
        Some(access) => router.layer(from_fn_with_state(access, guard)),
        None => router,
    };
    router.layer(from_fn(with_whole_body))
}

async fn unknown_path(request: Request) -> Response {
    let error = Error {
        error: format!(
            "this is the API of dashpot, and there is nothing at '{}'",
            request.uri().path()
        ),
        remedy: Some("see /v1/openapi.json".to_owned()),
    };
    refuse(StatusCode::NOT_FOUND, error)
}

async fn unknown_method(request: Request) -> Response {
    let error = Error {
        error: format!(
            "{} is not possible on '{}'",
            request.method(),
            request.uri().path()
        ),
        remedy: Some("see /v1/openapi.json".to_owned()),
    };
    refuse(StatusCode::METHOD_NOT_ALLOWED, error)
}
