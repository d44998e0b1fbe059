//! `zinject`: shows and changes rules in the way of OpenZFS's zinject.

use std::process::ExitCode;

use clap::Command;
use dashpot_api::{Client, ClientError, Inject, Rule, StatusCode};
use dashpot_cli::{ZinjectArgs, zinject_help, zinject_usage};
use dashpot_export::{complain, complain_lines};
use dashpot_output::{print, print_json};
use dashpot_rules::parse_injection;
use dashpot_rules::zinject::{Add, Cancel, Handler, Refusal, Request, added, list, parse, removed};

/// The word for the pool of a rule that zinject did not arm.
const NO_POOL: &str = "-";

/// Does what zinject's words ask. `client` finds the daemon; help needs none. `program` is
/// the definition of the whole command line.
pub fn zinject(
    client: impl Fn() -> anyhow::Result<Client>,
    program: impl Fn() -> Command,
    args: &ZinjectArgs,
) -> anyhow::Result<ExitCode> {
    let done = match parse(&args.words) {
        Ok(Request::Help) => print(&zinject_help(program())).map(Ok)?,
        Ok(Request::List) => show(&client()?, args).map(Ok)?,
        Ok(Request::Cancel(cancel)) => remove(&client()?, cancel)?,
        Ok(Request::Add(request)) => add(&client()?, &request, args)?,
        Err(refusal) => Err(refusal),
    };
    Ok(done.map_or_else(
        |refusal| refuse(&refusal, program()),
        |()| ExitCode::SUCCESS,
    ))
}

fn refuse(refusal: &Refusal, program: Command) -> ExitCode {
    complain(format_args!("zinject: {}", refusal.message));
    if refusal.usage {
        complain_lines(&format!("\n{}", zinject_usage(program)));
    }
    ExitCode::from(refusal.code)
}

fn show(client: &Client, args: &ZinjectArgs) -> anyhow::Result<()> {
    let handlers = handlers(&client.rules()?);
    if args.json {
        return print_json(&handlers);
    }
    print(&list(&handlers, args.compat))
}

/// The rules as handlers. Rules that zinject cannot express are left out.
fn handlers(rules: &[Rule]) -> Vec<Handler> {
    rules.iter().filter_map(handler).collect()
}

fn handler(rule: &Rule) -> Option<Handler> {
    let typed = parse_injection(&rule.rule).ok()?.replacement().ok()?;
    let pool = rule.pool.as_deref().unwrap_or(NO_POOL);
    let handler = Handler::of(rule.id, pool, &rule.disk, &typed.spec)?;
    Some(Handler {
        matched: rule.counters.matched,
        // zinject counts each I/O that it gave a delay, even if the disk itself took longer than the delay.
        injected: rule.counters.taken,
        ..handler
    })
}

fn add(client: &Client, add: &Add, args: &ZinjectArgs) -> anyhow::Result<Result<(), Refusal>> {
    let disks = client.disk_names()?;
    let names = disks.iter().map(String::as_str);
    let Some(disk) = add.device.resolve(names) else {
        return Ok(Err(Refusal::unknown_device(&add.device, &add.pool)));
    };
    let request = Inject {
        rule: add.rule.words.clone(),
        name: None,
        pool: Some(add.pool.clone()),
    };
    let rules = match client.inject(disk, &request) {
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

/// Removes handlers that [`show`] lists. zinject must not remove rules that it cannot express.
fn remove(client: &Client, cancel: Cancel) -> anyhow::Result<Result<(), Refusal>> {
    let rules = client.rules()?;
    let handlers = handlers(&rules);
    let is_meant = |handler: &&Handler| match cancel {
        Cancel::All => true,
        Cancel::One(id) => handler.id == id,
    };
    let meant: Vec<u32> = handlers.iter().filter(is_meant).map(|h| h.id).collect();
    if let (Cancel::One(id), true) = (cancel, meant.is_empty()) {
        let is_rule = rules.iter().any(|rule| rule.id == id);
        return Ok(Err(Refusal::unknown_handler(id, is_rule)));
    }
    for id in meant {
        remove_one(client, id)?;
    }
    print(&removed(cancel))?;
    Ok(Ok(()))
}

/// Removes one handler. It is no error if another caller has already removed it.
fn remove_one(client: &Client, id: u32) -> Result<(), ClientError> {
    match client.clear(&id.to_string(), false) {
        Err(ClientError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => Ok(()),
        answer => answer.map(|_| ()),
    }
}
