//! Notes on how many I/Os clients keep in flight. There is a note if that number is too small to fill a
//! rule's lanes, or if it was nearly always the same.

use dashpot_api::{Depth, Rule, RuleEffect};

/// A note on a rule whose lanes clients could not fill, or on a rule without lanes if clients perhaps limit
/// how many I/Os they have in flight.
pub fn depth_note(rule: &Rule) -> Option<String> {
    let depth = &rule.depth;
    if rule.fields.effect != RuleEffect::Delay || depth.most == 0 || !depth.is_exact() {
        return None;
    }
    let most = depth.most;
    match rule.fields.lanes {
        Some(lanes) if u64::from(lanes) > u64::from(most) => Some(format!(
            "clients offered at most {most} at a time, so no more than {most} of its {lanes} lanes have an \
             effect"
        )),
        None => bound(depth, rule.present().matched).map(|bound| {
            format!("{bound}: if that is a limit of theirs, I/Os beyond it wait longer than the rule says")
        }),
        _ => None,
    }
}

/// Words about clients that nearly always kept the same number of I/Os in flight, perhaps because they have a
/// limit. `zios` is the total number of these clients' I/Os. This total must be large enough, because a
/// single burst does not show a limit.
pub fn bound(depth: &Depth, zios: u64) -> Option<String> {
    let Depth {
        most,
        usual_percent,
        ..
    } = depth;
    let is_repeated = zios >= u64::from(*most) * BURSTS;
    (depth.looks_bounded() && is_repeated).then(|| {
        format!(
            "clients offered at most {most} at a time, and {most} for {usual_percent} % of the time"
        )
    })
}

/// Clients reached a depth repeatedly if the number of zios that they sent is at least this many times the
/// depth.
const BURSTS: u64 = 4;

#[cfg(test)]
mod tests {
    use dashpot_api::{Depth, Rule};

    use super::depth_note;

    fn noted(lanes: Option<u32>, most: u32, usual_percent: u32) -> Option<String> {
        let mut rule: Rule = serde_json::from_str(include_str!("fixtures/rule.json")).unwrap();
        rule.fields.lanes = lanes;
        rule.counters.matched = 100;
        rule.depth = Depth {
            most,
            usual: most,
            usual_percent,
        };
        depth_note(&rule)
    }

    #[test]
    fn lanes_that_no_client_fills_are_told() {
        let note = noted(Some(16), 4, 10).unwrap();
        assert!(
            note.starts_with("clients offered at most 4 at a time"),
            "{note}"
        );
        assert_eq!(noted(Some(4), 4, 100), None);
        assert_eq!(noted(Some(4), 0, 0), None, "no client has asked");
        assert_eq!(noted(Some(4096), 512, 9), None, "512 means 512 or more");
    }

    #[test]
    fn a_depth_that_looks_bounded_is_told_where_there_are_no_lanes() {
        let note = noted(None, 16, 97).unwrap();
        assert!(note.contains("16 for 97 % of the time"), "{note}");
        assert_eq!(noted(None, 16, 40), None);
        assert_eq!(noted(None, 1, 100), None, "one by one");
        assert_eq!(noted(None, 26, 100), None, "one burst");
        assert_eq!(noted(None, 512, 100), None, "512 means 512 or more");
    }
}
