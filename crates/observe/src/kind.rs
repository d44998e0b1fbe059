//! What an I/O does.

use dashpot_engine::{Op, OpSet};

/// An operation of dashpot's, or one that only the kernel's disks have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// One of dashpot's.
    Op(Op),
    /// Another one, such as a command of a driver.
    Other,
}

impl Kind {
    /// The kind that has this word. A word that dashpot does not know is [`Kind::Other`].
    pub fn of_word(word: &str) -> Kind {
        let op = Op::ALL.into_iter().find(|op| op.name() == word);
        op.map_or(Kind::Other, Kind::Op)
    }

    /// The kind that the kernel's letters stand for. An `F` before the operation asks for a flush
    /// first. Without an operation behind it, it is a flush.
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

    /// dashpot's word for it: `read`, `write`, `flush`, `trim`, `zero`, `cache`, or `other`.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Op(op) => op.name(),
            Kind::Other => "other",
        }
    }

    /// Whether it is one of these operations.
    pub fn is_any(self, ops: &[Op]) -> bool {
        matches!(self, Kind::Op(op) if ops.contains(&op))
    }

    /// Whether a set that a user has named takes it. Writes that ask for durability are counted with
    /// the other writes, so `fua` takes all writes.
    pub fn is_in(self, ops: OpSet) -> bool {
        match self {
            Kind::Op(op) => {
                ops.meets(OpSet::of(op)) || (op == Op::Write && ops.contains(OpSet::FUA))
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
