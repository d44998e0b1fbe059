//! Refusals as HTTP answers, and extractors that refuse in the same form.

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use super::types::Error;
use crate::daemon::{Refusal, RefusalKind};

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
        let bytes = axum::body::Bytes::from_request(request, state)
            .await
            .map_err(|error| Refusal::bad_request(error.to_string()))?;
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
