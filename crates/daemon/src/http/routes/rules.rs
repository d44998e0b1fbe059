//! Arms, replaces, lists and clears rules.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use dashpot_api::{Cleared, Error, Failure, Inject, Renew, Rule, RuleLatency, RulesReset, Update};
use dashpot_engine::{Duration, Release};
use dashpot_export::DiskSnapshot;
use dashpot_rules::{Injection, parse_injection, parse_name};
use serde::Deserialize;
use utoipa::IntoParams;

use super::to_the_end;
use crate::answers::AnswerBuilder;
use crate::http::access::Remote;
use crate::http::charged::{HeapSize, JsonAnswer};
use crate::http::error::{Body, Name, Options};
use crate::http::lease::Lease;
use crate::scenario;
use crate::wire::{rule, rule_latency};
use crate::{Daemon, Gone, Record, Refusal, RefusalKind, Scope};

/// The rules to clear, and whether to release the zios that they hold.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clearing {
    /// Only rules of the disk with this name.
    disk: Option<String>,
    /// Whether all zios held by these rules complete at once, instead of when they are due. Without it, a zio
    /// that a rule without an end hangs goes on hanging.
    #[serde(default)]
    release: bool,
    /// Whether at least the zios that these rules hang complete at once, as at the end of a lease.
    #[serde(default)]
    release_hung: bool,
}

impl Clearing {
    fn release(&self) -> Release {
        match (self.release, self.release_hung) {
            (true, _) => Release::All,
            (false, true) => Release::Hung,
            (false, false) => Release::Nothing,
        }
    }
}

/// The rules to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
    /// Whether to list the cleared rules, too, also those from before a reset. The daemon remembers those that
    /// were cleared last, and `memory.rules_forgotten` of the status counts the others.
    #[serde(default)]
    cleared: bool,
}

/// All armed rules, except those of disks whose shard has failed.
#[utoipa::path(get, path = "/v1/rules", operation_id = "list_rules", tag = "rules",
    params(Listing),
    responses(
        (status = 200, body = Vec<Rule>, description = "The rules, by id."),
    ))]
pub(crate) async fn list(
    State(daemon): State<Arc<Daemon>>,
    Options(listing): Options<Listing>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let records = daemon.records().await;
    let mut rules = if listing.cleared {
        of_gone(&daemon, &daemon.all_gone().await, rule, &mut making)?
    } else {
        Vec::new()
    };
    for (index, _) in daemon.disks() {
        // A shard that has failed has lost its rules; `/v1/disks` reports the failure.
        match of_one(&daemon, index, &records, rule, &mut making).await {
            Err(refusal) if refusal.kind != RefusalKind::Failed => return Err(refusal),
            of_disk => rules.extend(of_disk.unwrap_or_default()),
        }
    }
    rules.sort_unstable_by_key(|rule| rule.id);
    making.json(&rules).map(JsonAnswer)
}

/// The rules of a disk.
#[utoipa::path(get, path = "/v1/disks/{disk}/rules", operation_id = "list_disk_rules", tag = "rules",
    params(("disk" = String, Path)),
    responses(
        (status = 200, body = Vec<Rule>, description = "The rules of the disk, by id."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn of_disk(
    State(daemon): State<Arc<Daemon>>,
    Name(disk): Name,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let index = daemon.disk(&disk)?;
    let records = daemon.records().await;
    let rules = of_one(&daemon, index, &records, rule, &mut making).await?;
    making.json(&rules).map(JsonAnswer)
}

/// The rules with an id or a name. If no such rule is armed, the answer has the rules with this id or name
/// that were cleared last, unless a reset came later.
#[utoipa::path(get, path = "/v1/rules/{rule}", operation_id = "get_rule", tag = "rules",
    params(("rule" = String, Path)),
    responses(
        (status = 200, body = Vec<Rule>, description = "The rules with this id or name."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn show(
    State(daemon): State<Arc<Daemon>>,
    Name(key): Name,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let mut rules = armed_or_gone(&daemon, &key, rule, &mut making).await?;
    rules.sort_unstable_by_key(|rule| rule.id);
    making.json(&rules).map(JsonAnswer)
}

/// For the rules with an id or a name, the latencies that they asked for and those that they achieved, as
/// histograms. If no such rule is armed, the answer has the rules with this id or name that were cleared
/// last, unless a reset came later.
#[utoipa::path(get, path = "/v1/rules/{rule}/latency", operation_id = "get_rule_latency", tag = "rules",
    params(("rule" = String, Path)),
    responses(
        (status = 200, body = Vec<RuleLatency>,
            description = "The rules with this id or name, with their histograms."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn latency(
    State(daemon): State<Arc<Daemon>>,
    Name(key): Name,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    let mut rules = armed_or_gone(&daemon, &key, rule_latency, &mut making).await?;
    rules.sort_unstable_by_key(|latency| latency.rule.id);
    making.json(&rules).map(JsonAnswer)
}

/// Arms rules on a disk: all of them, or none. The answer shows the rules as the daemon parsed them. Over TCP
/// rules without `--lease` get a lease of 15 minutes, because a caller elsewhere may never come back.
#[utoipa::path(post, path = "/v1/disks/{disk}/rules", operation_id = "inject", tag = "rules",
    params(("disk" = String, Path)),
    request_body = Inject,
    responses(
        (status = 201, body = Vec<Rule>,
            description = "The rules, as the daemon parsed them."),
        (status = 400, body = Error),
        (status = 404, body = Error),
        (status = 409, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn inject(
    State(daemon): State<Arc<Daemon>>,
    Name(disk): Name,
    remote: Option<Extension<Remote>>,
    mut making: AnswerBuilder,
    Body(request): Body<Inject>,
) -> Result<(StatusCode, JsonAnswer), Refusal> {
    let pool = request.pool.clone();
    let mut injection = injection(request)?;
    if remote.is_some() {
        injection.lease.get_or_insert(DEFAULT_LEASE);
    }
    making.reserve(CHANGE_MAX)?;
    let rules = to_the_end(async move {
        let records = daemon.inject(&disk, injection, pool.as_deref()).await?;
        let rules = views(&daemon, &records, &mut making).await?;
        making.json(&rules)
    });
    Ok((StatusCode::CREATED, JsonAnswer(rules.await?)))
}

/// Arms rules on a disk, all of them or none, until the connection ends. The first line of the answer
/// has the rules as the daemon parsed them; then the answer stays open. The daemon clears the rules
/// when the client hangs up, and completes the zios that they hang.
#[utoipa::path(post, path = "/v1/disks/{disk}/leases", operation_id = "lease_rules", tag = "rules",
    params(("disk" = String, Path)),
    request_body = Inject,
    responses(
        (status = 201, body = Vec<Rule>, content_type = "application/x-ndjson",
            description = "The rules, as the daemon parsed them, in one line."),
        (status = 400, body = Error),
        (status = 404, body = Error),
        (status = 409, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn lease(
    State(daemon): State<Arc<Daemon>>,
    Name(disk): Name,
    mut making: AnswerBuilder,
    Body(request): Body<Inject>,
) -> Result<Response, Refusal> {
    let pool = request.pool.clone();
    let injection = injection(request)?.unleased()?;
    making.reserve(CHANGE_MAX)?;
    // The lease is made right after the rules, so that dropping it clears the rules if the client hangs up
    // before the answer.
    let armed = to_the_end(async move {
        let records = daemon.inject(&disk, injection, pool.as_deref()).await?;
        let ids = records.iter().map(|record| record.id).collect();
        let lease = Lease::new(Arc::clone(&daemon), ids);
        let rules = views(&daemon, &records, &mut making).await?;
        Ok((lease, making.json(&rules)?))
    });
    let (lease, line) = armed.await?;
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    let body = axum::body::Body::new(lease.body(line));
    Ok((StatusCode::CREATED, kind, body).into_response())
}

/// Replaces the words of a rule. The rule's counters continue, and `since_update` begins at zero.
#[utoipa::path(patch, path = "/v1/rules/{rule}", operation_id = "update_rule", tag = "rules",
    params(("rule" = String, Path)),
    request_body = Update,
    responses(
        (status = 200, body = Vec<Rule>, description = "The rule as it is now."),
        (status = 404, body = Error),
        (status = 409, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn update(
    State(daemon): State<Arc<Daemon>>,
    Name(key): Name,
    mut making: AnswerBuilder,
    Body(request): Body<Update>,
) -> Result<JsonAnswer, Refusal> {
    let rule = parse_injection(&request.rule)?.replacement()?;
    making.reserve(CHANGE_MAX)?;
    let rules = to_the_end(async move {
        let record = daemon.update(&key, rule).await?;
        let rules = views(&daemon, &[record], &mut making).await?;
        making.json(&rules)
    });
    rules.await.map(JsonAnswer)
}

/// Renews the leases of the rules with an id or a name, from now on. A rule without a lease gets one if the
/// request says how long it lasts.
#[utoipa::path(post, path = "/v1/rules/{rule}/renew", operation_id = "renew_rule", tag = "rules",
    params(("rule" = String, Path)),
    request_body = Renew,
    responses(
        (status = 200, body = Vec<Rule>, description = "The rules, with their new leases."),
        (status = 404, body = Error),
        (status = 409, body = Error),
        (status = 422, body = Error),
    ))]
pub(crate) async fn renew(
    State(daemon): State<Arc<Daemon>>,
    Name(key): Name,
    mut making: AnswerBuilder,
    Body(request): Body<Renew>,
) -> Result<JsonAnswer, Refusal> {
    if request.lease_ns == Some(0) {
        let error = "lease_ns is 0: the lease would lapse at once";
        return Err(Refusal::new(RefusalKind::Unprocessable, error)
            .remedy("give a time, or clear the rule"));
    }
    making.reserve(CHANGE_MAX)?;
    let lease = request.lease_ns.map(Duration::from_nanos);
    let records = daemon.renew(&key, lease).await?;
    let rules = views(&daemon, &records, &mut making).await?;
    making.json(&rules).map(JsonAnswer)
}

/// Removes the rules with an id or a name.
#[utoipa::path(delete, path = "/v1/rules/{rule}", operation_id = "clear_rule", tag = "rules",
    params(("rule" = String, Path), Clearing),
    responses(
        (status = 200, body = Cleared, description = "The rules are gone."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn clear(
    State(daemon): State<Arc<Daemon>>,
    Name(key): Name,
    Options(clearing): Options<Clearing>,
) -> Result<Json<Cleared>, Refusal> {
    cleared(daemon, Scope::Rule(key), clearing.release()).await
}

/// Removes all rules, or those of a disk.
#[utoipa::path(delete, path = "/v1/rules", operation_id = "clear_rules", tag = "rules",
    params(Clearing),
    responses(
        (status = 200, body = Cleared, description = "The rules are gone."),
        (status = 404, body = Error),
    ))]
pub(crate) async fn clear_many(
    State(daemon): State<Arc<Daemon>>,
    Options(clearing): Options<Clearing>,
) -> Result<Json<Cleared>, Refusal> {
    let release = clearing.release();
    let scope = clearing.disk.map_or(Scope::All, Scope::Disk);
    cleared(daemon, scope, release).await
}

/// Restores the state in which the lab starts: stops every scenario, releases and clears every rule, resumes every disk, and arms
/// the lab's rules.
#[utoipa::path(post, path = "/v1/reset", operation_id = "reset", tag = "rules",
    responses(
        (status = 200, body = RulesReset, description = "Rules and disks are as in the lab."),
    ))]
pub(crate) async fn reset(
    State(daemon): State<Arc<Daemon>>,
    mut making: AnswerBuilder,
) -> Result<JsonAnswer, Refusal> {
    making.reserve(RESET_MAX)?;
    let reset = to_the_end(async move {
        scenario::stop_all(&daemon).await;
        let reset = daemon.reset().await;
        let mut records = daemon.records().await;
        records.retain(|record| reset.armed.contains(&record.id));
        let Cleared {
            cleared, failed, ..
        } = told(&daemon, reset.cleared);
        let armed = views(&daemon, &records, &mut making).await?;
        making.json(&RulesReset {
            cleared,
            armed,
            failed,
        })
    });
    reset.await.map(JsonAnswer)
}

async fn cleared(
    daemon: Arc<Daemon>,
    scope: Scope,
    release: Release,
) -> Result<Json<Cleared>, Refusal> {
    let cleared = to_the_end(async move {
        let cleared = daemon.clear(&scope, release).await?;
        Ok(told(&daemon, cleared))
    });
    cleared.await.map(Json)
}

fn told(daemon: &Daemon, cleared: crate::Cleared) -> Cleared {
    let failure = |(disk, refusal): (usize, Refusal)| Failure {
        disk: daemon.info(disk).name.clone(),
        error: refusal.to_string(),
    };
    Cleared {
        cleared: cleared.rules.iter().map(|id| id.0).collect(),
        held: cleared.left.held,
        hung: cleared.left.hung,
        failed: cleared.failed.into_iter().map(failure).collect(),
    }
}

fn injection(request: Inject) -> Result<Injection, Refusal> {
    request.pool.as_deref().map_or(Ok(()), check_pool)?;
    let mut injection = parse_injection(&request.rule)?;
    if let Some(name) = request.name {
        injection.name = Some(parse_name(&name)?);
    }
    Ok(injection)
}

/// Checks the name of a pool. Any word is allowed, because the daemon only prints it.
fn check_pool(pool: &str) -> Result<(), Refusal> {
    if pool.len() <= POOL_MAX && !pool.contains(char::is_control) {
        return Ok(());
    }
    let error =
        format!("the name of the pool has control characters, or more than {POOL_MAX} bytes");
    Err(Refusal::new(RefusalKind::Unprocessable, error).remedy("give it a shorter word"))
}

/// The longest name that ZFS gives a pool.
const POOL_MAX: usize = 255;

/// The present state of the rules with these records, by id. Rules that were cleared in the meantime are left
/// out.
async fn views(
    daemon: &Daemon,
    records: &[Record],
    making: &mut AnswerBuilder,
) -> Result<Vec<Rule>, Refusal> {
    let mut rules = of_all(daemon, records, rule, making).await?;
    rules.sort_unstable_by_key(|rule| rule.id);
    Ok(rules)
}

/// Reads a recorded rule from a snapshot of the disk with this name. Returns `None` if the snapshot does not
/// have the rule.
type View<T> = fn(&Record, &str, &DiskSnapshot) -> Option<T>;

/// The rules with an id or a name, in their present state or in their state when they were cleared.
async fn armed_or_gone<T: HeapSize>(
    daemon: &Daemon,
    key: &str,
    view: View<T>,
    making: &mut AnswerBuilder,
) -> Result<Vec<T>, Refusal> {
    let refusal = match daemon.find(key).await {
        Ok(records) => return of_all(daemon, &records, view, making).await,
        Err(refusal) => refusal,
    };
    let gone = daemon.find_gone(key).await;
    if gone.is_empty() {
        return Err(refusal);
    }
    of_gone(daemon, &gone, view, making)
}

/// The cleared rules, as they were when they were cleared.
fn of_gone<T: HeapSize>(
    daemon: &Daemon,
    gone: &[Gone],
    view: View<T>,
    making: &mut AnswerBuilder,
) -> Result<Vec<T>, Refusal> {
    let seen =
        |Gone { record, snapshot }: &Gone| view(record, &daemon.info(record.disk).name, snapshot);
    charged(gone.iter().filter_map(seen), making)
}

/// The rules with these records in their present state, disk by disk.
async fn of_all<T: HeapSize>(
    daemon: &Daemon,
    records: &[Record],
    view: View<T>,
    making: &mut AnswerBuilder,
) -> Result<Vec<T>, Refusal> {
    let mut rules = Vec::new();
    for (index, _) in daemon.disks() {
        rules.extend(of_one(daemon, index, records, view, making).await?);
    }
    Ok(rules)
}

/// The rules of those records that belong to one disk, in their present state.
async fn of_one<T: HeapSize>(
    daemon: &Daemon,
    index: usize,
    records: &[Record],
    view: View<T>,
    making: &mut AnswerBuilder,
) -> Result<Vec<T>, Refusal> {
    let of_disk = records.iter().filter(|record| record.disk == index);
    let of_disk: Vec<&Record> = of_disk.collect();
    if of_disk.is_empty() {
        return Ok(Vec::new());
    }
    let snapshot = daemon.snapshot(index, 0).await?;
    let name = &daemon.info(index).name;
    let rules = of_disk.iter();
    charged(
        rules.filter_map(|record| view(record, name, &snapshot)),
        making,
    )
}

/// Rules, each charged to the answer that will contain it.
fn charged<T: HeapSize>(
    rules: impl Iterator<Item = T>,
    making: &mut AnswerBuilder,
) -> Result<Vec<T>, Refusal> {
    let charge = |rule: T| making.charge(rule.bytes()).map(|()| rule);
    rules.map(charge).collect()
}

/// The lease of a rule that is armed over TCP, unless its words give it another.
const DEFAULT_LEASE: Duration = Duration::from_secs(15 * 60);
/// More bytes than an answer with 1,024 rules takes.
const CHANGE_MAX: usize = 4 << 20;
/// More bytes than an answer with 4,096 rules takes.
const RESET_MAX: usize = 16 << 20;
