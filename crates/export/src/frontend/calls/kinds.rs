//! The system calls that the filter reports. From the arguments of a call, this module finds the types of the
//! call, and the files and bytes that the call acts on.

use dashpot_engine::{Op, OpSet};
use dashpot_rules::call_number;
use dashpot_sys::seccomp::{Notified, SystemCall, When, requests};

/// One operation that a call does on a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) op: Op,
    pub(super) target: Target,
    pub(super) range: Range,
}

/// The file that a call acts on. The numbers in the variants are indices of the call's arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// The file of a descriptor.
    Descriptor(usize),
    /// The file of a descriptor in memory, at the address that the argument gives.
    Pointed(usize),
    /// The files of the descriptors in a `struct file_dedupe_range` (include/uapi/linux/fs.h), whose address
    /// the argument gives. They get the same bytes as the file of the call's first argument.
    Deduplicated(usize),
    /// The file with this name.
    Named(Named),
    /// The files that are mapped at the address that the first argument gives.
    Mapped,
    /// All files in the same file system as the file of the descriptor in the first argument.
    FileSystem,
    /// All files.
    Everything,
}

/// A file name in the memory of the caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    /// The argument with the descriptor of the directory where a relative name starts; `None` for the working
    /// directory.
    pub(super) directory: Option<usize>,
    /// The argument with the address of the name.
    pub(super) path: usize,
    /// Whether the kernel follows a link at the end of the name.
    pub(super) follows: bool,
    /// Whether the directory acts as the root for this name, so that absolute names and links start there,
    /// too.
    pub(super) is_inside: bool,
    /// Whether an empty name stands for the file of the directory's descriptor itself.
    pub(super) may_be_empty: bool,
    /// The argument with the address of a `struct open_how`, which may change `follows` and `is_inside`.
    pub(super) how: Option<usize>,
}

/// The bytes that a call acts on. The numbers in the variants are indices of the call's arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum Range {
    /// The call has no range.
    None,
    /// `length` bytes, from the descriptor's position on.
    Here { length: usize },
    /// `length` bytes, from `offset` on.
    At { offset: usize, length: usize },
    /// As many bytes as the buffers of a list hold. The second argument is the list's address. The bytes
    /// begin at `offset`, or at the descriptor's position.
    Buffers { offset: Option<usize> },
    /// `length` bytes. The argument `offset` has the address of the first byte's offset. If the address is
    /// null, the bytes begin at the descriptor's position.
    Pointed { offset: usize, length: usize },
    /// The offset and the length are words in memory, this many bytes after the address that `at` gives.
    Stored { at: usize, offset: u64, length: u64 },
    /// The mapped part of the file.
    Mapped,
    /// A single place in the file: its new end.
    End(usize),
}

/// The operations that a call does on files.
pub(super) fn parts(call: SystemCall, arguments: &[u64; 6]) -> Vec<Part> {
    match call {
        SystemCall::Fsync
        | SystemCall::Fdatasync
        | SystemCall::SyncFileRange
        | SystemCall::Msync
        | SystemCall::Syncfs
        | SystemCall::Sync => vec![sync(call)],
        SystemCall::Pwritev2 => {
            let write = Part {
                op: Op::Write,
                ..vector(Op::Write, Some(3), arguments)
            };
            if arguments[5] as i32 & SYNCS != 0 {
                vec![
                    Part {
                        op: Op::Sync,
                        ..write
                    },
                    write,
                ]
            } else {
                vec![write]
            }
        }
        SystemCall::Read => vec![moves(Op::Read, 0, Range::Here { length: 2 })],
        SystemCall::Write => vec![moves(Op::Write, 0, Range::Here { length: 2 })],
        SystemCall::Pread64 => vec![moves(Op::Read, 0, AT)],
        SystemCall::Pwrite64 => vec![moves(Op::Write, 0, AT)],
        SystemCall::Readv => vec![vector(Op::Read, None, arguments)],
        SystemCall::Writev => vec![vector(Op::Write, None, arguments)],
        SystemCall::Preadv | SystemCall::Preadv2 => vec![vector(Op::Read, Some(3), arguments)],
        SystemCall::Pwritev => vec![vector(Op::Write, Some(3), arguments)],
        SystemCall::Sendfile | SystemCall::Splice | SystemCall::CopyFileRange => copied(call),
        SystemCall::Ftruncate => vec![moves(Op::Truncate, 0, Range::End(1))],
        SystemCall::Fallocate => {
            vec![moves(
                Op::Truncate,
                0,
                Range::At {
                    offset: 2,
                    length: 3,
                },
            )]
        }
        SystemCall::Close => vec![open(Op::Close)],
        SystemCall::Fstat | SystemCall::Fstatfs => vec![open(Op::Stat)],
        SystemCall::Getdents | SystemCall::Getdents64 => vec![open(Op::Readdir)],
        SystemCall::Fgetxattr
        | SystemCall::Fsetxattr
        | SystemCall::Flistxattr
        | SystemCall::Fremovexattr => vec![open(Op::Xattr)],
        SystemCall::Ioctl => requested(arguments),
        _ => named_parts(call, arguments),
    }
}

/// The operations of a call that copies bytes from one file to another.
fn copied(call: SystemCall) -> Vec<Part> {
    let at = |offset, length| Range::Pointed { offset, length };
    match call {
        SystemCall::Sendfile => vec![
            moves(Op::Write, 0, Range::Here { length: 3 }),
            moves(Op::Read, 1, at(2, 3)),
        ],
        _ => vec![moves(Op::Write, 2, at(3, 4)), moves(Op::Read, 0, at(1, 4))],
    }
}

/// The operations of an `ioctl`. A clone writes to the file of the call's descriptor, and a deduplication reads
/// that file.
fn requested(arguments: &[u64; 6]) -> Vec<Part> {
    let stored = |offset, length| Range::Stored {
        at: 2,
        offset,
        length,
    };
    let of = |op, target, range| Part { op, target, range };
    match arguments[1] as u32 {
        requests::CLONE => vec![open(Op::Write), moves(Op::Read, 2, Range::None)],
        requests::CLONE_RANGE => vec![
            moves(Op::Write, 0, stored(24, 16)),
            of(Op::Read, Target::Pointed(2), stored(8, 16)),
        ],
        requests::DEDUPE_RANGE => vec![
            of(Op::Write, Target::Deduplicated(2), Range::None),
            moves(Op::Read, 0, stored(0, 8)),
        ],
        requests::BTRFS_SYNC => vec![sync(SystemCall::Syncfs)],
        request if requests::ROOM.contains(&request) => {
            vec![open(Op::Truncate)]
        }
        _ => Vec::new(),
    }
}

/// The operations of a call whose arguments point to the names of its files.
fn named_parts(call: SystemCall, arguments: &[u64; 6]) -> Vec<Part> {
    let follows = |flags: usize| arguments[flags] as i32 & libc_flags::O_NOFOLLOW == 0;
    match call {
        SystemCall::Open => vec![named(Op::Open, None, 0, follows(1))],
        SystemCall::Creat => vec![named(Op::Open, None, 0, true)],
        SystemCall::Openat => vec![named(Op::Open, Some(0), 1, follows(2))],
        SystemCall::Openat2 => vec![with_how(named(Op::Open, Some(0), 1, true), 2)],
        SystemCall::Unlink | SystemCall::Rmdir => vec![named(Op::Unlink, None, 0, false)],
        SystemCall::Unlinkat => vec![named(Op::Unlink, Some(0), 1, false)],
        SystemCall::Rename => vec![
            named(Op::Rename, None, 0, false),
            named(Op::Rename, None, 1, false),
        ],
        SystemCall::Renameat | SystemCall::Renameat2 => vec![
            named(Op::Rename, Some(0), 1, false),
            named(Op::Rename, Some(2), 3, false),
        ],
        SystemCall::Truncate => vec![Part {
            range: Range::End(1),
            ..named(Op::Truncate, None, 0, true)
        }],
        SystemCall::Link => vec![
            named(Op::Link, None, 0, false),
            named(Op::Link, None, 1, false),
        ],
        SystemCall::Linkat => {
            let follows = arguments[4] as i32 & AT_SYMLINK_FOLLOW != 0;
            vec![
                or_open(named(Op::Link, Some(0), 1, follows), arguments[4]),
                named(Op::Link, Some(2), 3, false),
            ]
        }
        SystemCall::Symlink => vec![named(Op::Link, None, 1, false)],
        SystemCall::Symlinkat => vec![named(Op::Link, Some(1), 2, false)],
        SystemCall::Mkdir => vec![named(Op::Mkdir, None, 0, false)],
        SystemCall::Mkdirat => vec![named(Op::Mkdir, Some(0), 1, false)],
        SystemCall::Stat | SystemCall::Access | SystemCall::Statfs => {
            vec![named(Op::Stat, None, 0, true)]
        }
        SystemCall::Lstat => vec![named(Op::Stat, None, 0, false)],
        SystemCall::Faccessat => vec![named(Op::Stat, Some(0), 1, true)],
        SystemCall::Newfstatat | SystemCall::Faccessat2 => vec![at(Op::Stat, arguments[3])],
        SystemCall::Statx => vec![at(Op::Stat, arguments[2])],
        SystemCall::Getxattr
        | SystemCall::Setxattr
        | SystemCall::Listxattr
        | SystemCall::Removexattr => vec![named(Op::Xattr, None, 0, true)],
        SystemCall::Lgetxattr
        | SystemCall::Lsetxattr
        | SystemCall::Llistxattr
        | SystemCall::Lremovexattr => vec![named(Op::Xattr, None, 0, false)],
        SystemCall::Getxattrat
        | SystemCall::Setxattrat
        | SystemCall::Listxattrat
        | SystemCall::Removexattrat => vec![at(Op::Xattr, arguments[2])],
        _ => Vec::new(),
    }
}

/// An operation on the file of the descriptor in the first argument.
fn open(op: Op) -> Part {
    moves(op, 0, Range::None)
}

/// An operation on the file whose directory and name the first two arguments give, with flags such as
/// `AT_SYMLINK_NOFOLLOW`.
fn at(op: Op, flags: u64) -> Part {
    let follows = flags as i32 & AT_SYMLINK_NOFOLLOW == 0;
    or_open(named(op, Some(0), 1, follows), flags)
}

/// With the flag `AT_EMPTY_PATH`, the name of this part may be empty.
fn or_open(part: Part, flags: u64) -> Part {
    let target = match part.target {
        Target::Named(named) => Target::Named(Named {
            may_be_empty: flags as i32 & AT_EMPTY_PATH != 0,
            ..named
        }),
        target => target,
    };
    Part { target, ..part }
}

fn sync(call: SystemCall) -> Part {
    let (target, range) = match call {
        SystemCall::SyncFileRange => (
            Target::Descriptor(0),
            Range::At {
                offset: 1,
                length: 2,
            },
        ),
        SystemCall::Msync => (Target::Mapped, Range::Mapped),
        SystemCall::Syncfs => (Target::FileSystem, Range::None),
        SystemCall::Sync => (Target::Everything, Range::None),
        _ => (Target::Descriptor(0), Range::None),
    };
    Part {
        op: Op::Sync,
        target,
        range,
    }
}

fn moves(op: Op, descriptor: usize, range: Range) -> Part {
    Part {
        op,
        target: Target::Descriptor(descriptor),
        range,
    }
}

fn vector(op: Op, offset: Option<usize>, arguments: &[u64; 6]) -> Part {
    // An offset of -1 stands for the position of the descriptor.
    let offset = offset.filter(|at| arguments[*at] != u64::MAX);
    moves(op, 0, Range::Buffers { offset })
}

fn named(op: Op, directory: Option<usize>, path: usize, follows: bool) -> Part {
    let target = Target::Named(Named {
        directory,
        path,
        follows,
        is_inside: false,
        may_be_empty: false,
        how: None,
    });
    Part {
        op,
        target,
        range: Range::None,
    }
}

fn with_how(part: Part, argument: usize) -> Part {
    let target = match part.target {
        Target::Named(named) => Target::Named(Named {
            how: Some(argument),
            ..named
        }),
        target => target,
    };
    Part { target, ..part }
}

/// The calls that the filter must report if disks hold calls of these types. Some of the calls are only
/// counted, because they reach files in ways that dashpot cannot hold.
pub fn notified_calls(types: OpSet) -> Vec<Notified> {
    let calls = SystemCall::ALL.into_iter();
    calls.filter_map(|call| notified(call, types)).collect()
}

fn notified(call: SystemCall, types: OpSet) -> Option<Notified> {
    let own = call_number(call.name()).map_or(OpSet::EMPTY, OpSet::of_call);
    let has = |op| types.meets(OpSet::of(op).union(own));
    let when = match call {
        SystemCall::Msync => has(Op::Sync).then_some(When::Syncs),
        SystemCall::Pwritev2 if has(Op::Write) => Some(When::Always),
        SystemCall::Pwritev2 | SystemCall::SyncFileRange => has(Op::Sync).then_some(When::Syncs),
        SystemCall::Open | SystemCall::Openat | SystemCall::Openat2 if has(Op::Open) => {
            Some(When::Always)
        }
        SystemCall::Open | SystemCall::Openat | SystemCall::Openat2 => {
            has(Op::Sync).then_some(When::Syncs)
        }
        SystemCall::OpenByHandleAt => has(Op::Open).then_some(When::Always),
        SystemCall::Mmap if has(Op::Read) => Some(When::ReachesFile),
        SystemCall::Mmap if has(Op::Write) => Some(When::WritesFile),
        SystemCall::Mmap => has(Op::Sync).then_some(When::Syncs),
        SystemCall::Ioctl => [Op::Read, Op::Write, Op::Truncate, Op::Sync]
            .into_iter()
            .any(has)
            .then_some(When::Always),
        SystemCall::IoSetup
        | SystemCall::IoSubmit
        | SystemCall::IoUringSetup
        | SystemCall::Execve
        | SystemCall::Execveat => Some(When::Always),
        _ => {
            let parts = parts(call, &[0; 6]);
            let is_asked = parts.iter().any(|part| has(part.op));
            is_asked.then_some(When::Always)
        }
    };
    when.map(|when| Notified { call, when })
}

/// The flags in arguments, from the kernel's include/uapi. O_NOFOLLOW has another value on ARM64.
pub(super) mod libc_flags {
    use rustix::fs::OFlags;

    pub(in super::super) const O_NOFOLLOW: i32 = OFlags::NOFOLLOW.bits().cast_signed();
    /// This flag is also a part of `O_SYNC`.
    pub(in super::super) const O_DSYNC: i32 = OFlags::DSYNC.bits().cast_signed();
    pub(in super::super) const O_APPEND: i32 = OFlags::APPEND.bits().cast_signed();
}

const AT: Range = Range::At {
    offset: 3,
    length: 2,
};
/// The flags of calls with a directory and a name, from include/uapi/linux/fcntl.h.
const AT_SYMLINK_NOFOLLOW: i32 = 0x100;
const AT_SYMLINK_FOLLOW: i32 = 0x400;
const AT_EMPTY_PATH: i32 = 0x1000;
/// `RWF_DSYNC` and `RWF_SYNC`.
pub(super) const SYNCS: i32 = 0x2 | 0x4;
