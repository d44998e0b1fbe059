//! The ids of rules and of their groups.

/// The id of a rule, for the life of a daemon. Later rules have larger ids, and no id is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

/// The id of a group of rules. The rules of a group share one pool of lanes; the effects of
/// different groups add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);
