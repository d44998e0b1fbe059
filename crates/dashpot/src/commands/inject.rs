//! `inject`: arms a rule, for good or for the life of a command.

use std::process::ExitCode;

use axum::http::Method;

use super::child::run_child;
use super::output::{print, print_json, usage};
use crate::api::types::{Cleared, Inject, Rule};
use crate::cli::InjectArgs;
use crate::client::{Client, segment};
use crate::spec::Injection;

pub(crate) fn inject(client: &Client, args: &InjectArgs) -> anyhow::Result<ExitCode> {
    let request = request(&args.rule.injection().unwrap_or_else(|error| usage(&error)));
    let path = format!("/v1/disks/{}/rules", segment(&args.disk));
    let rules: Vec<Rule> = client.post(&path, &request)?;
    if args.json {
        print_json(&rules)?;
    } else if args.command.is_empty() {
        print(&rules.iter().map(understood).collect::<String>())?;
    }
    if args.command.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let ended = client.block_on(run_child(&args.command, &[]));
    for rule in &rules {
        let path = format!("/v1/rules/{}", rule.id);
        let _: Cleared = client.send(Method::DELETE, &path, &())?;
    }
    Ok(ended?)
}

/// A rule as the daemon understood it.
pub(crate) fn understood(rule: &Rule) -> String {
    let name = rule.name.as_deref();
    let name = name.map_or_else(String::new, |name| format!(" ({name})"));
    let group = if rule.group == rule.id {
        String::new()
    } else {
        format!(", shares lanes with rule {}", rule.group)
    };
    format!(
        "rule {}{name} on {}: {}{group}\n",
        rule.id, rule.disk, rule.rule
    )
}

/// The words of rules that came together: they differ in their first option and its value alone.
fn request(injection: &Injection) -> Inject {
    let words: Vec<&str> = injection
        .rules
        .iter()
        .map(|rule| rule.words.as_str())
        .collect();
    let (all_of_first, others) = words.split_first().map_or(("", &[][..]), |(f, o)| (*f, o));
    let delays = others.iter().map(|words| {
        let delay: Vec<&str> = words.splitn(3, ' ').take(2).collect();
        format!(" {}", delay.join(" "))
    });
    let with = injection.with.as_deref();
    let with = with.map_or_else(String::new, |with| format!(" --with {with}"));
    Inject {
        rule: format!("{all_of_first}{}{with}", delays.collect::<String>()),
        name: injection.name.clone(),
        pool: None,
    }
}

#[cfg(test)]
mod tests {
    use super::request;
    use crate::spec::parse_injection;

    #[test]
    fn what_is_sent_says_what_was_typed() {
        for text in [
            "-D 10ms:1",
            "-D 10ms:1 -D 25ms~5ms:2 -D lognormal=1ms..2ms -T read -f 1% --client 'uid=0 *'",
            "--hang --first 1 --with 3 --name x",
            "-e EIO --mode floor",
            "--bandwidth 1M",
        ] {
            let typed = parse_injection(text).unwrap();
            let sent = request(&typed);
            let mut received = parse_injection(&sent.rule).unwrap();
            received.name = sent.name;
            assert_eq!(received, typed, "{text}");
        }
    }
}
