//! Rules on disks whose zios are the calls of a program: the allowed options, and their words.

use dashpot_engine::inject::{Effect, Mode, RuleSpec};
use dashpot_engine::{Op, OpSet};

use super::TypedRule;
use super::words::words;
use crate::ParseError;
use crate::ops::format_ops;

/// The operations that a program's filter notifies. They are fixed when the program starts.
const NOTIFIED: OpSet = OpSet::of(Op::Flush);

impl TypedRule {
    /// The same rule for the calls of a program. Without types, the rule is for all calls that are notified. The
    /// call is held before the kernel does it, because the kernel does not report its end.
    pub fn of_calls(self) -> Result<TypedRule, ParseError> {
        let TypedRule { spec, service, .. } = self;
        if self.asks_floor {
            return Err(ParseError::new(FLOOR));
        }
        check(&spec)?;
        let spec = RuleSpec {
            ops: NOTIFIED,
            mode: match spec.effect {
                Effect::Delay { .. } => Mode::Add,
                _ => spec.mode,
            },
            ..spec
        };
        let words = words(&spec, &service).replace("-T flush", "-T sync");
        Ok(TypedRule {
            spec,
            words,
            service,
            asks_floor: false,
        })
    }
}

fn check(spec: &RuleSpec) -> Result<(), ParseError> {
    let refused = |why: &str| Err(ParseError::new(why.to_owned()));
    if ![OpSet::DATA, OpSet::ALL, NOTIFIED].contains(&spec.ops) {
        return Err(ParseError::new(format!(
            "-T {}: a path disk holds sync alone, which is fixed at the start: give it -T sync",
            format_ops(spec.ops)
        )));
    }
    if spec.range.is_some() {
        return refused("--range: a sync has no range; leave it out");
    }
    if spec.bandwidth.is_some() {
        return refused("--bandwidth: a sync has no length; give it a delay, such as -D 20ms");
    }
    if matches!(spec.effect, Effect::Fail { work: true, .. }) {
        return refused(FLOOR);
    }
    Ok(())
}

const FLOOR: &str =
    "--mode floor: the end of a call is not told, so a path disk can only add: leave it out";

#[cfg(test)]
mod tests {
    use crate::parse_injection;

    fn of_calls(words: &str) -> Result<String, String> {
        let rule = parse_injection(words).unwrap().rules.remove(0);
        let rule = rule.of_calls().map(|rule| rule.words);
        rule.map_err(|error| error.to_string())
    }

    #[test]
    fn a_rule_is_for_syncs_and_adds() {
        for (words, shown) in [
            ("-D 20ms", "-D 20ms -T sync --mode add"),
            ("-D 20ms:2 -T sync", "-D 20ms:2 -T sync --mode add"),
            ("-e EIO -T all --first 2", "-e EIO -T sync --first 2"),
            ("--hang -T flush -f 1%", "--hang -T sync -f 1%"),
        ] {
            assert_eq!(of_calls(words).as_deref(), Ok(shown));
        }
    }

    #[test]
    fn what_a_sync_cannot_have_is_refused() {
        for (words, message) in [
            ("-D 20ms -T write", "a path disk holds sync alone"),
            ("-D 20ms -T sync,trim", "a path disk holds sync alone"),
            ("-D 20ms --mode floor", "the end of a call is not told"),
            ("-e EIO --mode floor", "the end of a call is not told"),
            ("-D 20ms --range 0..1M", "a sync has no range"),
            ("--bandwidth 1M", "a sync has no length"),
        ] {
            let error = of_calls(words).unwrap_err();
            assert!(error.contains(message), "{words}: {error}");
        }
    }
}
