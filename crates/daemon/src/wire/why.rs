//! The reason that a rule has injected nothing. Users of fault injectors ask for this reason more often than
//! for anything else.

use dashpot_api::{RuleState, op_words};
use dashpot_engine::RuleStats;
use dashpot_engine::inject::RuleSpec;
use dashpot_export::RuleSnapshot;
use dashpot_rules::format_size;

/// The reason, or `None` if the rule has injected something since it was armed or last updated, or
/// does so now.
pub(super) fn why_nothing(rule: &RuleSnapshot, state: RuleState) -> Option<String> {
    let spec = &rule.spec;
    let (stats, now) = rule.present();
    if stats.ended() - stats.overrun + now > 0 {
        return None;
    }
    if state == RuleState::Waiting {
        return Some(format!(
            "not begun: it begins {} after it was armed",
            spec.when.after
        ));
    }
    if stats.matched == 0 {
        let is_updated = rule.since_update.is_some();
        return Some(nothing_matched(spec, stats, state, is_updated));
    }
    Some(matched_but(rule, stats))
}

fn nothing_matched(
    spec: &RuleSpec,
    stats: &RuleStats,
    state: RuleState,
    is_updated: bool,
) -> String {
    if let Some(winner) = stats.preempted_by {
        let ios = match stats.preempted {
            1 => "1 I/O".to_owned(),
            count => format!("{count} I/Os"),
        };
        return format!(
            "rules with errors or hangs come first, such as rule {}: they decided {ios}",
            winner.0
        );
    }
    let range = |(start, end)| format!("--range {}..{}", format_size(start), format_size(end));
    let limits = [
        Some(format!("-T {}", op_words(spec.ops).join(","))),
        spec.range.map(range),
        spec.client
            .as_ref()
            .map(|glob| format!("--client '{glob}'")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    let when = match state {
        RuleState::Ended => "ended, and nothing had matched",
        RuleState::Cleared => "cleared, and nothing had matched",
        RuleState::Resting => "rests until the next turn of its cycle, and nothing matched yet",
        _ if is_updated => "nothing matched since the update",
        RuleState::Waiting | RuleState::Active => "nothing matched yet",
    };
    format!("{when}: {}", limits.join(" "))
}

fn matched_but(rule: &RuleSnapshot, stats: &RuleStats) -> String {
    if stats.overrun > 0 {
        return "the store is slower than the rule: --mode add delays I/Os all the same".to_owned();
    }
    if stats.spared > 0 {
        return "what it was to shorten had nothing to shorten, such as a read at the end of a file, or could \
                not be shortened"
            .to_owned();
    }
    if let Some(rule) = stats.beaten_by {
        return format!("beaten by rule {}", rule.0);
    }
    if stats.not_drawn > 0 {
        return "not drawn yet: the chance of -f is small".to_owned();
    }
    let (count, counted) = (rule.spec.count, rule.counted.0);
    match count.first {
        _ if counted <= count.skip => format!(
            "only {counted} have matched; the first {} are spared",
            count.skip
        ),
        _ if counted - count.skip < count.every => format!(
            "fewer than {} have matched",
            count.skip.saturating_add(count.every)
        ),
        Some(first) if count.is_over(counted) => format!("the first {first} are used up"),
        _ => "another rule decided".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::why_nothing;
    use dashpot_api::RuleState;
    use dashpot_engine::inject::{Count, GroupId, RuleId, RuleSpec, When};
    use dashpot_engine::{Duration, Instant, RuleStats};
    use dashpot_export::RuleSnapshot;

    fn rule(spec: RuleSpec, stats: RuleStats) -> RuleSnapshot {
        RuleSnapshot {
            id: RuleId(1),
            group: GroupId(1),
            spec,
            armed: Instant::ZERO,
            counted: (stats.matched, Instant::ZERO),
            rests: false,
            stats,
            now: 0,
            since_update: None,
            backlog: Duration::ZERO,
            overloaded_seconds: 0,
            stalls: 0,
            depth: Default::default(),
        }
    }

    fn armed(stats: RuleStats) -> RuleSnapshot {
        rule(RuleSpec::delay(Duration::from_millis(10), Some(1)), stats)
    }

    fn why(stats: RuleStats) -> String {
        why_nothing(&armed(stats), RuleState::Active).unwrap_or_default()
    }

    fn matched() -> RuleStats {
        RuleStats {
            matched: 5,
            ..RuleStats::default()
        }
    }

    #[test]
    fn every_reason_has_its_words() {
        assert_eq!(
            why(RuleStats::default()),
            "nothing matched yet: -T read,write,zero"
        );
        let beaten = RuleStats {
            beaten: 5,
            beaten_by: Some(RuleId(1)),
            ..matched()
        };
        assert_eq!(why(beaten), "beaten by rule 1");
        let overrun = RuleStats {
            overrun: 5,
            ..matched()
        };
        assert_eq!(
            why(overrun),
            "the store is slower than the rule: --mode add delays I/Os all the same"
        );
        let not_drawn = RuleStats {
            not_drawn: 5,
            ..matched()
        };
        assert_eq!(why(not_drawn), "not drawn yet: the chance of -f is small");
    }

    #[test]
    fn a_rule_that_another_comes_before_names_it() {
        let preempted = RuleStats {
            preempted: 2,
            preempted_by: Some(RuleId(7)),
            ..RuleStats::default()
        };
        assert_eq!(
            why(preempted.clone()),
            "rules with errors or hangs come first, such as rule 7: they decided 2 I/Os"
        );
        let one = RuleStats {
            preempted: 1,
            ..preempted
        };
        assert_eq!(
            why(one),
            "rules with errors or hangs come first, such as rule 7: they decided 1 I/O"
        );
    }

    #[test]
    fn a_range_is_printed_with_its_bounds() {
        let spec = RuleSpec {
            range: Some((64 << 10, 1 << 30)),
            ..RuleSpec::delay(Duration::from_millis(10), None)
        };
        let reason = why_nothing(&rule(spec, RuleStats::default()), RuleState::Active);
        assert_eq!(
            reason.as_deref(),
            Some("nothing matched yet: -T read,write,zero --range 64K..1G")
        );
    }

    #[test]
    fn a_rule_that_injects_needs_no_reason() {
        for (held, aborted, now) in [(1, 0, 0), (0, 1, 0), (0, 0, 1)] {
            let stats = RuleStats {
                held,
                aborted,
                beaten: 4,
                ..matched()
            };
            let rule = RuleSnapshot {
                now,
                ..armed(stats)
            };
            assert_eq!(why_nothing(&rule, RuleState::Active), None);
        }
    }

    #[test]
    fn a_rule_that_waits_or_is_used_up_says_so() {
        let spec = RuleSpec {
            when: When {
                after: Duration::from_secs(5),
                ..When::default()
            },
            count: Count::first(2),
            ..RuleSpec::delay(Duration::from_millis(10), None)
        };
        let waiting = rule(spec.clone(), RuleStats::default());
        let waiting = why_nothing(&waiting, RuleState::Waiting);
        assert_eq!(
            waiting.as_deref(),
            Some("not begun: it begins 5s after it was armed")
        );
        let used_up = RuleStats {
            not_counted: 3,
            ..matched()
        };
        let reason = why_nothing(&rule(spec, used_up), RuleState::Active);
        assert_eq!(reason.as_deref(), Some("the first 2 are used up"));
    }
}
