//! Sentences about rules.

use dashpot_api::{Rule, RuleState};
use dashpot_rules::short_time;

/// A line that shows a rule as the daemon parsed it, with a line feed at its end.
pub fn understood(rule: &Rule) -> String {
    let name = rule.name.as_deref();
    let name = name.map_or_else(String::new, |name| format!(" ({name})"));
    let group = if rule.group == rule.id {
        String::new()
    } else {
        format!(", shares lanes with rule {}", rule.group)
    };
    let lease = rule.lapses_in_ns;
    let lease = lease.map_or_else(String::new, |left| format!(", {}", lapses(left)));
    format!(
        "rule {}{name} on {}: {}{group}{lease}\n",
        rule.id, rule.disk, rule.rule
    )
}

/// When the lease of a rule lapses; `None` if it has none.
pub fn leased(rule: &Rule) -> Option<String> {
    let left = rule.lapses_in_ns?;
    Some(format!("rule {}: {}", rule.id, lapses(left)))
}

fn lapses(left_ns: u64) -> String {
    format!("its lease lapses in {}", short_time(left_ns))
}

/// How a message names some rules: `rule 3`, `rules 1, 2`.
pub fn listed(ids: &[u32]) -> String {
    let numbers: Vec<String> = ids.iter().map(u32::to_string).collect();
    let noun = if ids.len() == 1 { "rule" } else { "rules" };
    format!("{noun} {}", numbers.join(", "))
}

/// The rules that were cleared, and the I/Os that they still hold, of which `hung` never end by themselves.
pub fn cleared(ids: &[u32], held: u64, hung: u64) -> String {
    let left = match (held, hung) {
        (0, _) => return format!("cleared {}", listed(ids)),
        (_, 0) => "until they are due".to_owned(),
        (all, some) if all == some => format!("for ever: {LETS_GO}"),
        (_, some) => format!("until they are due, but {some} for ever: {LETS_GO}"),
    };
    let ios = count_of(held);
    format!("cleared {}; {ios} still held, {left}", listed(ids))
}

/// A sentence about cleared rules that the daemon does not remember any more.
pub fn forgotten(count: u64) -> String {
    let rules = if count == 1 { "rule is" } else { "rules are" };
    format!(
        "{count} cleared {rules} not listed: the daemon remembers only those that were cleared last"
    )
}

/// The command that ends the I/Os that cleared rules hang.
const LETS_GO: &str = "'dashpot clear DISK --release' lets them go";

fn count_of(ios: u64) -> String {
    match ios {
        1 => "1 I/O is".to_owned(),
        count => format!("{count} I/Os are"),
    }
}

/// A note about a rule that has injected nothing, or that has ended. `None` for every other rule.
pub fn note(rule: &Rule) -> Option<String> {
    let why = match (&rule.why_nothing, rule.state) {
        (Some(why), _) if rule.present().matched == 0 => why.clone(),
        (Some(why), _) => format!("matched, injected nothing: {why}"),
        (None, RuleState::Ended) => match rule.counters.now {
            0 => "ended".to_owned(),
            held => format!(
                "ended, and {} still held until they are due",
                count_of(held)
            ),
        },
        (None, RuleState::Resting) => "rests until the next turn of its cycle".to_owned(),
        (None, RuleState::Waiting | RuleState::Active | RuleState::Cleared) => return None,
    };
    Some(format!("rule {}: {why}", rule.id))
}
