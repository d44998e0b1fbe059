//! The daemon's record of a rule, with the facts that the engine does not know: its name, its words,
//! and the call that armed it.

use dashpot_engine::inject::{GroupId, RuleId};
use dashpot_engine::{Duration, Instant};

/// The facts about one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The id of the rule, which no other rule ever has.
    pub id: RuleId,
    /// The index of the rule's disk.
    pub disk: usize,
    /// The group whose lanes the rule shares.
    pub group: GroupId,
    /// The id of the first rule of the call that armed this rule.
    pub(crate) call: RuleId,
    /// The name that the caller gave the rule, if any.
    pub name: Option<String>,
    /// The rule in canonical words.
    pub words: String,
    /// The pool that the zinject command named. The rules with the same disk and pool form one group.
    pub pool: Option<String>,
    /// The lanes that the engine keeps for the rule.
    pub(crate) lanes: u64,
    /// The term of the rule's lease, if it has one.
    pub(crate) term: Option<Term>,
    /// Whether the rule has been cleared.
    pub is_gone: bool,
}

/// The term of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) lasts: Duration,
    pub(crate) lapses: Instant,
}

impl Record {
    /// Gives the rule a lease from now on.
    pub(crate) fn lease(&mut self, lasts: Duration, now: Instant) {
        let lapses = now + lasts;
        self.term = Some(Term { lasts, lapses });
    }

    /// Whether one call armed both rules. Only rules of one call may share a name.
    pub(super) fn came_with(&self, other: &Record) -> bool {
        self.name.is_some() && self.name == other.name && self.call == other.call
    }
}
