//! One I/O inside the engine: its operation, disk, client and range. A zio carries no bytes.
//!
//! The word "zio" comes from ZFS (`zio_t`). The operations are those that NBD has for a block device, and
//! those that programs perform on files with system calls.

use core::num::NonZeroU8;

use crate::client::ClientId;
use crate::errno::CallErrno;
use crate::time::Instant;

/// The id of a zio, from its submission until the engine has forgotten it. The caller chooses the ids of
/// clients' zios. They must be below [`ZioId::FIRST_CHILD`], and small with few gaps, because the engine uses
/// them as indices. The engine chooses the ids of zios that a pool sends to its disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZioId(pub u32);

impl ZioId {
    /// The first id that the engine gives to the zios of its pools.
    pub const FIRST_CHILD: ZioId = ZioId(1 << 31);

    /// Whether this is a zio that the engine has made for a disk of a pool.
    pub const fn is_child(self) -> bool {
        self.0 >= ZioId::FIRST_CHILD.0
    }

    /// The id that this zio has among the children, if it is a child.
    pub(crate) fn inner(self) -> Option<ZioId> {
        self.is_child()
            .then(|| ZioId(self.0 - ZioId::FIRST_CHILD.0))
    }

    /// The id by which the driver knows a child.
    pub(crate) fn outer(self) -> ZioId {
        ZioId(self.0 + ZioId::FIRST_CHILD.0)
    }
}

/// The id of a disk of one engine. Ids count from 0, in the order of calls of [`crate::Engine::add_disk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskId(pub u32);

/// The id of a pool of one engine. Ids count from 0, in the order of calls of [`crate::Engine::add_pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u32);

/// The id of a volume of one engine. Ids count from 0, in the order of calls of
/// [`crate::Engine::add_volume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(pub u32);

/// Declares the operations, one row for each: its meaning and its word. The operations of block devices come
/// first.
macro_rules! ops {
    (
        blocks { $($(#[$of_block:meta])* $block:ident = $block_word:literal,)* }
        calls { $($(#[$of_call:meta])* $call:ident = $call_word:literal,)* }
    ) => {
        /// The operation of a zio.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Op {
            $($(#[$of_block])* $block,)*
            $($(#[$of_call])* $call,)*
        }

        impl Op {
            /// Every operation, in display order.
            pub const ALL: [Op; [$($block_word,)* $($call_word),*].len()] =
                [$(Op::$block,)* $(Op::$call),*];

            /// The operations of block devices, in display order.
            pub const OF_BLOCKS: [Op; [$($block_word),*].len()] = [$(Op::$block),*];

            /// The operation's word in rules, reports and the API.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Op::$block => $block_word,)*
                    $(Op::$call => $call_word,)*
                }
            }
        }
    };
}

ops! {
    blocks {
        /// Reads bytes.
        Read = "read",
        /// Writes bytes.
        Write = "write",
        /// Makes earlier acknowledged writes durable.
        Flush = "flush",
        /// Tells the device that the content of a range is no longer needed.
        Trim = "trim",
        /// Writes zeroes, without a payload.
        Zero = "zero",
        /// Asks the device to read a range ahead into its cache.
        Cache = "cache",
    }
    calls {
        /// A program opens a file.
        Open = "open",
        /// A program removes a name of a file or of a directory.
        Unlink = "unlink",
        /// A program renames a file or a directory.
        Rename = "rename",
        /// A program changes the length or the space of a file.
        Truncate = "truncate",
        /// A program makes earlier writes to a file durable, as a flush does for a block device.
        Sync = "sync",
        /// A program gives a file another name, or makes a symbolic link.
        Link = "link",
        /// A program makes a directory.
        Mkdir = "mkdir",
        /// A program closes a descriptor of a file.
        Close = "close",
        /// A program asks for facts about a file or its file system.
        Stat = "stat",
        /// A program reads the entries of a directory.
        Readdir = "readdir",
        /// A program reads, lists or changes the extended attributes of a file.
        Xattr = "xattr",
    }
}

impl Op {
    /// Whether this is an operation of block devices, too.
    pub const fn is_of_blocks(self) -> bool {
        (self as usize) < Op::OF_BLOCKS.len()
    }
}

/// The number of the system call that a program's zio is. The caller of the engine gives each call a number
/// from 1 to [`CallNumber::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallNumber(NonZeroU8);

impl CallNumber {
    /// The largest number.
    pub const MAX: u8 = u64::BITS as u8;

    pub const fn new(number: u8) -> Option<CallNumber> {
        match NonZeroU8::new(number) {
            Some(number) if number.get() <= CallNumber::MAX => Some(CallNumber(number)),
            _ => None,
        }
    }

    pub const fn get(self) -> u8 {
        self.0.get()
    }
}

/// A set of operations. Some possible members are no operations of their own: `fua` stands for any write, zero
/// or trim that asks for durability, and a call for those operations that are this system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpSet {
    /// A bit for each operation, and one for `fua`.
    ops: u32,
    /// A bit for each system call.
    calls: u64,
}

impl OpSet {
    /// No operation.
    pub const EMPTY: OpSet = OpSet { ops: 0, calls: 0 };
    /// Writes, zeroes and trims that ask for durability.
    pub const FUA: OpSet = OpSet {
        ops: 1 << 31,
        ..OpSet::EMPTY
    };
    /// Every operation of block devices.
    pub const ALL: OpSet = OpSet::of_all(&Op::OF_BLOCKS).union(OpSet::FUA);
    /// Every operation.
    pub const EVERY: OpSet = OpSet::of_all(&Op::ALL).union(OpSet::FUA);
    /// The operations that a rule matches if the user names none: read, write, zero.
    pub const DATA: OpSet = OpSet::of_all(&[Op::Read, Op::Write, Op::Zero]);

    /// The set of one operation.
    pub const fn of(op: Op) -> OpSet {
        OpSet {
            ops: 1 << op as u32,
            calls: 0,
        }
    }

    /// The set of these operations.
    pub const fn of_all(mut ops: &[Op]) -> OpSet {
        let mut set = OpSet::EMPTY;
        while let [op, rest @ ..] = ops {
            set = set.union(OpSet::of(*op));
            ops = rest;
        }
        set
    }

    /// The set of the operations that are this system call.
    pub const fn of_call(call: CallNumber) -> OpSet {
        OpSet {
            ops: 0,
            calls: 1 << (call.get() - 1),
        }
    }

    /// The members of `self` and those of `other`.
    pub const fn union(self, other: OpSet) -> OpSet {
        OpSet {
            ops: self.ops | other.ops,
            calls: self.calls | other.calls,
        }
    }

    /// Whether the sets share a member.
    pub const fn meets(self, other: OpSet) -> bool {
        self.ops & other.ops != 0 || self.calls & other.calls != 0
    }

    /// Whether a user who asks for `self` means a member of `other`. A user who asks for the flushes of a
    /// block device also means the syncs of programs, and the reverse.
    pub const fn means(self, other: OpSet) -> bool {
        let syncs = OpSet::of(Op::Flush).union(OpSet::of(Op::Sync));
        self.meets(other) || (self.meets(syncs) && other.meets(syncs))
    }

    /// The members of `self` that `other` does not have.
    pub const fn without(self, other: OpSet) -> OpSet {
        OpSet {
            ops: self.ops & !other.ops,
            calls: self.calls & !other.calls,
        }
    }

    /// Whether `self` has every member of `other`.
    pub const fn contains(self, other: OpSet) -> bool {
        other.without(self).ops == 0 && other.without(self).calls == 0
    }
}

/// One I/O to a disk or to a volume, received completely (header and payload) and ready to be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zio<D = DiskId> {
    pub id: ZioId,
    /// The zio's disk or volume.
    pub device: D,
    /// The client that sent the zio.
    pub client: ClientId,
    /// The zio's operation.
    pub op: Op,
    /// Whether the zio must be durable before it is acknowledged.
    pub fua: bool,
    /// The system call that the zio is, if a program made it.
    pub call: Option<CallNumber>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
    /// When the zio's header was received. The payload may have arrived later.
    pub arrived: Instant,
}

impl<D> Zio<D> {
    /// The members of an [`OpSet`] that match this zio.
    pub(crate) fn ops(&self) -> OpSet {
        let op = OpSet::of(self.op);
        let op = if self.fua { op.union(OpSet::FUA) } else { op };
        match self.call {
            Some(call) => op.union(OpSet::of_call(call)),
            None => op,
        }
    }
}

/// An error that a client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Errno {
    /// Not permitted: a write to a read-only disk.
    Perm,
    /// Input or output error.
    Io,
    /// Out of memory.
    NoMem,
    /// Invalid argument.
    Inval,
    /// No space left.
    NoSpc,
    /// Value too large.
    Overflow,
    /// Not supported.
    NotSup,
    /// The server is shutting down.
    Shutdown,
    /// An error that NBD cannot carry, for a program's system call.
    OfCall(CallErrno),
}

impl Errno {
    /// The errors that NBD can carry, in the order of their numbers on Linux.
    pub const ALL: [Errno; 8] = [
        Errno::Perm,
        Errno::Io,
        Errno::NoMem,
        Errno::Inval,
        Errno::NoSpc,
        Errno::Overflow,
        Errno::NotSup,
        Errno::Shutdown,
    ];

    /// The error's name in C.
    pub const fn name(self) -> &'static str {
        match self {
            Errno::Perm => "EPERM",
            Errno::Io => "EIO",
            Errno::NoMem => "ENOMEM",
            Errno::Inval => "EINVAL",
            Errno::NoSpc => "ENOSPC",
            Errno::Overflow => "EOVERFLOW",
            Errno::NotSup => "ENOTSUP",
            Errno::Shutdown => "ESHUTDOWN",
            Errno::OfCall(errno) => errno.name(),
        }
    }
}

/// The result of a zio.
pub type Outcome = Result<(), Errno>;
