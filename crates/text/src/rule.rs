//! Sentences about rules.

use dashpot_api::{Rule, RuleState};

/// A line that shows a rule as the daemon parsed it, with a line feed at its end.
pub fn understood(rule: &Rule) -> String {
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

/// How a message names some rules: `rule 3`, `rules 1, 2`.
pub fn listed(ids: &[u32]) -> String {
    let numbers: Vec<String> = ids.iter().map(u32::to_string).collect();
    let noun = if ids.len() == 1 { "rule" } else { "rules" };
    format!("{noun} {}", numbers.join(", "))
}

/// A note about a rule that has injected nothing, or that has ended. `None` for every other rule.
pub fn note(rule: &Rule) -> Option<String> {
    let why = match (&rule.why_nothing, rule.state) {
        (Some(why), _) if rule.present().matched == 0 => why.clone(),
        (Some(why), _) => format!("matched, injected nothing: {why}"),
        (None, RuleState::Ended) => "ended".to_owned(),
        (None, RuleState::Waiting | RuleState::Active | RuleState::Cleared) => return None,
    };
    Some(format!("rule {}: {why}", rule.id))
}
