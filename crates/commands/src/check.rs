//! `check`: compares disks, volumes and rules with what a CI job expects, either now, after some time, or
//! after a command.

use std::env::current_dir;
use std::fs::{metadata, read_link};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use dashpot_api::{Client, ClientError, StatusCode};
use dashpot_cli::CheckArgs;
use dashpot_engine::Op;
use dashpot_export::{complain, complain_lines};
use dashpot_output::screen::{room, room_on};
use dashpot_output::{print, print_json, usage};
use dashpot_rules::ParseError;
use serde::de::DeserializeOwned;

use crate::checks::{Expression, Names, Outcome, Ran, Snapshot, Subject};
use crate::child::{FAILED, run_child};
use crate::pipeline::{make_directory, ran, report};
use crate::proof::NOT_KEPT;

/// Compares disks, volumes and rules with the user's expectations. The exit code is 0 if all hold.
pub fn check(client: &Client, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    if args.command.is_empty() {
        return now_or_later(client, args);
    }
    Ok(around(client, args).unwrap_or_else(|error| {
        complain(format_args!("dashpot: {error:#}"));
        ExitCode::from(FAILED)
    }))
}

fn now_or_later(client: &Client, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let checks = Checks::parse(client, &args.expressions, false)?;
    let checks = checks.unwrap_or_else(|error| refuse(&error));
    make_directory(args.report.as_deref())?;
    let earlier = match args.lasts {
        None => None,
        Some(lasts) => {
            let snapshot = checks.snapshot(client)?;
            std::thread::sleep(Duration::from_nanos(lasts.as_nanos()));
            Some(snapshot)
        }
    };
    let outcomes = checks.judge(client, earlier.as_ref())?;
    report(client, args.report.as_deref(), &Ran::default(), &outcomes)?;
    if args.json {
        print_json(&outcomes)?;
    } else {
        print(&Outcome::lines(room(false), &outcomes))?;
    }
    Ok(status(&outcomes))
}

/// Checks what happens while a command runs. Stdout belongs to the command, so the outcomes go to stderr.
fn around(client: &Client, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let checks = Checks::parse(client, &args.expressions, true)?;
    let checks = checks.unwrap_or_else(|error| refuse(&error));
    make_directory(args.report.as_deref())?;
    let earlier = checks.snapshot(client)?;
    let ends = async { Ok(run_child(&args.command).await?) };
    let ran = client.block_on(ran(&args.command, ends))?;
    let outcomes = checks.judge(client, Some(&earlier)).and_then(|outcomes| {
        report(client, args.report.as_deref(), &ran, &outcomes)?;
        Ok(outcomes)
    });
    conclude(ran.exit_code(), outcomes, args.json)
}

/// The exit status of a command and its checks. The command's own failure takes precedence, even if the
/// daemon no longer answers.
pub(crate) fn conclude(
    ended: ExitCode,
    outcomes: anyhow::Result<Vec<Outcome>>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    if ended != ExitCode::SUCCESS {
        match outcomes {
            Ok(outcomes) => tell(&outcomes, json)?,
            Err(error) => complain(format_args!("dashpot: {error:#}")),
        }
        return Ok(ended);
    }
    let outcomes = outcomes?;
    tell(&outcomes, json)?;
    Ok(status(&outcomes))
}

fn tell(outcomes: &[Outcome], json: bool) -> anyhow::Result<()> {
    match json {
        // `run --report` needs no `--check`.
        false if outcomes.is_empty() => {}
        true => complain_lines(&serde_json::to_string_pretty(outcomes)?),
        false => {
            let lines = Outcome::lines(room_on(&io::stderr(), false), outcomes);
            complain_lines(lines.trim_end());
        }
    }
    Ok(())
}

/// Expectations about the devices and rules of a daemon.
pub(crate) struct Checks {
    expressions: Vec<Expression>,
    volumes: Vec<String>,
}

impl Checks {
    /// Parses expressions against the daemon's names. If `rules_may_come`, an expression may name a rule that
    /// does not exist yet, because the command may arm it.
    pub(crate) fn parse(
        client: &Client,
        texts: &[String],
        rules_may_come: bool,
    ) -> anyhow::Result<Result<Checks, ParseError>> {
        let volumes = client.volume_names()?;
        let names = names(client, &volumes, texts, rules_may_come)?;
        let parsed = texts.iter().map(|text| Expression::parse(text, &names));
        let parsed = parsed.collect::<Result<_, _>>();
        Ok(parsed.map(|expressions| Checks {
            expressions,
            volumes,
        }))
    }

    /// The state of the named devices and rules.
    pub(crate) fn snapshot(&self, client: &Client) -> anyhow::Result<Snapshot> {
        let mut snapshot = Snapshot {
            started_ns: client.clock()?.started_ns,
            ..Snapshot::default()
        };
        for expression in &self.expressions {
            match &expression.subject {
                Subject::Device { device, .. } => {
                    let latency = if self.volumes.contains(device) {
                        client.volume_latency(device, None)?
                    } else {
                        client.latency(device, None)?
                    };
                    snapshot.devices.insert(device.clone(), latency);
                }
                Subject::Rule { rule, .. } => {
                    let rules = if_there(client.rule_latency(rule))?.unwrap_or_default();
                    snapshot.rules.insert(rule.clone(), rules);
                }
            }
        }
        Ok(snapshot)
    }

    /// Compares the expectations with the I/O since `earlier`; if that is `None`, with the I/O since the
    /// daemon's start.
    pub(crate) fn judge(
        &self,
        client: &Client,
        earlier: Option<&Snapshot>,
    ) -> anyhow::Result<Vec<Outcome>> {
        let now = self.snapshot(client)?;
        let each = self
            .expressions
            .iter()
            .map(|expression| now.judge(expression, earlier));
        each.collect()
    }
}

/// The names of disks, volumes and rules, and of each cleared rule that an expression may refer to.
fn names(
    client: &Client,
    volumes: &[String],
    texts: &[String],
    rules_may_come: bool,
) -> anyhow::Result<Names> {
    let mut rules = client.rules()?;
    for name in texts.iter().flat_map(|text| may_be_rules(text)) {
        let gone = if_there(client.rules_named(name))?;
        rules.extend(gone.unwrap_or_default());
    }
    let ids = rules.iter().map(|rule| rule.id.to_string());
    let named = rules.iter().filter_map(|rule| rule.name.clone());
    let mut rules: Vec<String> = named.chain(ids).collect();
    rules.sort_unstable();
    rules.dedup();
    Ok(Names {
        devices: [&client.disk_names()?, volumes].concat(),
        ops: Op::ALL.map(|op| op.name().to_owned()).to_vec(),
        rules,
        rules_may_come,
    })
}

/// The parts of an expression that may be the name of a rule.
fn may_be_rules(text: &str) -> Vec<&str> {
    let left = text
        .split(['<', '>', '=', '!'])
        .next()
        .unwrap_or_default()
        .trim();
    if let Some((name, _)) = left
        .strip_prefix("rule(")
        .and_then(|rest| rest.split_once(')'))
    {
        return vec![name];
    }
    let points = left.match_indices('.').map(|(at, _)| &left[..at]);
    points.filter(|name| !name.is_empty()).collect()
}

fn if_there<T: DeserializeOwned>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Err(ClientError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => Ok(None),
        answer => answer.map(Some),
    }
}

fn status(outcomes: &[Outcome]) -> ExitCode {
    if outcomes.iter().all(|outcome| outcome.holds) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_KEPT)
    }
}

/// Ends the program, because an expression cannot be parsed. If the shell took the `>` of an expression for a
/// redirection, warns about the file that it made.
fn refuse(error: &ParseError) -> ! {
    let error = match eaten() {
        Some(file) => ParseError::new(format!(
            "{error} (the shell took '>' for itself and made the file '{file}': put the expression \
             in quotes)"
        )),
        None => error.clone(),
    };
    usage(&error)
}

/// The name of the file to which stdout goes, if that file is empty and in the current directory.
fn eaten() -> Option<String> {
    let path: PathBuf = read_link("/proc/self/fd/1").ok()?;
    let is_here = path.parent() == current_dir().ok().as_deref();
    let file = metadata(&path).ok()?;
    let name = path.file_name().map(Path::new)?.display().to_string();
    (is_here && file.is_file() && file.len() == 0).then_some(name)
}
