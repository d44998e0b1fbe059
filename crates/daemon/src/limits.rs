//! The bounds on the memory of all rules together. The parsers in `dashpot_rules` bound the lengths of
//! globs and names, and the engine bounds the rules of one disk.

use dashpot_engine::inject::RuleSpec;

use super::refusal::Refusal;

/// The maximum number of rules on all disks together.
const RULES_MAX: usize = 4_096;
/// The maximum number of lanes of all rules together.
const LANES_MAX: u64 = 1 << 20;

/// The memory that all rules use, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RulesHeld {
    pub(crate) rules: usize,
    pub(crate) rules_max: usize,
    /// How many cleared rules are not remembered any more.
    pub(crate) forgotten: u64,
    pub(crate) lanes: u64,
    pub(crate) lanes_max: u64,
}

impl RulesHeld {
    pub(super) fn of(rules: usize, forgotten: u64, lanes: u64) -> RulesHeld {
        RulesHeld {
            rules,
            rules_max: RULES_MAX,
            forgotten,
            lanes,
            lanes_max: LANES_MAX,
        }
    }
}

/// The lanes that the engine keeps for a rule.
pub(super) fn lanes(spec: &RuleSpec) -> u64 {
    spec.lanes().unwrap_or(0).into()
}

/// Refuses rules beyond the bound.
pub(super) fn check_rules(armed: usize, more: usize) -> Result<(), Refusal> {
    if armed + more <= RULES_MAX {
        return Ok(());
    }
    let error = format!("{armed} rules are armed, and all disks together have at most {RULES_MAX}");
    Err(Refusal::conflict(error).remedy("clear some of them first"))
}

/// Refuses lanes beyond the bound.
pub(super) fn check_lanes(kept: u64, more: u64) -> Result<(), Refusal> {
    if kept + more <= LANES_MAX {
        return Ok(());
    }
    let error = format!(
        "{kept} lanes are in use, and {more} more are too many: all rules together have at most \
         {LANES_MAX}"
    );
    Err(Refusal::conflict(error)
        .remedy("clear some rules first; without ':LANES' any number of I/Os is served at once"))
}
