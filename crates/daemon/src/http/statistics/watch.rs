//! Statistics as they happen: an event for each second that is over.
//!
//! A caller that reads slowly receives its seconds late. If the caller falls too far behind, the stream skips
//! seconds, and the next event says how many. A second is counted only when the caller has room for it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use dashpot_api::{Buckets, Column, WatchedSecond};
use dashpot_observe::Statistic;
use hyper::body::{Body, Frame};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::sleep;

use super::asked::StatisticSource;
use super::{Interval, SECOND_NS};
use crate::{Refusal, RefusalKind};

/// The body of an answer that does not end before the caller has gone.
pub(crate) struct Watched(mpsc::Receiver<Bytes>);

impl Watched {
    /// Begins to answer a caller.
    pub(crate) fn begin(
        asked: &Arc<dyn StatisticSource>,
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
        let place = asked.answers().stream()?;
        // The task counts a second only after the caller has taken the event of the previous second.
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(serve(Arc::clone(asked), statistics, sender, place));
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

/// Sends each second that is over, until the caller has gone.
async fn serve(
    asked: Arc<dyn StatisticSource>,
    statistics: Vec<Statistic>,
    sender: mpsc::Sender<Bytes>,
    place: OwnedSemaphorePermit,
) {
    let mut next = asked.clock().now_ns / SECOND_NS;
    loop {
        let now_ns = asked.clock().now_ns;
        // The clock of a simulation may run faster or slower than real time, so the wait is bounded on both
        // sides.
        let wait_ns = ((next + 1) * SECOND_NS)
            .saturating_sub(now_ns)
            .clamp(SHORT_NS, SECOND_NS);
        tokio::select! {
            () = sleep(Duration::from_nanos(wait_ns)) => {}
            () = sender.closed() => break,
        }
        let over = asked.clock().now_ns / SECOND_NS;
        if over <= next {
            continue;
        }
        let missed = over.saturating_sub(next + BEHIND_MAX);
        next += missed;
        let text = match second(&*asked, &statistics, next, missed).await {
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

/// The event that the stream sends for one second.
async fn second(
    asked: &dyn StatisticSource,
    statistics: &[Statistic],
    second: u64,
    missed: u64,
) -> Result<Bytes, Refusal> {
    let mut making = asked.answers().begin().await?;
    let interval = Interval::second(second);
    let mut columns = Vec::with_capacity(statistics.len());
    for statistic in statistics {
        let counted = asked.count(statistic, &interval, &mut making).await?;
        columns.push(column(counted.columns.into_values().next(), second));
    }
    let said = WatchedSecond {
        start_ns: second * SECOND_NS,
        missed,
        buckets: Buckets::of_columns(&mut columns),
        columns,
    };
    let json = serde_json::to_string(&said)
        .map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))?;
    asked.answers().text(event("second", &json))
}

fn column(column: Option<Column>, second: u64) -> Column {
    column.unwrap_or_else(|| Column {
        start_ns: second * SECOND_NS,
        ..Column::default()
    })
}

/// The event that tells the caller why a second could not be counted.
fn refused(refusal: &Refusal) -> Bytes {
    let json = serde_json::to_string(&refusal.error).unwrap_or_default();
    event("refused", &json).into()
}

/// An event in the form of server-sent events.
fn event(name: &str, json: &str) -> String {
    format!("event: {name}\ndata: {json}\n\n")
}

/// The most statistics of a stream.
const STATISTICS_MAX: usize = 16;
/// The shortest wait for the end of a second.
const SHORT_NS: u64 = 1_000_000;
/// If a caller is more than this many seconds behind, the stream skips the older seconds.
const BEHIND_MAX: u64 = 60;
