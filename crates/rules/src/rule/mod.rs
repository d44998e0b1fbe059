//! Rules: one grammar for `inject`, `update`, `-r`, the `rules` of a lab file and the API.

mod clients;
mod damage;
mod draft;
mod of_blocks;
mod of_calls;
mod option;
mod text;
mod words;

use dashpot_engine::Duration;
use dashpot_engine::inject::{Effect, RuleSpec};

pub use clients::ClientNames;
pub use damage::damage_name;
pub(crate) use damage::damage_words;
pub use draft::RuleDraft;
pub use option::{RULE_OPTIONS, RuleOption};
pub use text::{parse_disk_injection, parse_injection};
use words::words;

use crate::ParseError;

/// A rule and its canonical words. The words are kept, because a distribution cannot be turned back into
/// words.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedRule {
    /// The rule for the engine.
    pub spec: RuleSpec,
    /// The words for the user.
    pub words: String,
    /// The words of the service time, if the rule delays.
    service: String,
    /// Whether the user has given `--mode floor`, which is the default on most disks.
    asks_floor: bool,
}

/// The rules that one call of `inject` arms. All of these rules are one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Injection {
    /// The rules, at least one. Several `-D` options make several rules, which share one set of lanes.
    pub rules: Vec<TypedRule>,
    /// The name that the user gave the rules.
    pub name: Option<String>,
    /// The id or the name of the rule whose group the new rules join.
    pub with: Option<String>,
    /// How long the rules last if nobody renews them; `None` for ever.
    pub lease: Option<Duration>,
}

/// An injection with its disk, as `-r` takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskInjection {
    /// The disk; `None` if the lab has exactly one.
    pub disk: Option<String>,
    pub injection: Injection,
}

impl Injection {
    /// The injection, for a holder that arms its rules for as long as it exists. Refuses a lease.
    pub fn unleased(self) -> Result<Injection, ParseError> {
        match self.lease {
            None => Ok(self),
            Some(_) => Err(ParseError::new(
                "the rule lasts as long as what arms it, without a lease: leave --lease out",
            )),
        }
    }

    /// The injection's only rule, which is to replace another rule. Refuses an injection of several rules.
    pub fn replacement(mut self) -> Result<TypedRule, ParseError> {
        if self.name.is_some() || self.with.is_some() || self.lease.is_some() {
            return Err(ParseError::new(
                "an update keeps the rule's name, group and lease: leave --name, --with and --lease out",
            ));
        }
        match (self.rules.pop(), self.rules.is_empty()) {
            (Some(rule), true) => Ok(rule),
            _ => Err(ParseError::new("an update replaces one rule: give one -D")),
        }
    }
}

impl TypedRule {
    /// Makes a rule. `service` has the words of the rule's service time, if the rule delays.
    pub fn new(spec: RuleSpec, service: &str) -> TypedRule {
        let words = words(&spec, service);
        TypedRule {
            spec,
            words,
            service: service.to_owned(),
            asks_floor: false,
        }
    }

    /// The words to send to a daemon. They include `--mode floor` if the user gave it, because only the
    /// daemon knows whether the rule's disk is a path disk, for which `add` is the default.
    pub fn asked(&self) -> String {
        let has_it = matches!(self.spec.effect, Effect::Fail { .. }) || !self.asks_floor;
        if has_it {
            self.words.clone()
        } else {
            format!("{} --mode floor", self.words)
        }
    }
}

#[cfg(test)]
mod tests;
