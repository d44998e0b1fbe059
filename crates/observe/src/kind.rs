//! The operation of an I/O.

use dashpot_engine::{Op, OpSet};

/// An operation that dashpot knows, or another operation of the kernel's disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An operation that dashpot knows.
    Op(Op),
    /// Another operation, such as a driver's command.
    Other,
}

impl Kind {
    /// The kind with this word. A word that dashpot does not know gives [`Kind::Other`].
    pub fn of_word(word: &str) -> Kind {
        let op = Op::ALL.into_iter().find(|op| op.name() == word);
        op.map_or(Kind::Other, Kind::Op)
    }

    /// The kind for the kernel's letters. An `F` before the operation asks for a flush first. An `F` without
    /// an operation is a flush.
    pub fn of_letters(rwbs: &[u8]) -> Kind {
        let flushes = rwbs.iter().take_while(|&&letter| letter == b'F').count();
        match (&rwbs[flushes..], flushes) {
            ([b'R', ..], _) => Kind::Op(Op::Read),
            ([b'W', b'Z', ..], _) => Kind::Op(Op::Zero),
            ([b'W', ..], _) => Kind::Op(Op::Write),
            ([b'D', ..], _) => Kind::Op(Op::Trim),
            (_, 1..) => Kind::Op(Op::Flush),
            _ => Kind::Other,
        }
    }

    /// dashpot's word: the name of the operation, such as `read`, or `other`.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Op(op) => op.name(),
            Kind::Other => "other",
        }
    }

    /// The words of all kinds.
    pub(crate) fn words() -> Vec<&'static str> {
        let ops = Op::ALL.into_iter().map(Kind::Op);
        ops.chain([Kind::Other]).map(Kind::word).collect()
    }

    /// Whether this kind is one of these operations.
    pub fn is_any(self, ops: &[Op]) -> bool {
        matches!(self, Kind::Op(op) if ops.contains(&op))
    }

    /// Whether a user's set of operations contains this kind. A kind does not say whether a write must be
    /// durable, so a set with `fua` contains all writes.
    pub fn is_in(self, ops: OpSet) -> bool {
        match self {
            Kind::Op(op) => {
                ops.means(OpSet::of(op)) || (op == Op::Write && ops.contains(OpSet::FUA))
            }
            Kind::Other => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;
    use dashpot_engine::{Op, OpSet};

    #[test]
    fn letters_have_dashpots_words() {
        for (letters, word) in [
            ("R", "read"),
            ("RAM", "read"),
            ("WS", "write"),
            ("FWFS", "write"),
            ("WZ", "zero"),
            ("DS", "trim"),
            ("F", "flush"),
            ("FF", "flush"),
            ("FS", "flush"),
            ("N", "other"),
            ("", "other"),
        ] {
            let kind = Kind::of_letters(letters.as_bytes());
            assert_eq!(kind.word(), word, "{letters}");
            assert_eq!(Kind::of_word(word), kind, "{letters}");
        }
    }

    #[test]
    fn a_set_takes_its_members_and_fua_takes_writes() {
        let write = Kind::Op(Op::Write);
        assert!(write.is_in(OpSet::of(Op::Write)) && write.is_in(OpSet::FUA));
        assert!(!write.is_in(OpSet::of(Op::Read)));
        assert!(!Kind::Op(Op::Zero).is_in(OpSet::FUA));
        assert!(!Kind::Other.is_in(OpSet::ALL));
    }
}
