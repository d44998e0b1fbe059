//! Rules on disks with blocks, which may not use operations and errors that only the calls of programs have.

use dashpot_engine::inject::{Damage, Effect};
use dashpot_engine::{Op, OpSet};

use super::TypedRule;
use crate::ParseError;
use crate::call_names::calls_in;
use crate::errno::check_carried;
use crate::ops::format_ops;

impl TypedRule {
    /// Refuses a rule that only makes sense for the calls of a program, and a rule for flushes that depends on
    /// the range or the length that a flush does not have.
    pub fn check_of_blocks(&self) -> Result<(), ParseError> {
        if self.spec.ops == OpSet::of(Op::Flush) {
            self.check_of_flushes()?;
        }
        match self.spec.effect {
            Effect::Fail { errno, .. } => check_carried(errno)?,
            Effect::Damage(Damage::Short) => {
                return Err(ParseError::new(
                    "--short: only the calls of a program can be short, because a block device has no word for \
                     it; give a disk a path:DIR store",
                ));
            }
            _ => {}
        }
        let of_calls = Op::ALL.into_iter().filter(|op| !op.is_of_blocks());
        let asked = of_calls.filter(|op| self.spec.ops.contains(OpSet::of(*op)));
        let asked = asked.fold(OpSet::EMPTY, |set, op| set.union(OpSet::of(op)));
        let asked = calls_in(self.spec.ops).fold(asked, |set, (_, _, own)| set.union(own));
        if asked == OpSet::EMPTY {
            return Ok(());
        }
        Err(ParseError::new(format!(
            "-T {}: only the calls of a program have that; leave it out, or give a disk a path:DIR store",
            format_ops(asked)
        )))
    }

    /// Refuses a rule that only makes sense on a disk with another kind of store.
    pub fn check_of_store(&self, store: &str) -> Result<(), ParseError> {
        if self.spec.effect == Effect::Damage(Damage::Lie) && !store.starts_with("lossy") {
            return Err(ParseError::new(format!(
                "--lie: a flush can only fail to make data durable if the disk has a cache to lose; give the disk a \
                 lossy:{store} store"
            )));
        }
        Ok(())
    }

    fn check_of_flushes(&self) -> Result<(), ParseError> {
        let why = if self.spec.range.is_some() {
            "--range: a flush has no range; leave it out"
        } else if self.spec.bandwidth.is_some() {
            "--bandwidth: a flush has no length; give the rule a delay, such as -D 20ms"
        } else {
            return Ok(());
        };
        Err(ParseError::new(why.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use crate::parse_injection;

    #[test]
    fn calls_and_their_errors_are_refused() {
        for (words, message) in [
            (
                "-D 1ms -T write,open,rename",
                "-T open,rename: only the calls of a program have that",
            ),
            ("--short", "only the calls of a program can be short"),
            (
                "-D 1ms -T fsync",
                "-T fsync: only the calls of a program have that",
            ),
            ("-e ETIMEDOUT", "NBD cannot carry 'ETIMEDOUT'"),
            ("-D 1ms -T flush --range 0..1M", "a flush has no range"),
            ("--bandwidth 1M -T flush", "a flush has no length"),
        ] {
            let rule = parse_injection(words).unwrap().rules.remove(0);
            let error = rule.check_of_blocks().unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        for words in ["-e EIO -T all", "-D 1ms -T write,flush --range 0..1M"] {
            let rule = parse_injection(words).unwrap().rules.remove(0);
            assert!(rule.check_of_blocks().is_ok());
        }
    }
}
