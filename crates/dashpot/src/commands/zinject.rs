//! `zinject`: the same rules in zinject's words.

use std::process::ExitCode;

use axum::http::{Method, StatusCode};

use super::failed::check;
use super::output::{print, print_json};
use crate::api::types::{Cleared, Disk, Inject, Rule};
use crate::cli::ZinjectArgs;
use crate::client::{Client, ClientError, segment};
use crate::spec::parse_injection;
use crate::zinject::{Add, Cancel, Handler, Refusal, Request, added, help, list, parse, removed};

/// Of a rule that was not armed by zinject.
const NO_POOL: &str = "-";

pub(crate) fn zinject(
    client: impl Fn() -> anyhow::Result<Client>,
    args: &ZinjectArgs,
) -> anyhow::Result<ExitCode> {
    let done = match parse(&args.words) {
        Ok(Request::Help) => print(&help()).map(Ok)?,
        Ok(Request::List) => show(&client()?, args).map(Ok)?,
        Ok(Request::Cancel(cancel)) => remove(&client()?, cancel)?,
        Ok(Request::Add(request)) => add(&client()?, &request, args)?,
        Err(refusal) => Err(refusal),
    };
    Ok(done.map_or_else(|refusal| refuse(&refusal), |()| ExitCode::SUCCESS))
}

fn refuse(refusal: &Refusal) -> ExitCode {
    eprintln!("zinject: {}", refusal.message);
    if refusal.usage {
        eprint!("{}", help());
    }
    ExitCode::from(refusal.code)
}

fn show(client: &Client, args: &ZinjectArgs) -> anyhow::Result<()> {
    let rules: Vec<Rule> = client.get("/v1/rules")?;
    let handlers: Vec<Handler> = rules.iter().filter_map(handler).collect();
    if args.json {
        return print_json(&handlers);
    }
    print(&list(&handlers, args.compat))
}

/// Rules that zinject has no words for are left out.
fn handler(rule: &Rule) -> Option<Handler> {
    let typed = parse_injection(&rule.rule).ok()?.replacement().ok()?;
    let pool = rule.pool.as_deref().unwrap_or(NO_POOL);
    let handler = Handler::of(rule.id, pool, &rule.disk, &typed.spec)?;
    Some(Handler {
        matched: rule.counters.matched,
        // zinject counts what it took, whether or not that was slower than its device.
        injected: rule.counters.taken,
        ..handler
    })
}

fn add(client: &Client, add: &Add, args: &ZinjectArgs) -> anyhow::Result<Result<(), Refusal>> {
    let disks: Vec<Disk> = client.get("/v1/disks?oldest=0")?;
    let names = disks.iter().map(|disk| disk.name.as_str());
    let Some(disk) = add.device.resolve(names) else {
        return Ok(Err(Refusal::unknown_device(add)));
    };
    let request = Inject {
        rule: add.rule.words.clone(),
        name: None,
        pool: Some(add.pool.clone()),
    };
    let path = format!("/v1/disks/{}/rules", segment(disk));
    let rules: Vec<Rule> = match client.post(&path, &request) {
        Err(ClientError::Refused { error, .. }) => {
            let message = format!("failed to add handler: {}", error.error);
            return Ok(Err(Refusal::failure(message)));
        }
        answer => answer?,
    };
    for rule in rules {
        print(&added(rule.id, disk, add, args.compat))?;
    }
    Ok(Ok(()))
}

fn remove(client: &Client, cancel: Cancel) -> anyhow::Result<Result<(), Refusal>> {
    let path = match cancel {
        Cancel::All => "/v1/rules".to_owned(),
        Cancel::One(id) => format!("/v1/rules/{id}"),
    };
    let answer: Result<Cleared, ClientError> = client.send(Method::DELETE, &path, &());
    match (answer, cancel) {
        (Err(ClientError::Refused { status, .. }), Cancel::One(id))
            if status == StatusCode::NOT_FOUND =>
        {
            Ok(Err(Refusal::unknown_handler(id)))
        }
        (answer, _) => {
            check(&answer?.failed)?;
            print(&removed(cancel))?;
            Ok(Ok(()))
        }
    }
}
