//! `inject`: arms a rule, for good or while a command runs.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{bail, ensure};
use dashpot_api::{Client, ClientError, Inject, Rule, STARTED_AGAIN, StatusCode};
use dashpot_cli::InjectArgs;
use dashpot_export::{complain, complain_lines};
use dashpot_output::{print, print_json, usage};
use dashpot_rules::{Injection, ParseError, TypedRule};
use dashpot_text::proof::Tolerance;
use dashpot_text::rule::understood;
use dashpot_text::table::{WIDTH, wrapped};

use crate::child::run_child;
use crate::proof::proofs;

/// Arms rules, and runs the command if there is one. The exit code is then the command's.
pub fn inject(client: &Client, args: &InjectArgs) -> anyhow::Result<ExitCode> {
    if args.command.is_empty() && ends_at_a_command(std::env::args_os()) {
        usage(&ParseError::new(
            "there is no command after '--': name one, or leave '--' out to arm the rule for good",
        ));
    }
    let request = request(&args.rule.injection().unwrap_or_else(|error| usage(&error)));
    let disks = disks(client, &args.disk)?;
    check_name(&disks, request.name.as_deref())?;
    if !args.command.is_empty() {
        return while_it_runs(client, &disks, &request, args);
    }
    let rules = arm(client, &disks, &request)?;
    if args.json {
        print_json(&rules)?;
    } else {
        print(&rules.iter().map(understood).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Arms rules while the command runs, and then reports what they have injected.
fn while_it_runs(
    client: &Client,
    disks: &[String],
    request: &Inject,
    args: &InjectArgs,
) -> anyhow::Result<ExitCode> {
    let started_ns = client.clock()?.started_ns;
    // If this process is killed, the connections of the leases end, and so do the rules.
    let (mut rules, mut leases) = (Vec::new(), Vec::new());
    for disk in disks {
        let (armed, lease) = client.inject_leased(disk, request)?;
        rules.extend(armed);
        leases.push(lease);
    }
    if args.json {
        print_json(&rules)?;
    }
    let ended = client.block_on(run_child(&args.command));
    match same_daemon(client, started_ns) {
        Ok(()) => {
            rules.iter().for_each(|rule| disarm(client, rule.id));
            tell(client, &rules);
        }
        Err(error) => complain_of_unknown(&error),
    }
    Ok(ended?.into())
}

/// Fails if the daemon was restarted, because the ids then belong to other rules.
fn same_daemon(client: &Client, started_ns: u64) -> anyhow::Result<()> {
    ensure!(client.clock()?.started_ns == started_ns, STARTED_AGAIN);
    Ok(())
}

/// The disks that `word` names.
fn disks(client: &Client, word: &str) -> anyhow::Result<Vec<String>> {
    if word != ALL {
        return Ok(vec![word.to_owned()]);
    }
    Ok(client.disk_names()?)
}

/// Refuses a name for the rules of several disks, because a name means one rule.
fn check_name(disks: &[String], name: Option<&str>) -> anyhow::Result<()> {
    match name {
        Some(name) if disks.len() > 1 => bail!(
            "--name {name}: a name is for one rule, and '{ALL}' makes {} here: leave --name out and use the \
             ids of the rules, or arm each disk with a name of its own",
            disks.len()
        ),
        _ => Ok(()),
    }
}

/// The word for all disks. No disk has this name.
const ALL: &str = "all";

/// Arms a rule on each of these disks, or on none.
fn arm(client: &Client, disks: &[String], request: &Inject) -> anyhow::Result<Vec<Rule>> {
    let mut armed = Vec::new();
    for disk in disks {
        match client.inject(disk, request) {
            Ok(rules) => armed.extend(rules),
            Err(error) => {
                armed.iter().for_each(|rule: &Rule| disarm(client, rule.id));
                return Err(match disks {
                    [_] => error.into(),
                    _ => anyhow::Error::new(error)
                        .context(format!("not armed on disk {disk}, so on no disk")),
                });
            }
        }
    }
    Ok(armed)
}

/// Prints on stderr what rules have injected. A failure here does not change the exit status.
fn tell(client: &Client, rules: &[Rule]) {
    match proofs(client, rules, Tolerance::default()) {
        Ok(proofs) => proofs.iter().for_each(|proof| {
            let summary = format!("dashpot: {}", proof.summary());
            complain_lines(&wrapped(&summary, WIDTH));
        }),
        Err(error) => complain_of_unknown(&error),
    }
}

fn complain_of_unknown(error: &anyhow::Error) {
    complain(format_args!(
        "dashpot: cannot tell what the rules injected: {error:#}"
    ));
}

/// Whether the arguments end where a command should begin. The parser of the command line cannot distinguish
/// an empty command, such as `-- $CMD` with an unset `CMD`, from no command.
fn ends_at_a_command(words: impl Iterator<Item = OsString>) -> bool {
    words.last().is_some_and(|word| word == "--")
}

/// Ends a rule whose command has ended. A missing rule or daemon is only reported, because the
/// exit status must be the command's.
fn disarm(client: &Client, id: u32) {
    match client.end(id) {
        Ok(_) => {}
        Err(ClientError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => {
            complain(format_args!(
                "dashpot: rule {id} was cleared before the command ended"
            ));
        }
        Err(error) => complain(format_args!(
            "dashpot: rule {id} may still be armed: {error}"
        )),
    }
}

/// The request that arms the rules of one command line. These rules differ only in their first option and its
/// value, so the request has the other options only once.
fn request(injection: &Injection) -> Inject {
    let words: Vec<String> = injection.rules.iter().map(TypedRule::asked).collect();
    let (all_of_first, others) = match words.split_first() {
        Some((first, others)) => (first.as_str(), others),
        None => ("", &[][..]),
    };
    let delays = others.iter().map(|words| {
        let delay: Vec<&str> = words.splitn(3, ' ').take(2).collect();
        format!(" {}", delay.join(" "))
    });
    let with = injection.with.as_deref();
    let with = with.map_or_else(String::new, |with| format!(" --with {with}"));
    let lease = injection.lease.map(|lease| format!(" --lease {lease}"));
    let lease = lease.unwrap_or_default();
    Inject {
        rule: format!("{all_of_first}{}{with}{lease}", delays.collect::<String>()),
        name: injection.name.clone(),
        pool: None,
    }
}

#[cfg(test)]
mod tests {
    use dashpot_rules::parse_injection;

    use super::request;

    #[test]
    fn what_is_sent_says_what_was_typed() {
        for text in [
            "-D 10ms:1",
            "-D 10ms:1 -D 25ms~5ms:2 -D lognormal=1ms..2ms -T read -f 1% --client 'uid=0 *'",
            "--hang --first 1 --with 3 --name x",
            "-e EIO --mode floor",
            "-D 10ms --mode floor",
            "--bandwidth 1M",
            "-D 10ms -D 25ms --lease 15m",
        ] {
            let typed = parse_injection(text).unwrap();
            let sent = request(&typed);
            let mut received = parse_injection(&sent.rule).unwrap();
            received.name = sent.name;
            assert_eq!(received, typed, "{text}");
        }
    }
}
