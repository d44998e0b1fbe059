//! Sets of operations: `read,write,flush,fua,trim,zero,cache` and `all`; for calls of programs, also their
//! types, such as `open`. A disk has either `flush` or `sync`, and accepts either word for the one that it has.

use dashpot_engine::{Op, OpSet};

use super::ParseError;
use super::call_names::{call_names, call_number};
use super::calls::call_types;
use super::name::nearest;

/// The words for the operations of a disk with blocks, in display order. `fua` is not a separate operation,
/// but a write that asks for durability.
const WORDS: [(&str, OpSet); 7] = [
    (Op::Read.name(), OpSet::of(Op::Read)),
    (Op::Write.name(), OpSet::of(Op::Write)),
    (Op::Flush.name(), OpSet::of(Op::Flush)),
    ("fua", OpSet::FUA),
    (Op::Trim.name(), OpSet::of(Op::Trim)),
    (Op::Zero.name(), OpSet::of(Op::Zero)),
    (Op::Cache.name(), OpSet::of(Op::Cache)),
];

/// The words for the operations that only calls of programs have.
fn of_calls() -> impl Iterator<Item = (&'static str, OpSet)> {
    let ops = call_types().filter(|op| !op.is_of_blocks());
    ops.map(|op| (op.name(), OpSet::of(op)))
}

/// Parses a list of operations and of system calls, with commas between them.
pub(crate) fn parse_ops_and_calls(text: &str) -> Result<OpSet, ParseError> {
    text.split(',')
        .map(|word| match call_number(word) {
            Some(call) => Ok(OpSet::of_call(call)),
            None => parse_op_word(word, text),
        })
        .try_fold(OpSet::EMPTY, |set, one| Ok(set.union(one?)))
}

/// Parses a list of operations with commas between them.
pub fn parse_ops(text: &str) -> Result<OpSet, ParseError> {
    text.split(',')
        .map(|word| parse_op_word(word, text))
        .try_fold(OpSet::EMPTY, |set, one| Ok(set.union(one?)))
}

/// The words of a set.
pub fn format_ops(ops: OpSet) -> String {
    if ops == OpSet::ALL {
        return "all".to_owned();
    }
    let members = WORDS.into_iter().chain(of_calls());
    let members = members.filter(|(_, one)| ops.contains(*one));
    let mut words: Vec<&str> = members.map(|(word, _)| word).collect();
    words.extend(call_names(ops));
    words.join(",")
}

fn parse_op_word(word: &str, text: &str) -> Result<OpSet, ParseError> {
    if word == "all" {
        return Ok(OpSet::ALL);
    }
    let mut known = WORDS.into_iter().chain(of_calls());
    let known = known.find(|(known, _)| *known == word);
    known.map(|(_, set)| set).ok_or_else(|| {
        let those =
            meant(word).map_or("those".to_owned(), |op| format!("did you mean {op}? Those"));
        ParseError::new(format!(
            "'{word}' in '{text}' is not an operation: {those} are {} and all; on path disks {}",
            WORDS.map(|(word, _)| word).join(", "),
            call_types().map(Op::name).collect::<Vec<_>>().join(", ")
        ))
    })
}

/// The operation that the user probably means by an unknown word.
fn meant(word: &str) -> Option<&'static str> {
    let named = OTHER_WORDS.iter().find(|(other, _)| *other == word);
    let named = named.map(|(_, op)| op.name());
    named.or_else(|| nearest(word, WORDS.map(|(word, _)| word)))
}

/// The names that system calls, other tools and other disks have for operations.
const OTHER_WORDS: [(&str, Op); 7] = [
    ("fsync", Op::Sync),
    ("fdatasync", Op::Sync),
    ("discard", Op::Trim),
    ("unmap", Op::Trim),
    ("write-zeroes", Op::Zero),
    ("write_zeroes", Op::Zero),
    ("prefetch", Op::Cache),
];

#[cfg(test)]
mod tests {
    use super::{format_ops, parse_ops};
    use dashpot_engine::{Op, OpSet};

    #[test]
    fn lists_are_sets() {
        assert_eq!(parse_ops("write,read,zero,read"), Ok(OpSet::DATA));
        assert_eq!(parse_ops("fua"), Ok(OpSet::FUA));
        assert_eq!(parse_ops("sync"), Ok(OpSet::of(Op::Sync)));
        assert_eq!(parse_ops("read,all"), Ok(OpSet::ALL));
        assert_eq!(
            parse_ops("read,write,flush,fua,trim,zero,cache"),
            Ok(OpSet::ALL)
        );
        assert_eq!(
            format_ops(OpSet::of(Op::Trim).union(OpSet::FUA)),
            "fua,trim"
        );
    }

    #[test]
    fn unknown_operations_are_refused_with_the_known() {
        assert_eq!(
            parse_ops("read,writes").map_err(|e| e.to_string()),
            Err(
                "'writes' in 'read,writes' is not an operation: did you mean write? Those are read, \
                 write, flush, fua, trim, zero, cache and all; on path disks sync, write, read, open, unlink, \
                 rename, truncate, link, mkdir, close, stat, readdir, xattr"
                    .to_owned()
            )
        );
        for (word, meant) in [
            ("fsync", "did you mean sync?"),
            ("discard", "did you mean trim?"),
            ("raed", "did you mean read?"),
        ] {
            let error = parse_ops(word).unwrap_err().to_string();
            assert!(error.contains(meant), "{error}");
        }
        let unlike = parse_ops("everything").unwrap_err().to_string();
        assert!(!unlike.contains("did you mean"), "{unlike}");
        assert!(parse_ops("").is_err());
        assert!(parse_ops("read,").is_err());
    }
}
