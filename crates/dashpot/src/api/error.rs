//! Refusals as HTTP answers, and extractors that refuse in the same form.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::types::Error;
use crate::daemon::{Refusal, RefusalKind};

/// How long a request may take for its body.
const BODY_MAX: Duration = Duration::from_secs(10);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self.kind {
            RefusalKind::BadRequest => StatusCode::BAD_REQUEST,
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::Conflict => StatusCode::CONFLICT,
            RefusalKind::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
            RefusalKind::Failed => StatusCode::SERVICE_UNAVAILABLE,
        };
        refuse(status, self.into())
    }
}

/// An answer that refuses, for reasons that are not the daemon's.
pub(super) fn refuse(status: StatusCode, error: Error) -> Response {
    (status, Json(error)).into_response()
}

/// A body of JSON.
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Refusal> {
        let bytes = timeout(BODY_MAX, Bytes::from_request(request, state)).await;
        let bytes = bytes.map_err(|_| {
            Refusal::bad_request(format!("the body was not there after {BODY_MAX:?}"))
                .remedy("send it at once, and as many bytes as Content-Length says")
        })?;
        let bytes = bytes.map_err(|error| Refusal::bad_request(error.to_string()))?;
        // Whatever its Content-Type is: curl sends that of a form.
        let parsed = serde_json::from_slice(if bytes.is_empty() { b"{}" } else { &bytes[..] });
        parsed.map(Body).map_err(|error| {
            Refusal::bad_request(format!(
                "the body is not the JSON that is expected: {error}"
            ))
            .remedy("see /v1/openapi.json")
        })
    }
}

/// The query of an address.
pub(super) struct Options<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Options<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Options<T>, Refusal> {
        let query = Query::try_from_uri(&parts.uri);
        query
            .map(|Query(options)| Options(options))
            .map_err(|error| Refusal::bad_request(error.body_text()).remedy("see /v1/openapi.json"))
    }
}
