//! A draft of a rule: the options that have been read so far, and the rules that they make.

use std::num::IntErrorKind;

use dashpot_engine::inject::{Count, Cycle, Damage, Delay, Effect, Mode, Ramp, RuleSpec, When};
use dashpot_engine::{Duration, Errno, OpSet, Ratio};

use super::damage::ops_of;
use super::{Injection, TypedRule};
use crate::ParseError;
use crate::duration::parse_span;
use crate::service::TypedDelay;

/// A rule's options, as far as they have been read.
#[derive(Clone, Debug, Default)]
pub struct RuleDraft {
    pub(super) delays: Vec<TypedDelay>,
    pub(super) ramp: Option<(Duration, bool)>,
    pub(super) error: Option<Errno>,
    pub(super) hang: bool,
    pub(super) damage: Option<Damage>,
    pub(super) bandwidth: Option<u64>,
    pub(super) ops: Option<OpSet>,
    pub(super) chance: Option<Ratio>,
    pub(super) count: Count,
    pub(super) range: Option<(u64, u64)>,
    pub(super) client: Option<String>,
    pub(super) mode: Option<ModeWord>,
    pub(super) with: Option<String>,
    pub(super) name: Option<String>,
    pub(super) lease: Option<Duration>,
    pub(super) lasts: Option<Duration>,
    pub(super) after: Option<Duration>,
    pub(super) cycle: Option<(Duration, Duration)>,
    pub(super) jitter: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModeWord {
    Floor,
    Add,
}

impl ModeWord {
    pub(super) fn parse(text: &str) -> Result<ModeWord, ParseError> {
        match text {
            "floor" => Ok(ModeWord::Floor),
            "add" => Ok(ModeWord::Add),
            _ => Err(ParseError::new(format!(
                "'{text}' is not a mode: write floor or add"
            ))),
        }
    }
}

impl RuleDraft {
    /// Makes the rules of the draft, and checks that an engine can carry them out.
    pub fn injection(&self) -> Result<Injection, ParseError> {
        if self.jitter.is_some() && self.cycle.is_none() {
            return Err(ParseError::new(
                "--jitter goes with --cycle, whose turns it shifts: add --cycle ON/PERIOD",
            ));
        }
        let mut rules = Vec::new();
        for (effect, service) in self.effects()? {
            let mut rule = TypedRule::new(self.spec(effect)?, service);
            rule.asks_floor = self.mode == Some(ModeWord::Floor);
            rule.spec
                .check()
                .map_err(|error| ParseError::new(error.to_string()))?;
            rules.push(rule);
        }
        Ok(Injection {
            rules,
            name: self.name.clone(),
            with: self.with.clone(),
            lease: self.lease,
        })
    }

    /// Makes the draft's only rule, which is to replace another rule. Refuses a draft of several rules.
    pub fn replacement(&self) -> Result<TypedRule, ParseError> {
        self.injection()?.replacement()
    }

    /// The effects of the draft, each with the words of its service time.
    fn effects(&self) -> Result<Vec<(Effect, &str)>, ParseError> {
        if let Some(errno) = self.error {
            return self.failure(errno).map(|failure| vec![failure]);
        }
        if let Some(damage) = self.damage {
            return Ok(vec![(Effect::Damage(damage), "")]);
        }
        if self.hang {
            return Ok(vec![(Effect::Hang, "")]);
        }
        if self.delays.is_empty() && self.bandwidth.is_some() {
            return Ok(vec![(Effect::Pass, "")]);
        }
        if self.delays.is_empty() {
            return Err(ParseError::new(
                "the rule does nothing: give it -D SERVICE, -e ERROR, --hang, --bandwidth RATE, or damage: --drop",
            ));
        }
        let delays = self.delays.iter();
        delays
            .map(|delay| Ok((Effect::Delay(self.hold(delay)?), delay.words.as_str())))
            .collect()
    }

    /// The hold of a delay, whose ramp takes the time that its own option gives.
    fn hold(&self, delay: &TypedDelay) -> Result<Delay, ParseError> {
        let words = &delay.words;
        let ramp = match (delay.delay.ramp, self.ramp) {
            (None, None) => None,
            (Some(ramp), Some((lasts, repeats))) => Some(Ramp {
                lasts,
                repeats,
                ..ramp
            }),
            (Some(_), None) => {
                return Err(ParseError::new(format!(
                    "-D {words}: say how long it takes from one time to the other: add --ramp 5m"
                )));
            }
            (None, Some(_)) => {
                return Err(ParseError::new(format!(
                    "--ramp goes from one time to another, and -D {words} has one: write -D 0s..{words}, for example"
                )));
            }
        };
        Ok(Delay {
            ramp,
            ..delay.delay.clone()
        })
    }

    /// The effect that fails zios. The store does no work for a zio that fails, unless the user gives `--mode
    /// floor`.
    fn failure(&self, errno: Errno) -> Result<(Effect, &str), ParseError> {
        if self.mode == Some(ModeWord::Add) {
            return Err(ParseError::new(
                "--mode add does not go with -e: for a zio that fails, the store does no work or, with \
                 --mode floor, works first",
            ));
        }
        if self.delays.len() > 1 {
            return Err(ParseError::new(
                "-e takes one -D, which is how long an I/O waits before it fails; for more lanes, write -D 20ms:4",
            ));
        }
        let delay = self.delays.first();
        let failure = Effect::Fail {
            errno,
            work: self.mode == Some(ModeWord::Floor),
            delay: delay.map(|delay| self.hold(delay)).transpose()?,
        };
        Ok((failure, delay.map_or("", |delay| &delay.words)))
    }

    fn when(&self) -> When {
        let jitter = self.jitter.unwrap_or_default();
        let cycle = |(on, period)| Cycle { on, period, jitter };
        When {
            after: self.after.unwrap_or_default(),
            lasts: self.lasts,
            cycle: self.cycle.map(cycle),
        }
    }

    fn spec(&self, effect: Effect) -> Result<RuleSpec, ParseError> {
        let plain = RuleSpec::new(effect);
        let ops = match self.damage {
            Some(damage) => ops_of(damage, self.ops)?,
            None => self.ops.unwrap_or(plain.ops),
        };
        Ok(RuleSpec {
            bandwidth: self.bandwidth,
            ops,
            chance: self.chance,
            count: self.count,
            range: self.range,
            client: self.client.clone(),
            when: self.when(),
            mode: match self.mode {
                Some(ModeWord::Add) => Mode::Add,
                Some(ModeWord::Floor) | None => plain.mode,
            },
            ..plain
        })
    }
}

/// Parses `TIME` or `TIME,repeat`.
pub(super) fn parse_ramp(text: &str) -> Result<(Duration, bool), ParseError> {
    match text.split_once(',') {
        None => Ok((parse_span(text)?, false)),
        Some((time, "repeat")) => Ok((parse_span(time)?, true)),
        Some((time, _)) => Err(ParseError::new(format!(
            "'{text}' is not a ramp: write {time}, or {time},repeat to begin again at its end"
        ))),
    }
}

/// Parses `ON/PERIOD`.
pub(super) fn parse_cycle(text: &str) -> Result<(Duration, Duration), ParseError> {
    let Some((on, period)) = text.split_once('/') else {
        return Err(ParseError::new(format!(
            "'{text}' has no '/': write how long the rule applies, and the period, for example 5s/30s"
        )));
    };
    Ok((parse_span(on)?, parse_span(period)?))
}

pub(super) fn parse_count(text: &str) -> Result<u64, ParseError> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(ParseError::new(format!(
            "'{text}' is too large: at most {}",
            u64::MAX
        ))),
        _ => Err(ParseError::new(format!(
            "'{text}' is not a number of zios: count from 1"
        ))),
    }
}

pub(super) fn parse_client(text: &str) -> Result<String, ParseError> {
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

/// The maximum length of the glob of `--client`. The names of clients are much shorter.
const CLIENT_MAX: usize = 1_024;
