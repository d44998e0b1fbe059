//! Refusals as HTTP answers, and extractors that refuse in the same form.

use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use dashpot_api::Error;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::{Refusal, RefusalKind};

/// How long the body of a request may take to arrive.
const BODY_MAX: Duration = Duration::from_secs(10);

/// The most bytes that a body may have.
const BODY_BYTES: usize = 64 << 10;

/// The most bytes of a body that the daemon reads. It discards all bytes after the first [`BODY_BYTES`].
const DISCARDED_MAX: usize = 64 << 20;

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self.kind {
            RefusalKind::BadRequest => StatusCode::BAD_REQUEST,
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::Conflict => StatusCode::CONFLICT,
            RefusalKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RefusalKind::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
            RefusalKind::Failed | RefusalKind::Full => StatusCode::SERVICE_UNAVAILABLE,
        };
        let kind = self.kind;
        let mut response = refuse(status, self.into());
        if kind == RefusalKind::Full {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// An answer that refuses a request.
pub(super) fn refuse(status: StatusCode, error: Error) -> Response {
    (status, Json(error)).into_response()
}

/// A body of JSON.
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Body<T>, Refusal> {
        let (parts, body) = request.into_parts();
        let bytes = whole(&parts.headers, body).await?;
        // The daemon ignores the Content-Type, because curl sends the type of a form.
        let parsed = serde_json::from_slice(if bytes.is_empty() { b"{}" } else { &bytes[..] });
        parsed.map(Body).map_err(|error| {
            Refusal::bad_request(format!("the body is not the expected JSON: {error}"))
                .remedy("see /v1/openapi.json")
        })
    }
}

/// Reads the body of every request before the request is answered, even if the answer does not depend on the
/// body. A client that is still sending when the daemon refuses the request would otherwise meet a closed
/// connection instead of the refusal.
pub(super) async fn with_whole_body(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match whole(&parts.headers, body).await {
        Ok(bytes) => next.run(Request::from_parts(parts, bytes.into())).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// Reads a body in time.
async fn whole(headers: &HeaderMap, body: axum::body::Body) -> Result<Vec<u8>, Refusal> {
    timeout(BODY_MAX, read_body(headers, body))
        .await
        .map_err(|_| {
            Refusal::bad_request(format!("the body was not complete after {BODY_MAX:?}"))
                .remedy("send the body at once, with as many bytes as Content-Length says")
        })?
}

/// Reads a body. If the body is too large, the daemon reads and discards the rest, up to a bound: if the
/// daemon closed the connection at once, a client that is still sending would not get the answer.
async fn read_body(headers: &HeaderMap, mut body: axum::body::Body) -> Result<Vec<u8>, Refusal> {
    if waits_with_too_much(headers) {
        return Err(too_large());
    }
    let (mut bytes, mut read) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Refusal::bad_request(error.to_string()))?;
        let data = frame.into_data().unwrap_or_default();
        read += data.len();
        if read > DISCARDED_MAX {
            break;
        }
        if read <= BODY_BYTES {
            bytes.extend_from_slice(&data);
        }
    }
    if read > BODY_BYTES {
        Err(too_large())
    } else {
        Ok(bytes)
    }
}

/// Whether a client waits for permission to send a body that is too large.
fn waits_with_too_much(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    headers.contains_key(header::EXPECT) && length > Some(BODY_BYTES)
}

fn too_large() -> Refusal {
    let error = format!("the body has more than {} KiB", BODY_BYTES >> 10);
    Refusal::new(RefusalKind::TooLarge, error)
        .remedy("a rule with its name and the glob of its client is shorter")
}

/// A name in a path.
pub(super) struct Name(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Name, Refusal> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(name)| Name(name)).map_err(|error| {
            Refusal::bad_request(error.body_text())
                .remedy("write names in UTF-8, and '/' in them as %2F")
        })
    }
}

/// The query string of a request.
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
