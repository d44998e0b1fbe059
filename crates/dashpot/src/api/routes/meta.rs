//! What the program is.

use axum::Json;
use axum::response::IntoResponse;

use crate::api::openapi::document;
use crate::api::types::VersionInfo;

/// Says that the daemon answers, and nothing else.
#[utoipa::path(get, path = "/healthz", tag = "daemon", responses((status = 200, body = str)))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Which program answers.
#[utoipa::path(get, path = "/v1/version", tag = "daemon", responses((status = 200, body = VersionInfo)))]
pub(crate) async fn version() -> Json<VersionInfo> {
    Json(VersionInfo::current())
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "daemon", responses((status = 200)))]
pub(crate) async fn openapi() -> impl IntoResponse {
    Json(document())
}

impl VersionInfo {
    pub(crate) fn current() -> VersionInfo {
        VersionInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api: "v1".to_owned(),
        }
    }
}
