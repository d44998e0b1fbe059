//! A scenario and its steps.

use std::fmt;

use dashpot_engine::Duration;
use dashpot_engine::pool::Tunable;

use crate::{Injection, ParseError, TypedRule, format_tunable};

/// A scenario, whose steps can be made in their order: no step needs a label that is not in use then.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// A sentence about the scenario.
    pub about: String,
    pub(super) steps: Vec<Step>,
}

/// A step of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The time since the step before it.
    pub after: Duration,
    pub action: Action,
    /// The line of the file in which the step begins.
    pub line: usize,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing: time passes.
    Wait,
    Inject {
        /// The label by which other steps name the rules.
        label: Option<String>,
        injection: Injection,
    },
    Update {
        label: String,
        rule: Box<TypedRule>,
    },
    Clear(Which),
    Suspend,
    Resume,
    /// Cuts the power.
    Crash {
        then: Power,
        survives: Survives,
    },
    Tune {
        /// The pool; `None` for that of the scenario's disk.
        pool: Option<String>,
        changes: Vec<(Tunable, u64)>,
    },
    /// Notes a text in the scenario's log.
    Mark(String),
    /// Makes steps again and again.
    Repeat {
        /// How many times; `None` for ever.
        times: Option<u64>,
        steps: Vec<Step>,
    },
}

/// The rules that a step clears, of those that the scenario has armed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    Label(String),
}

/// The power of a disk after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// The disk loses its cache and goes on.
    GoesOn,
    /// The disk stays off.
    Off,
    /// The disk serves what has survived.
    Restart,
}

/// The writes that survive a power cut although no flush has covered them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    None,
    All,
    Random,
}

impl Step {
    /// An error in this step.
    pub fn error(&self, why: impl fmt::Display) -> ParseError {
        ParseError::new(format!("{}: {why}", self.line))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Wait => f.write_str("wait"),
            Action::Inject { label, injection } => {
                if let Some(label) = label {
                    write!(f, "{label}: ")?;
                }
                let words = injection.rules.iter().map(|rule| rule.words.as_str());
                write!(f, "inject {}", words.collect::<Vec<_>>().join(" and "))
            }
            Action::Update { label, rule } => write!(f, "{label}: update {}", rule.words),
            Action::Clear(Which::All) => f.write_str("clear all"),
            Action::Clear(Which::Label(label)) => write!(f, "{label}: clear"),
            Action::Suspend => f.write_str("suspend"),
            Action::Resume => f.write_str("resume"),
            Action::Crash { then, .. } => f.write_str(match then {
                Power::GoesOn => "crash",
                Power::Off => "crash, and stay off",
                Power::Restart => "crash, and restart",
            }),
            Action::Tune { changes, .. } => {
                let set = changes.iter().map(|(tunable, value)| {
                    let info = tunable.info();
                    format!("{}={}", info.name, format_tunable(*value, info.unit))
                });
                write!(f, "set {}", set.collect::<Vec<_>>().join(" "))
            }
            Action::Mark(text) => write!(f, "mark {text}"),
            Action::Repeat { .. } => f.write_str("repeat"),
        }
    }
}
