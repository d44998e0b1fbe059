//! Rules on path disks, whose zios are the calls of a program: the allowed options, and their words.

use dashpot_engine::inject::{Damage, Effect, Mode, RuleSpec};
use dashpot_engine::{CallErrno, Errno, Op, OpSet};

use super::TypedRule;
use super::damage::damage_words;
use super::words::words;
use crate::ParseError;
use crate::call_names::{calls_in, types_of};
use crate::calls::{call_types, format_types};
use crate::ops::format_ops;

const SYNC: OpSet = OpSet::of(Op::Sync);
const FLUSH: OpSet = OpSet::of(Op::Flush);

impl TypedRule {
    /// The same rule for the calls of a program. The kernel reports only calls of these `types` to dashpot;
    /// if the rule names no types, it applies to all of them. The rule holds a call before the kernel carries
    /// it out, because the kernel does not report the end of a call. Only a sync can be carried out before
    /// the hold, because dashpot itself can carry out a sync.
    pub fn of_calls(self, types: OpSet) -> Result<TypedRule, ParseError> {
        let TypedRule { spec, service, .. } = self;
        let ops = match spec.ops {
            OpSet::DATA | OpSet::ALL => types,
            // What `--short` can hit if the user names no types, as far as the disk holds it.
            ops if is_short(&spec.effect) && ops == Damage::Short.ops() && types.meets(ops) => {
                ops.without(ops.without(types))
            }
            ops if ops.meets(FLUSH) => ops.without(FLUSH).union(SYNC),
            ops => ops,
        };
        if let Effect::Damage(damage) = spec.effect
            && damage != Damage::Short
        {
            return Err(ParseError::new(format!(
                "{}: a path disk is above the page cache, where no disk damages data; use a disk with blocks, \
                 such as lossy:ram",
                damage_words(damage)
            )));
        }
        check_types(ops, types)?;
        let floor = self.asks_floor;
        let spec = RuleSpec {
            ops,
            mode: match spec.effect {
                Effect::Delay(_) | Effect::Pass if !floor => Mode::Add,
                _ => spec.mode,
            },
            effect: match spec.effect {
                Effect::Fail { errno, work, delay } => Effect::Fail {
                    errno: of_call(errno),
                    work,
                    delay,
                },
                effect => effect,
            },
            ..spec
        };
        check(&spec, floor)?;
        let mut words = words(&spec, &service);
        if floor && matches!(spec.effect, Effect::Delay(_)) {
            words += " --mode floor";
        }
        Ok(TypedRule {
            spec,
            words,
            service,
            asks_floor: floor,
        })
    }
}

fn is_short(effect: &Effect) -> bool {
    *effect == Effect::Damage(Damage::Short)
}

/// Turns an error into an error of a call, which reaches the program unchanged. (A daemon that shuts down
/// fails held calls with a plain `Errno::Shutdown`, which reaches the program as EIO.)
fn of_call(errno: Errno) -> Errno {
    CallErrno::of_name(errno.name()).map_or(errno, Errno::OfCall)
}

/// Whether a disk that holds calls of these `types` holds some of each kind that a rule names. A type and one of
/// its calls have calls in common.
fn is_held(ops: OpSet, types: OpSet) -> bool {
    let has = |one: OpSet| types.meets(one) || types_of(types).meets(one);
    let calls = calls_in(ops).fold(ops, |set, (_, _, own)| set.without(own));
    let ops_are = Op::ALL.into_iter().map(OpSet::of).chain([OpSet::FUA]);
    let mut ops_are = ops_are.filter(|one| calls.contains(*one));
    ops_are.all(has) && calls_in(ops).all(|(_, of, own)| types.meets(own.union(of)))
}

fn check_types(ops: OpSet, types: OpSet) -> Result<(), ParseError> {
    if is_held(ops, types) {
        return Ok(());
    }
    let known = OpSet::of_all(&call_types().collect::<Vec<Op>>());
    let asked = format_ops(ops);
    let armed = format_types(types);
    if !known.contains(types_of(ops)) {
        let words: Vec<&str> = call_types().map(Op::name).collect();
        let words = words.join(", ");
        return Err(ParseError::new(format!(
            "-T {asked}: a path disk has calls of the types {words} only; this disk was started with {armed}"
        )));
    }
    let wider = format_types(types.union(ops));
    Err(ParseError::new(format!(
        "-T {asked}: this disk can hold only {armed}, which was fixed when the program started: start it with \
         path:DIR,types={wider}"
    )))
}

fn check(spec: &RuleSpec, floor: bool) -> Result<(), ParseError> {
    let refused = |why: &str| Err(ParseError::new(why.to_owned()));
    let ops = types_of(spec.ops);
    if floor && ops != SYNC {
        return refused(
            "--mode floor: only a sync can be done before it is held, because the kernel does not tell when a \
             call ends: give the rule -T sync, or leave --mode out",
        );
    }
    let has = |op| ops.contains(OpSet::of(op));
    let moves = has(Op::Read) || has(Op::Write);
    if spec.range.is_some() && !moves && !has(Op::Sync) && !has(Op::Truncate) {
        return refused(
            "--range: only reads, writes, truncates and some syncs have a range; leave it out",
        );
    }
    if spec.bandwidth.is_some() && !moves {
        return refused(
            "--bandwidth: only reads and writes have a length; give the rule a delay, such as -D 20ms",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::disk::parse_store;
    use crate::{StoreConfig, parse_injection};

    fn of_calls(types: &str, words: &str) -> Result<String, String> {
        let store = parse_store(&format!("path:/a,types={types}")).unwrap();
        let StoreConfig::Path(files) = store else {
            panic!("{store}");
        };
        let rule = parse_injection(words).unwrap().rules.remove(0);
        let rule = rule.of_calls(files.types).map(|rule| rule.words);
        rule.map_err(|error| error.to_string())
    }

    #[test]
    fn a_rule_is_for_calls_and_adds_unless_a_sync_is_asked_to_floor() {
        for (types, words, shown) in [
            ("sync", "-D 20ms", "-D 20ms -T sync --mode add"),
            ("sync", "-D 20ms:2 -T sync", "-D 20ms:2 -T sync --mode add"),
            (
                "sync",
                "-e EIO -T all --first 2",
                "-e EIO -T sync --first 2",
            ),
            ("sync", "--hang -T flush -f 1%", "--hang -T sync -f 1%"),
            ("sync", "-D 9ms --mode floor", "-D 9ms -T sync --mode floor"),
            (
                "sync",
                "-e ESTALE --mode floor",
                "-e ESTALE --mode floor -T sync",
            ),
            ("sync,write", "-D 1ms", "-D 1ms -T write,sync --mode add"),
            ("all", "-e emfile -T open", "-e EMFILE -T open"),
            (
                "all,close",
                "-e EIO",
                "-e EIO -T read,write,sync,open,unlink,rename,truncate,link,mkdir,close",
            ),
            ("stat", "-D 1ms -T statx", "-D 1ms -T statx --mode add"),
            ("all", "--short", "--short -T read,write"),
            ("sync,write", "--short -f 1%", "--short -T write -f 1%"),
            (
                "all",
                "--short -T read --nth 3",
                "--short -T read --skip 2 --first 1",
            ),
            (
                "sync",
                "-D 1ms -T fdatasync",
                "-D 1ms -T fdatasync --mode add",
            ),
            ("fsync,write", "-D 1ms", "-D 1ms -T write,fsync --mode add"),
            ("fsync", "-D 1ms -T sync", "-D 1ms -T sync --mode add"),
            (
                "all",
                "-D 1ms -T fsync,msync --mode floor",
                "-D 1ms -T fsync,msync --mode floor",
            ),
            (
                "all",
                "-e EIO -T pwrite --range 0..1",
                "-e EIO -T pwrite64 --range 0..1",
            ),
            (
                "all",
                "-D 1ms -T write --range 0..1M",
                "-D 1ms -T write --range 0..1M --mode add",
            ),
            (
                "all",
                "--bandwidth 1M -T write",
                "--bandwidth 1M -T write --mode add",
            ),
        ] {
            assert_eq!(of_calls(types, words).as_deref(), Ok(shown), "{words}");
        }
    }

    #[test]
    fn what_a_call_cannot_have_is_refused() {
        for (types, words, message) in [
            (
                "sync",
                "-D 20ms -T write",
                "-T write: this disk can hold only sync, which was fixed when the program started: start it \
                 with path:DIR,types=sync,write",
            ),
            ("all", "-D 20ms -T stat", "this disk can hold only"),
            ("sync", "--short", "types=sync,write,read"),
            ("all", "--drop", "above the page cache"),
            ("stat", "-D 20ms -T getdents", "types=stat,getdents"),
            (
                "all",
                "-D 20ms -T trim",
                "a path disk has calls of the types",
            ),
            (
                "all",
                "-D 20ms -T fua",
                "a path disk has calls of the types",
            ),
            (
                "all",
                "-D 20ms --mode floor",
                "only a sync can be done before",
            ),
            (
                "all",
                "-e EIO -T write --mode floor",
                "only a sync can be done",
            ),
            ("all", "-D 20ms -T open --range 0..1M", "only reads, writes"),
            (
                "all",
                "-D 20ms -T openat --range 0..1M",
                "only reads, writes",
            ),
            (
                "all",
                "-D 1ms -T pwritev2 --mode floor",
                "only a sync can be done",
            ),
            (
                "fsync",
                "-D 1ms -T fdatasync",
                "this disk can hold only fsync, which was fixed when the program started: start it with \
                 path:DIR,types=fsync,fdatasync",
            ),
            (
                "all",
                "--bandwidth 1M -T sync",
                "only reads and writes have",
            ),
        ] {
            let error = of_calls(types, words).unwrap_err();
            assert!(error.contains(message), "{words}: {error}");
        }
    }
}
