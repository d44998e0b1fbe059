//! What answers scrapers: `GET /metrics`, and nothing else.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::format::Format;
use crate::api::{Hosts, guard_host};

/// What is scraped.
pub(crate) trait Source: Send + Sync + 'static {
    /// Everything as it is now, as OpenMetrics text.
    fn text(&self) -> impl Future<Output = Result<String, fmt::Error>> + Send;
}

/// Answers scrapers of a source, over TCP those only that ask for one of `hosts`.
pub(crate) fn router<S: Source>(source: S, hosts: Option<Hosts>) -> Router {
    let scraped = Scraped {
        source,
        last: Mutex::new(None),
    };
    let router = Router::new()
        .route("/metrics", get(metrics::<S>))
        .with_state(Arc::new(scraped));
    match hosts {
        Some(hosts) => router.layer(from_fn_with_state(Arc::new(hosts), guard_host)),
        None => router,
    }
}

/// A source, and the text that was made of it last.
struct Scraped<S> {
    source: S,
    last: Mutex<Option<(Instant, Bytes)>>,
}

impl<S: Source> Scraped<S> {
    /// A text that was begun after this was called. Those who wait for one share the next, so that
    /// many scrapers at once cost no more snapshots than one after another.
    async fn text(&self) -> Result<Bytes, fmt::Error> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((begun, text)) = last.as_ref()
            && *begun >= asked
        {
            return Ok(text.clone());
        }
        let begun = Instant::now();
        let text = Bytes::from(self.source.text().await?);
        *last = Some((begun, text.clone()));
        Ok(text)
    }
}

async fn metrics<S: Source>(
    State(scraped): State<Arc<Scraped<S>>>,
    headers: HeaderMap,
) -> Response {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    match scraped.text().await {
        Ok(text) => ([(header::CONTENT_TYPE, format.name())], format.of(text)).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
