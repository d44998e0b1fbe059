//! Rules: one grammar for `inject`, `update`, `-r`, the `rules` of a lab file and the API.

mod draft;
mod option;
mod text;
mod words;

use dashpot_engine::inject::RuleSpec;

pub use draft::RuleDraft;
pub use option::{RULE_OPTIONS, RuleOption};
pub use text::{parse_disk_injection, parse_injection};
use words::words;

use crate::ParseError;

/// A rule and its canonical words, which a distribution cannot be turned back into.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedRule {
    /// What the engine is told.
    pub spec: RuleSpec,
    /// What the user is told.
    pub words: String,
}

/// What one call of `inject` arms: rules of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Injection {
    /// At least one; several `-D` are several rules, whose lanes are one pool.
    pub rules: Vec<TypedRule>,
    /// The name that the user gives them.
    pub name: Option<String>,
    /// The id or name of a rule whose group they join.
    pub with: Option<String>,
}

/// An injection that says where, as `-r` takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskInjection {
    /// The disk; if there is none, the lab has to have exactly one.
    pub disk: Option<String>,
    /// What is armed there.
    pub injection: Injection,
}

impl Injection {
    /// The one rule that takes the place of another.
    pub fn replacement(mut self) -> Result<TypedRule, ParseError> {
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
    pub fn new(spec: RuleSpec, service: &str) -> TypedRule {
        let words = words(&spec, service);
        TypedRule { spec, words }
    }
}

#[cfg(test)]
mod tests;
