//! The system calls that rules can name. A word that is both a type of calls and a call, such as `sync`, means
//! the type.

use dashpot_engine::{CallNumber, Op, OpSet};

const READ: OpSet = OpSet::of(Op::Read);
const WRITE: OpSet = OpSet::of(Op::Write);
const SYNC: OpSet = OpSet::of(Op::Sync);
const TRUNCATE: OpSet = OpSet::of(Op::Truncate);
const LINK: OpSet = OpSet::of(Op::Link);
const STAT: OpSet = OpSet::of(Op::Stat);
const READDIR: OpSet = OpSet::of(Op::Readdir);
const XATTR: OpSet = OpSet::of(Op::Xattr);
const COPIES: OpSet = READ.union(WRITE);

/// The calls with their types. The number of a call is its place here, counted from 1.
const CALLS: [(&str, OpSet); 57] = [
    ("fsync", SYNC),
    ("fdatasync", SYNC),
    ("sync_file_range", SYNC),
    ("msync", SYNC),
    ("syncfs", SYNC),
    ("pwritev2", WRITE.union(SYNC)),
    ("pread64", READ),
    ("readv", READ),
    ("preadv", READ),
    ("preadv2", READ),
    ("pwrite64", WRITE),
    ("writev", WRITE),
    ("pwritev", WRITE),
    ("sendfile", COPIES),
    ("splice", COPIES),
    ("copy_file_range", COPIES),
    ("ioctl", COPIES.union(TRUNCATE).union(SYNC)),
    ("creat", OpSet::of(Op::Open)),
    ("openat", OpSet::of(Op::Open)),
    ("openat2", OpSet::of(Op::Open)),
    ("rmdir", OpSet::of(Op::Unlink)),
    ("unlinkat", OpSet::of(Op::Unlink)),
    ("renameat", OpSet::of(Op::Rename)),
    ("renameat2", OpSet::of(Op::Rename)),
    ("ftruncate", TRUNCATE),
    ("fallocate", TRUNCATE),
    ("linkat", LINK),
    ("symlink", LINK),
    ("symlinkat", LINK),
    ("mkdirat", OpSet::of(Op::Mkdir)),
    ("lstat", STAT),
    ("fstat", STAT),
    ("newfstatat", STAT),
    ("statx", STAT),
    ("access", STAT),
    ("faccessat", STAT),
    ("faccessat2", STAT),
    ("statfs", STAT),
    ("fstatfs", STAT),
    ("getdents", READDIR),
    ("getdents64", READDIR),
    ("getxattr", XATTR),
    ("lgetxattr", XATTR),
    ("fgetxattr", XATTR),
    ("getxattrat", XATTR),
    ("setxattr", XATTR),
    ("lsetxattr", XATTR),
    ("fsetxattr", XATTR),
    ("setxattrat", XATTR),
    ("listxattr", XATTR),
    ("llistxattr", XATTR),
    ("flistxattr", XATTR),
    ("listxattrat", XATTR),
    ("removexattr", XATTR),
    ("lremovexattr", XATTR),
    ("fremovexattr", XATTR),
    ("removexattrat", XATTR),
];

/// The number of the call with this name, also with the name of its function in the C library. `None` if rules
/// cannot name the call.
pub fn call_number(name: &str) -> Option<CallNumber> {
    let name = match name {
        "pread" => "pread64",
        "pwrite" => "pwrite64",
        "posix_fallocate" => "fallocate",
        "fstatat" => "newfstatat",
        name => name,
    };
    let at = CALLS.iter().position(|(known, _)| *known == name)?;
    CallNumber::new(u8::try_from(at + 1).ok()?)
}

/// The name of a call. `None` for a number that no call has.
pub fn call_name(call: CallNumber) -> Option<&'static str> {
    let row = CALLS.get(usize::from(call.get()) - 1);
    row.map(|(name, _)| *name)
}

/// The calls in a set: their names, their types, and the sets of each alone.
pub(crate) fn calls_in(ops: OpSet) -> impl Iterator<Item = (&'static str, OpSet, OpSet)> {
    CALLS.iter().filter_map(move |(name, types)| {
        let own = OpSet::of_call(call_number(name)?);
        ops.contains(own).then_some((*name, *types, own))
    })
}

pub fn call_names(ops: OpSet) -> Vec<&'static str> {
    calls_in(ops).map(|(name, ..)| name).collect()
}

/// The set with each call replaced by its types.
pub(crate) fn types_of(ops: OpSet) -> OpSet {
    let calls = calls_in(ops);
    calls.fold(ops, |set, (_, types, own)| set.without(own).union(types))
}

#[cfg(test)]
mod tests {
    use super::{CALLS, call_name, call_names, call_number, types_of};
    use crate::calls::call_types;
    use dashpot_engine::OpSet;

    #[test]
    fn each_call_has_a_number_of_its_own() {
        let mut all = OpSet::EMPTY;
        for (name, types) in CALLS {
            let call = call_number(name).unwrap();
            assert_eq!(call_name(call), Some(name));
            let own = OpSet::of_call(call);
            assert!(!own.meets(all) && !own.meets(OpSet::EVERY), "{name}");
            assert_eq!((call_names(own), types_of(own)), (vec![name], types));
            all = all.union(own);
        }
        assert_eq!(call_names(all), CALLS.map(|(name, _)| name));
        assert_eq!(call_number("pread"), call_number("pread64"));
        // These words are types.
        for op in call_types() {
            assert_eq!(call_number(op.name()), None);
        }
    }
}
