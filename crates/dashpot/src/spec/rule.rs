//! Rules: one grammar for `inject`, `update`, `-r` and the `rules` of a lab file.

use clap::{Args, Parser, ValueEnum};
use dashpot_engine::inject::{Effect, Limit, Mode, RuleSpec};
use dashpot_engine::{Duration, Errno, OpSet, Ratio};

use super::ParseError;
use super::duration::{parse_span, parse_wait};
use super::errno::parse_errno;
use super::name::parse_name;
use super::ops::parse_ops;
use super::probability::parse_probability;
use super::service::{Delay, parse_delay};
use super::size::{parse_bandwidth, parse_range};
use super::words::words;

/// A rule on the command line.
#[derive(Args, Clone, Debug)]
pub(crate) struct RuleArgs {
    /// Delay: 20ms, 20ms~5ms, lognormal=10ms..30ms; again: more lanes
    #[arg(short = 'D', value_name = "SERVICE[:LANES]", value_parser = parse_delay)]
    #[arg(allow_hyphen_values = true, conflicts_with_all = ["error", "hang"])]
    delays: Vec<Delay>,
    /// Fail: EIO, ENOSPC, EPERM, ENOMEM, EINVAL, ...
    #[arg(short = 'e', value_name = "ERROR", value_parser = parse_errno)]
    #[arg(conflicts_with_all = ["hang", "bandwidth"])]
    error: Option<Errno>,
    /// Never complete, unless released
    #[arg(long, conflicts_with = "bandwidth")]
    hang: bool,
    /// Bytes per second, shared: 100M
    #[arg(long, value_name = "RATE", value_parser = parse_bandwidth, allow_hyphen_values = true)]
    bandwidth: Option<u64>,
    /// read,write,flush,fua,trim,zero,cache,all [read,write,zero]
    #[arg(short = 'T', value_name = "OPS", value_parser = parse_ops)]
    ops: Option<OpSet>,
    /// Inject into a random share: 0.5% or 1:200
    #[arg(short = 'f', value_name = "PCT|1:N", value_parser = parse_probability)]
    #[arg(allow_hyphen_values = true)]
    chance: Option<Ratio>,
    /// Inject into the first N that match
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with = "every")]
    #[arg(allow_hyphen_values = true)]
    first: Option<u64>,
    /// Inject into every Nth that matches
    #[arg(long, value_name = "N", value_parser = parse_count, allow_hyphen_values = true)]
    every: Option<u64>,
    /// Only what touches these bytes: 0..1G
    #[arg(long, value_name = "A..B", value_parser = parse_range, allow_hyphen_values = true)]
    range: Option<(u64, u64)>,
    /// Only clients of this name: 'uid=1000 *'
    #[arg(long, value_name = "GLOB", value_parser = parse_client, allow_hyphen_values = true)]
    client: Option<String>,
    /// The store works first (floor) or after the hold (add)
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "floor|add"
    )]
    mode: Option<ModeWord>,
    /// Share the lanes of this rule
    #[arg(long, value_name = "ID|NAME")]
    with: Option<String>,
    /// Name the rule
    #[arg(long, value_parser = parse_name)]
    name: Option<String>,
    /// End by itself after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    lasts: Option<Duration>,
    /// Begin after this time
    #[arg(long, value_name = "TIME", value_parser = parse_wait, allow_hyphen_values = true)]
    after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeWord {
    Floor,
    Add,
}

/// A rule and its canonical words, which a distribution cannot be turned back into.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TypedRule {
    /// What the engine is told.
    pub(crate) spec: RuleSpec,
    /// What the user is told.
    pub(crate) words: String,
}

/// What one call of `inject` arms: rules of one group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Injection {
    /// At least one; several `-D` are several rules, whose lanes are one pool.
    pub(crate) rules: Vec<TypedRule>,
    /// The name that the user gives them.
    pub(crate) name: Option<String>,
    /// The id or name of a rule whose group they join.
    pub(crate) with: Option<String>,
}

/// An injection that says where, as `-r` takes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DiskInjection {
    /// The disk; if there is none, the lab has to have exactly one.
    pub(crate) disk: Option<String>,
    /// What is armed there.
    pub(crate) injection: Injection,
}

/// The words of a rule that come as one string.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct RuleWords {
    disk: Option<String>,
    #[command(flatten)]
    rule: RuleArgs,
}

/// `[DISK] -D 10ms:1 …` in one string.
pub(crate) fn parse_disk_injection(text: &str) -> Result<DiskInjection, ParseError> {
    let words = shlex::split(text)
        .ok_or_else(|| ParseError::new(format!("'{text}' has a quote that does not end")))?;
    let parsed = RuleWords::try_parse_from(words).map_err(|error| one_line(&error))?;
    Ok(DiskInjection {
        disk: parsed.disk,
        injection: parsed.rule.injection()?,
    })
}

/// `-D 10ms:1 …` in one string, without a disk.
pub(crate) fn parse_injection(text: &str) -> Result<Injection, ParseError> {
    let DiskInjection { disk, injection } = parse_disk_injection(text)?;
    match disk {
        Some(word) => Err(ParseError::new(format!(
            "'{word}' in '{text}' is no option of a rule, and the disk is named already"
        ))),
        None => Ok(injection),
    }
}

impl RuleArgs {
    /// The rules that were asked for, each of which an engine can carry out.
    pub(crate) fn injection(&self) -> Result<Injection, ParseError> {
        let mut rules = Vec::new();
        for (effect, service) in self.effects()? {
            let rule = TypedRule::new(self.spec(effect), service);
            rule.spec
                .check()
                .map_err(|error| ParseError::new(error.to_string()))?;
            rules.push(rule);
        }
        Ok(Injection {
            rules,
            name: self.name.clone(),
            with: self.with.clone(),
        })
    }

    /// The one rule that takes the place of another.
    pub(crate) fn replacement(&self) -> Result<TypedRule, ParseError> {
        self.injection()?.replacement()
    }

    /// Each effect, with the words of its service time.
    fn effects(&self) -> Result<Vec<(Effect, &str)>, ParseError> {
        if let Some(errno) = self.error {
            return Ok(vec![(self.failure(errno)?, "")]);
        }
        if self.hang {
            return Ok(vec![(Effect::Hang, "")]);
        }
        if self.delays.is_empty() && self.bandwidth.is_some() {
            return Ok(vec![(Effect::Pass, "")]);
        }
        if self.delays.is_empty() {
            return Err(ParseError::new(
                "the rule does nothing: give it -D SERVICE, -e ERROR, --hang or --bandwidth RATE",
            ));
        }
        let delay = |delay: &Delay| Effect::Delay {
            service: delay.service.clone(),
            lanes: delay.lanes,
        };
        Ok(self
            .delays
            .iter()
            .map(|d| (delay(d), d.words.as_str()))
            .collect())
    }

    /// A zio that fails is not done, unless `--mode floor` says that the store works first.
    fn failure(&self, errno: Errno) -> Result<Effect, ParseError> {
        if self.mode == Some(ModeWord::Add) {
            return Err(ParseError::new(
                "--mode add does not go with -e: a zio that fails is not done, or with \
                 --mode floor done first",
            ));
        }
        Ok(Effect::Fail {
            errno,
            work: self.mode == Some(ModeWord::Floor),
        })
    }

    fn spec(&self, effect: Effect) -> RuleSpec {
        let plain = RuleSpec::new(effect);
        RuleSpec {
            bandwidth: self.bandwidth,
            ops: self.ops.unwrap_or(plain.ops),
            chance: self.chance,
            limit: match (self.first, self.every) {
                (Some(count), _) => Limit::First(count),
                (None, Some(count)) => Limit::Every(count),
                (None, None) => plain.limit,
            },
            range: self.range,
            client: self.client.clone(),
            after: self.after.unwrap_or(plain.after),
            lasts: self.lasts,
            mode: match self.mode {
                Some(ModeWord::Add) => Mode::Add,
                Some(ModeWord::Floor) | None => plain.mode,
            },
            ..plain
        }
    }
}

impl Injection {
    /// The one rule that takes the place of another.
    pub(crate) fn replacement(mut self) -> Result<TypedRule, ParseError> {
        if self.name.is_some() || self.with.is_some() {
            return Err(ParseError::new(
                "an update keeps the rule's name and group: leave --name and --with out",
            ));
        }
        match (self.rules.pop(), self.rules.is_empty()) {
            (Some(rule), true) => Ok(rule),
            _ => Err(ParseError::new("an update replaces one rule: give one -D")),
        }
    }
}

impl TypedRule {
    /// A rule and the words of its service time, if it delays.
    pub(crate) fn new(spec: RuleSpec, service: &str) -> TypedRule {
        let words = words(&spec, service);
        TypedRule { spec, words }
    }
}

fn parse_count(text: &str) -> Result<u64, ParseError> {
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| ParseError::new(format!("'{text}' is no number of zios: count from 1")))
}

fn parse_client(text: &str) -> Result<String, ParseError> {
    if text.is_empty() {
        return Err(ParseError::new("\"\" matches no client: write '*' for all"));
    }
    if text.len() > CLIENT_MAX {
        return Err(ParseError::new(format!(
            "a glob has at most {CLIENT_MAX} bytes, and this one has {}: write '*' for a part of it",
            text.len()
        )));
    }
    if text.contains(char::is_control) {
        return Err(ParseError::new(format!(
            "{text:?} matches no client: no name has control characters; write '?' for one letter"
        )));
    }
    Ok(text.to_owned())
}

/// The longest glob: the names of clients are much shorter.
const CLIENT_MAX: usize = 1_024;

/// clap's message without what only fits a terminal.
fn one_line(error: &clap::Error) -> ParseError {
    let text = error.render().to_string();
    let lines = text.lines().take_while(|line| !line.starts_with("Usage:"));
    let words = lines
        .flat_map(str::split_whitespace)
        .collect::<Vec<_>>()
        .join(" ");
    ParseError::new(words.trim_start_matches("error: "))
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
