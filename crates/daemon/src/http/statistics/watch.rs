//! Statistics as they happen: an event for each second that is over.
//!
//! A caller that reads slowly gets later seconds late, and one that is too far behind misses some: an event says
//! how many. Nothing is counted before a caller takes it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use dashpot_api::{Column, WatchedSecond};
use dashpot_observe::Statistic;
use hyper::body::{Body, Frame};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::sleep;

use super::{Interval, SECOND_NS, count};
use crate::{Daemon, Refusal, RefusalKind};

/// The body of an answer that does not end before the caller is gone.
pub(crate) struct Watched(mpsc::Receiver<Bytes>);

impl Watched {
    /// Begins to answer a caller.
    pub(crate) fn begin(
        daemon: &Arc<Daemon>,
        statistics: Vec<Statistic>,
    ) -> Result<Watched, Refusal> {
        if statistics.len() > STATISTICS_MAX {
            let error = format!(
                "{} statistics are too many: a stream has at most {STATISTICS_MAX}",
                statistics.len()
            );
            return Err(Refusal::new(RefusalKind::Unprocessable, error)
                .remedy("ask for fewer, or open another stream"));
        }
        let place = daemon.answers().stream()?;
        // The task counts a second only after the caller has taken the second before.
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(serve(Arc::clone(daemon), statistics, sender, place));
        Ok(Watched(receiver))
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.0.poll_recv(context);
        next.map(|text| text.map(|text| Ok(Frame::data(text))))
    }
}

/// Sends each second that is over, until the caller is gone.
async fn serve(
    daemon: Arc<Daemon>,
    statistics: Vec<Statistic>,
    sender: mpsc::Sender<Bytes>,
    place: OwnedSemaphorePermit,
) {
    let mut next = daemon.now().as_nanos() / SECOND_NS;
    loop {
        let now_ns = daemon.now().as_nanos();
        let wait_ns = ((next + 1) * SECOND_NS).saturating_sub(now_ns);
        tokio::select! {
            () = sleep(Duration::from_nanos(wait_ns)) => {}
            () = sender.closed() => break,
        }
        let over = daemon.now().as_nanos() / SECOND_NS;
        if over <= next {
            continue;
        }
        let missed = over.saturating_sub(next + BEHIND_MAX);
        next += missed;
        let text = match second(&daemon, &statistics, next, missed).await {
            Ok(text) => text,
            Err(refusal) => refused(&refusal),
        };
        if sender.send(text).await.is_err() {
            break;
        }
        next += 1;
    }
    drop(place);
}

/// The event of a second.
async fn second(
    daemon: &Arc<Daemon>,
    statistics: &[Statistic],
    second: u64,
    missed: u64,
) -> Result<Bytes, Refusal> {
    let mut making = daemon.answers().begin().await?;
    let interval = Interval::second(second);
    let mut columns = Vec::with_capacity(statistics.len());
    for statistic in statistics {
        let counted = count(daemon, statistic, &interval, &mut making).await?;
        columns.push(column(counted.columns.into_values().next(), second));
    }
    let said = WatchedSecond {
        start_ns: second * SECOND_NS,
        missed,
        columns,
    };
    let json = serde_json::to_string(&said)
        .map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))?;
    daemon.answers().text(event("second", &json))
}

fn column(column: Option<Column>, second: u64) -> Column {
    column.unwrap_or_else(|| Column {
        start_ns: second * SECOND_NS,
        ..Column::default()
    })
}

/// The reason that a second could not be counted.
fn refused(refusal: &Refusal) -> Bytes {
    let json = serde_json::to_string(&refusal.error).unwrap_or_default();
    event("refused", &json).into()
}

/// The form of server-sent events.
fn event(name: &str, json: &str) -> String {
    format!("event: {name}\ndata: {json}\n\n")
}

/// The most statistics of a caller.
const STATISTICS_MAX: usize = 16;
/// A caller further behind than this misses seconds.
const BEHIND_MAX: u64 = 60;
