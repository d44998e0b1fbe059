//! The listener for scrapers: it answers `GET /metrics`, and nothing else.

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

use super::format::{Format, plain};
use crate::Refusal;
use crate::answers::AnswerMemory;
use crate::http::{Hosts, guard_host};

/// A source of metrics.
pub trait Metrics: Send + Sync + 'static {
    /// All metrics now, as OpenMetrics text.
    fn text(&self) -> impl Future<Output = Result<String, fmt::Error>> + Send;
}

/// The reason that there are no metrics to send.
enum Failed {
    Format(fmt::Error),
    Refused(Refusal),
}

/// Answers scrapers of a source. Over TCP, the request must be for one of `hosts`.
pub fn router<S: Metrics>(source: S, hosts: Option<Hosts>) -> Router {
    let scraped = Scraped {
        source,
        memory: AnswerMemory::default(),
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

/// A source, and its last text.
struct Scraped<S> {
    source: S,
    /// The memory for texts that scrapers have not received yet. The API's answers have a memory of their
    /// own, because scrapers, which need no token, must not use up the memory of the API's callers.
    memory: AnswerMemory,
    last: Mutex<Option<(Instant, Bytes)>>,
}

impl<S: Metrics> Scraped<S> {
    /// A text whose snapshots were taken after this call began. All callers that wait share the next text, so
    /// more callers at the same time do not cause more snapshots.
    async fn text(&self) -> Result<Bytes, Failed> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((begun, text)) = last.as_ref()
            && *begun >= asked
        {
            return Ok(text.clone());
        }
        let begun = Instant::now();
        let text = self.source.text().await.map_err(Failed::Format)?;
        let text = self.memory.text(text).map_err(Failed::Refused)?;
        *last = Some((begun, text.clone()));
        Ok(text)
    }

    /// The text in a format. Only the older format needs a separate text.
    fn in_format(&self, format: Format, text: Bytes) -> Result<Bytes, Failed> {
        match format {
            Format::OpenMetrics => Ok(text),
            Format::Plain => {
                let plain = plain(&String::from_utf8_lossy(&text));
                self.memory.text(plain).map_err(Failed::Refused)
            }
        }
    }
}

async fn metrics<S: Metrics>(
    State(scraped): State<Arc<Scraped<S>>>,
    headers: HeaderMap,
) -> Response {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    let text = match scraped.text().await {
        Ok(text) => scraped.in_format(format, text),
        Err(failed) => Err(failed),
    };
    match text {
        Ok(text) => ([(header::CONTENT_TYPE, format.name())], text).into_response(),
        Err(Failed::Format(error)) => {
            (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
        }
        Err(Failed::Refused(refusal)) => refusal.into_response(),
    }
}
