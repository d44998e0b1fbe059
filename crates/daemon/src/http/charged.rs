//! Answers that are charged for the memory that they take.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use dashpot_api::{Bucket, HoldLatency, LatencyHistogram, OpLatency, Rule, RuleLatency};

use super::statistics::StatisticSource;
use crate::answers::AnswerBuilder;
use crate::{Daemon, Refusal};

pub(super) struct JsonAnswer(pub(super) Bytes);

impl IntoResponse for JsonAnswer {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

/// Data for an answer, which is charged for the memory that the data takes.
pub(super) trait HeapSize {
    /// Roughly how much memory the data takes.
    fn bytes(&self) -> usize;
}

impl HeapSize for Rule {
    fn bytes(&self) -> usize {
        let words = [&self.name, &self.pool, &self.fields.client];
        let words = words.into_iter().flatten().chain([&self.rule]);
        size_of::<Rule>() + words.map(String::len).sum::<usize>()
    }
}

impl HeapSize for LatencyHistogram {
    fn bytes(&self) -> usize {
        size_of::<LatencyHistogram>() + self.buckets.len() * size_of::<Bucket>()
    }
}

impl HeapSize for HoldLatency {
    fn bytes(&self) -> usize {
        let latencies = [
            &self.requested,
            &self.achieved,
            &self.lateness,
            &self.stopped,
        ];
        latencies.map(HeapSize::bytes).iter().sum()
    }
}

impl HeapSize for RuleLatency {
    fn bytes(&self) -> usize {
        let holds = std::iter::once(&self.holds).chain(&self.since_update);
        self.rule.bytes() + holds.map(HeapSize::bytes).sum::<usize>()
    }
}

impl HeapSize for OpLatency {
    fn bytes(&self) -> usize {
        let latencies = [&self.total, &self.disk, &self.lateness].into_iter();
        let latencies = latencies.chain(&self.store).map(HeapSize::bytes);
        size_of::<OpLatency>() + latencies.sum::<usize>()
    }
}

/// Waits until it is the caller's turn for an answer.
impl FromRequestParts<Arc<Daemon>> for AnswerBuilder {
    type Rejection = Refusal;

    async fn from_request_parts(
        _: &mut Parts,
        daemon: &Arc<Daemon>,
    ) -> Result<AnswerBuilder, Refusal> {
        daemon.answers().begin().await
    }
}

impl FromRequestParts<Arc<dyn StatisticSource>> for AnswerBuilder {
    type Rejection = Refusal;

    async fn from_request_parts(
        _: &mut Parts,
        asked: &Arc<dyn StatisticSource>,
    ) -> Result<AnswerBuilder, Refusal> {
        asked.answers().begin().await
    }
}
