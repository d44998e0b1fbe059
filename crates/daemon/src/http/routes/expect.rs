//! The expected effect of rules on the recent I/Os of a disk.

use std::sync::Arc;

use axum::extract::State;
use dashpot_api::{Buckets, Distribution, Error, Expectation, Inject};
use dashpot_engine::inject::RuleSpec;
use dashpot_observe::Layer;
use dashpot_rules::{call_names, parse_injection};

use crate::answers::AnswerBuilder;
use crate::http::charged::JsonAnswer;
use crate::http::error::{Body, Name};
use crate::http::memory::Wanted;
use crate::http::statistics::{CopiedIos, SECOND_NS, expect, panicked};
use crate::{Daemon, Refusal, RefusalKind};

/// Computes the expected effect of rules without arming them. For this, the engine runs the I/Os of the
/// disk's last 30 seconds again, under these rules and those that are armed. Each I/O arrives at its original
/// time, even if the rules delay the I/Os ahead of it.
#[utoipa::path(post, path = "/v1/disks/{disk}/expect", operation_id = "expect_rules", tag = "rules",
    params(("disk" = String, Path)),
    request_body = Inject,
    responses(
        (status = 200, body = Expectation, description = "Measured and expected latencies."),
        (status = 400, body = Error),
        (status = 404, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn rules(
    State(daemon): State<Arc<Daemon>>,
    Name(disk): Name,
    mut making: AnswerBuilder,
    Body(request): Body<Inject>,
) -> Result<JsonAnswer, Refusal> {
    let mut groups = armed(&daemon, daemon.disk(&disk)?).await?;
    let device = daemon.device(&disk)?;
    groups.push(specs(&request.rule)?);
    let to = daemon.now().as_nanos() / SECOND_NS;
    daemon.collect_to(to).await;
    let wanted = Wanted {
        names_devices: true,
        layer: Layer::Disk,
        seconds: to.saturating_sub(SECONDS)..to,
    };
    let mut ios = CopiedIos::copy(&daemon, &wanted, Some(device), &mut making).await?;
    let expected = tokio::task::spawn_blocking(move || {
        ios.sort_by_arrival();
        expect(|look| ios.each(look), groups)
    });
    let expected = expected.await.map_err(panicked)?;
    let mut measured = Distribution::of(&expected.measured);
    let mut latencies = Distribution::of(&expected.latencies);
    making
        .json(&Expectation {
            seconds: expected.seconds,
            buckets: Buckets::of(vec![&mut measured, &mut latencies]),
            measured,
            expected: latencies,
            waiting: expected.waiting,
        })
        .map(JsonAnswer)
}

/// The armed rules of a disk, by group.
async fn armed(daemon: &Daemon, disk: usize) -> Result<Vec<Vec<RuleSpec>>, Refusal> {
    let records = daemon.records().await;
    let own: Vec<_> = records
        .iter()
        .filter(|record| record.disk == disk && !record.is_gone)
        .collect();
    let groups = own.chunk_by(|one, next| one.group == next.group);
    let specs_of = |records: &[&crate::Record]| {
        let each = records.iter().map(|record| specs(&record.words));
        let all: Result<Vec<Vec<RuleSpec>>, Refusal> = each.collect();
        all.map(|all| all.concat())
    };
    groups.map(specs_of).collect()
}

fn specs(words: &str) -> Result<Vec<RuleSpec>, Refusal> {
    let rules = parse_injection(words)?.rules;
    let specs: Vec<RuleSpec> = rules.into_iter().map(|rule| rule.spec).collect();
    let calls = specs.iter().flat_map(|spec| call_names(spec.ops)).next();
    match calls {
        None => Ok(specs),
        Some(call) => {
            let error =
                format!("-T {call}: the I/Os are replayed by their types, and not by their calls");
            Err(Refusal::new(RefusalKind::Unprocessable, error).remedy("name a type, such as sync"))
        }
    }
}

/// The engine runs the I/Os of this many seconds again.
const SECONDS: u64 = 30;
