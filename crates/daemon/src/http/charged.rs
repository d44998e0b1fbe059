//! Answers that are charged for the memory that they take.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use dashpot_api::{Bucket, HoldLatency, LatencyHistogram, OpLatency, Rule, RuleLatency};

use super::statistics::Asked;
use crate::answers::Making;
use crate::{Daemon, Refusal};

/// An answer of JSON.
pub(super) struct JsonAnswer(pub(super) Bytes);

impl IntoResponse for JsonAnswer {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

/// Data for an answer, which is charged for the memory that the data takes.
pub(super) trait Weighed {
    /// Roughly how much memory the data takes.
    fn bytes(&self) -> usize;
}

impl Weighed for Rule {
    fn bytes(&self) -> usize {
        let words = [&self.name, &self.pool, &self.fields.client];
        let words = words.into_iter().flatten().chain([&self.rule]);
        size_of::<Rule>() + words.map(String::len).sum::<usize>()
    }
}

impl Weighed for LatencyHistogram {
    fn bytes(&self) -> usize {
        size_of::<LatencyHistogram>() + self.buckets.len() * size_of::<Bucket>()
    }
}

impl Weighed for HoldLatency {
    fn bytes(&self) -> usize {
        let latencies = [
            &self.requested,
            &self.achieved,
            &self.lateness,
            &self.stopped,
        ];
        latencies.map(Weighed::bytes).iter().sum()
    }
}

impl Weighed for RuleLatency {
    fn bytes(&self) -> usize {
        let holds = std::iter::once(&self.holds).chain(&self.since_update);
        self.rule.bytes() + holds.map(Weighed::bytes).sum::<usize>()
    }
}

impl Weighed for OpLatency {
    fn bytes(&self) -> usize {
        let latencies = [&self.total, &self.disk, &self.lateness].into_iter();
        let latencies = latencies.chain(&self.store).map(Weighed::bytes);
        size_of::<OpLatency>() + latencies.sum::<usize>()
    }
}

/// Waits until it is the caller's turn for an answer.
impl FromRequestParts<Arc<Daemon>> for Making {
    type Rejection = Refusal;

    async fn from_request_parts(_: &mut Parts, daemon: &Arc<Daemon>) -> Result<Making, Refusal> {
        daemon.answers().begin().await
    }
}

impl FromRequestParts<Arc<dyn Asked>> for Making {
    type Rejection = Refusal;

    async fn from_request_parts(_: &mut Parts, asked: &Arc<dyn Asked>) -> Result<Making, Refusal> {
        asked.answers().begin().await
    }
}
