//! The numbers of the notified calls, for native programs and for programs of another word size.
//!
//! A filter that looked only for the numbers of 64-bit programs would overlook all calls of 32-bit programs.
//! The numbers come from the kernel's arch/*/entry/syscalls tables and include/uapi/linux/audit.h.

/// A system call that a filter can notify. To notify a call means to report it to the filter's listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SystemCall {
    /// `fsync(2)`
    Fsync,
    /// `fdatasync(2)`
    Fdatasync,
    /// `sync_file_range(2)` that waits
    SyncFileRange,
    /// `msync(2)` with `MS_SYNC`
    Msync,
    /// `syncfs(2)`
    Syncfs,
    /// `sync(2)`
    Sync,
    /// `pwritev2(2)`
    Pwritev2,
    /// `read(2)`
    Read,
    /// `pread64(2)`
    Pread64,
    /// `readv(2)`
    Readv,
    /// `preadv(2)`
    Preadv,
    /// `preadv2(2)`
    Preadv2,
    /// `write(2)`
    Write,
    /// `pwrite64(2)`
    Pwrite64,
    /// `writev(2)`
    Writev,
    /// `pwritev(2)`
    Pwritev,
    /// `sendfile(2)`
    Sendfile,
    /// `splice(2)`
    Splice,
    /// `copy_file_range(2)`
    CopyFileRange,
    /// `open(2)`
    Open,
    /// `creat(2)`
    Creat,
    /// `openat(2)`
    Openat,
    /// `openat2(2)`
    Openat2,
    /// `unlink(2)`
    Unlink,
    /// `rmdir(2)`
    Rmdir,
    /// `unlinkat(2)`
    Unlinkat,
    /// `rename(2)`
    Rename,
    /// `renameat(2)`
    Renameat,
    /// `renameat2(2)`
    Renameat2,
    /// `truncate(2)`
    Truncate,
    /// `ftruncate(2)`
    Ftruncate,
    /// `fallocate(2)`
    Fallocate,
    /// `ioctl(2)` with one of [`REQUESTS`]
    Ioctl,
    /// `mmap(2)` of a file
    Mmap,
    /// `open_by_handle_at(2)`
    OpenByHandleAt,
    /// `io_setup(2)`
    IoSetup,
    /// `io_submit(2)`
    IoSubmit,
    /// `io_uring_setup(2)`
    IoUringSetup,
    /// `execve(2)`
    Execve,
    /// `execveat(2)`
    Execveat,
}

/// The name of a call, and its numbers in each ABI.
#[expect(dead_code, reason = "each machine reads its own columns")]
#[derive(Debug)]
pub(super) struct Row {
    name: &'static str,
    x86_64: &'static [u32],
    arm64: &'static [u32],
    /// The call's numbers for programs of the x32 ABI on x86-64.
    x32: &'static [u32],
    /// The call's numbers for 32-bit programs on x86-64.
    i386: &'static [u32],
    /// The call's numbers for 32-bit programs on ARM64.
    arm: &'static [u32],
}

impl SystemCall {
    pub const ALL: [SystemCall; 40] = [
        SystemCall::Fsync,
        SystemCall::Fdatasync,
        SystemCall::SyncFileRange,
        SystemCall::Msync,
        SystemCall::Syncfs,
        SystemCall::Sync,
        SystemCall::Pwritev2,
        SystemCall::Read,
        SystemCall::Pread64,
        SystemCall::Readv,
        SystemCall::Preadv,
        SystemCall::Preadv2,
        SystemCall::Write,
        SystemCall::Pwrite64,
        SystemCall::Writev,
        SystemCall::Pwritev,
        SystemCall::Sendfile,
        SystemCall::Splice,
        SystemCall::CopyFileRange,
        SystemCall::Open,
        SystemCall::Creat,
        SystemCall::Openat,
        SystemCall::Openat2,
        SystemCall::Unlink,
        SystemCall::Rmdir,
        SystemCall::Unlinkat,
        SystemCall::Rename,
        SystemCall::Renameat,
        SystemCall::Renameat2,
        SystemCall::Truncate,
        SystemCall::Ftruncate,
        SystemCall::Fallocate,
        SystemCall::Ioctl,
        SystemCall::Mmap,
        SystemCall::OpenByHandleAt,
        SystemCall::IoSetup,
        SystemCall::IoSubmit,
        SystemCall::IoUringSetup,
        SystemCall::Execve,
        SystemCall::Execveat,
    ];

    /// The call's name, as in the manual.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether this machine's programs have the call.
    pub fn exists(self) -> bool {
        NUMBERINGS
            .iter()
            .any(|numbering| numbering.abi == Abi::Native && !self.numbers(numbering).is_empty())
    }

    /// The call's numbers in an ABI. There are none if the ABI does not have the call, or if the ABI is
    /// foreign and dashpot only counts the call.
    pub(super) fn numbers(self, numbering: &Numbering) -> &'static [u32] {
        (numbering.numbers)(self.row())
    }

    /// The conditions that a call must meet to be notified. Empty if the call is notified whatever its
    /// arguments are. Programs of another word size pass the flags of some calls in other arguments, so such
    /// a call is notified whatever its flags are.
    pub(super) fn conditions(self, when: When, abi: Abi) -> &'static [Condition] {
        match (self, when) {
            (SystemCall::Ioctl, _) => const { &[Condition::OneOf(1, &REQUESTS)] },
            (SystemCall::Mmap, When::ReachesFile) => const { &[none(3, libc::MAP_ANONYMOUS)] },
            (SystemCall::Mmap, When::WritesFile) => {
                const {
                    &[
                        any(2, libc::PROT_WRITE),
                        // MAP_SHARED_VALIDATE also has this bit.
                        any(3, libc::MAP_SHARED),
                        none(3, libc::MAP_ANONYMOUS),
                    ]
                }
            }
            (_, When::Always) => &[],
            (SystemCall::Mmap, _) => {
                const { &[any(3, libc::MAP_SYNC), none(3, libc::MAP_ANONYMOUS)] }
            }
            (SystemCall::SyncFileRange, _) if abi == Abi::Native => const { &[any(3, WAITS)] },
            (SystemCall::Msync, _) => const { &[any(2, libc::MS_SYNC)] },
            (SystemCall::Pwritev2, _) => const { &[any(5, libc::RWF_SYNC | libc::RWF_DSYNC)] },
            (SystemCall::Open, _) => const { &[any(1, libc::O_DSYNC)] },
            (SystemCall::Openat, _) => const { &[any(2, libc::O_DSYNC)] },
            _ => &[],
        }
    }

    fn row(self) -> &'static Row {
        table(self)
    }
}

/// The calls that a filter notifies among those with one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All of them, but of `ioctl` only those with one of [`REQUESTS`].
    Always,
    /// If the call has flags that can make data durable: those that have such a flag. Otherwise all.
    Syncs,
    /// Of `mmap`, those that let the program change a file by writing to memory.
    WritesFile,
    /// Of `mmap`, those that let the program reach a file in any way.
    ReachesFile,
}

/// A condition on one argument of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition {
    /// The argument must have at least one of these flags.
    Any(usize, u32),
    /// The argument must have none of these flags.
    None(usize, u32),
    /// The argument must be one of these numbers.
    OneOf(usize, &'static [u32]),
}

const fn any(argument: usize, bits: i32) -> Condition {
    Condition::Any(argument, bits.cast_unsigned())
}

const fn none(argument: usize, bits: i32) -> Condition {
    Condition::None(argument, bits.cast_unsigned())
}

/// The requests of `ioctl` that write, read, truncate or sync files.
pub const REQUESTS: [u32; 9] = [
    requests::CLONE,
    requests::CLONE_RANGE,
    requests::DEDUPE_RANGE,
    requests::BTRFS_SYNC,
    requests::ROOM[0],
    requests::ROOM[1],
    requests::ROOM[2],
    requests::ROOM[3],
    requests::ROOM[4],
];

/// The numbers of requests of `ioctl`, from include/uapi/linux/fs.h, falloc.h and btrfs.h.
pub mod requests {
    /// `FICLONE`
    pub const CLONE: u32 = 0x4004_9409;
    /// `FICLONERANGE`
    pub const CLONE_RANGE: u32 = 0x4020_940d;
    /// `FIDEDUPERANGE`
    pub const DEDUPE_RANGE: u32 = 0xc018_9436;
    /// `BTRFS_IOC_SYNC`
    pub const BTRFS_SYNC: u32 = 0x9408;
    /// `FS_IOC_RESVSP`, `FS_IOC_UNRESVSP`, their forms for 64 bits, and `FS_IOC_ZERO_RANGE`: `fallocate` by
    /// its older name.
    pub const ROOM: [u32; 5] = [
        0x4030_5828,
        0x4030_5829,
        0x4030_582a,
        0x4030_582b,
        0x4030_5839,
    ];
}

/// `SYNC_FILE_RANGE_WAIT_BEFORE` and `SYNC_FILE_RANGE_WAIT_AFTER`. Without them, `sync_file_range` waits for
/// nothing, and is only a hint.
const WAITS: i32 = 1 | 4;

/// The kind of program that an ABI is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abi {
    /// Programs of the machine's own word size.
    Native,
    /// Programs of another word size.
    Foreign,
}

/// An ABI of this machine: the kernel's number for its architecture, and the numbers of the calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    pub(super) abi: Abi,
    pub(super) architecture: u32,
    numbers: fn(&'static Row) -> &'static [u32],
}

/// The call with this number in this architecture.
pub(super) fn find(architecture: u32, number: u32) -> Option<(SystemCall, Abi)> {
    let of_it = |numbering: &&Numbering| numbering.architecture == architecture;
    NUMBERINGS.iter().filter(of_it).find_map(|numbering| {
        let is_it = |call: &SystemCall| call.numbers(numbering).contains(&number);
        let call = SystemCall::ALL.into_iter().find(is_it)?;
        Some((call, numbering.abi))
    })
}

/// The ABIs of this machine. The list is empty if this file does not know the machine's numbers; no filter is
/// installed then.
#[cfg(target_arch = "x86_64")]
pub(super) const NUMBERINGS: &[Numbering] = &[
    Numbering {
        abi: Abi::Native,
        architecture: 0xc000_003e,
        numbers: |row| row.x86_64,
    },
    // Programs of the x32 ABI have the same architecture as 64-bit programs, but use other numbers for their
    // calls.
    Numbering {
        abi: Abi::Foreign,
        architecture: 0xc000_003e,
        numbers: |row| row.x32,
    },
    Numbering {
        abi: Abi::Foreign,
        architecture: 0x4000_0003,
        numbers: |row| row.i386,
    },
];
#[cfg(target_arch = "aarch64")]
pub(super) const NUMBERINGS: &[Numbering] = &[
    Numbering {
        abi: Abi::Native,
        architecture: 0xc000_00b7,
        numbers: |row| row.arm64,
    },
    Numbering {
        abi: Abi::Foreign,
        architecture: 0x4000_0028,
        numbers: |row| row.arm,
    },
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) const NUMBERINGS: &[Numbering] = &[];

/// The table's row for a call. dashpot needs the numbers for programs of another word size only to refuse the
/// calls that it would otherwise have to hold. The row of a call that dashpot only counts therefore lacks
/// these numbers.
#[rustfmt::skip]
fn table(call: SystemCall) -> &'static Row {
    match call {
        SystemCall::Fsync => const { &row("fsync", &[74], &[82], &[X32 | 74], &[118], &[118]) },
        SystemCall::Fdatasync => const { &row("fdatasync", &[75], &[83], &[X32 | 75], &[148], &[148]) },
        SystemCall::SyncFileRange => const { &row("sync_file_range", &[277], &[84], &[X32 | 277], &[314], &[341]) },
        SystemCall::Msync => const { &row("msync", &[26], &[227], &[X32 | 26], &[144], &[144]) },
        SystemCall::Syncfs => const { &row("syncfs", &[306], &[267], &[X32 | 306], &[344], &[373]) },
        SystemCall::Sync => const { &row("sync", &[162], &[81], &[X32 | 162], &[36], &[36]) },
        SystemCall::Pwritev2 => const { &row("pwritev2", &[328], &[287], &[X32 | 547], &[379], &[393]) },
        SystemCall::Read => const { &row("read", &[0], &[63], &[X32], &[3], &[3]) },
        SystemCall::Pread64 => const { &row("pread64", &[17], &[67], &[X32 | 17], &[180], &[180]) },
        SystemCall::Readv => const { &row("readv", &[19], &[65], &[X32 | 515], &[145], &[145]) },
        SystemCall::Preadv => const { &row("preadv", &[295], &[69], &[X32 | 534], &[333], &[361]) },
        SystemCall::Preadv2 => const { &row("preadv2", &[327], &[286], &[X32 | 546], &[378], &[392]) },
        SystemCall::Write => const { &row("write", &[1], &[64], &[X32 | 1], &[4], &[4]) },
        SystemCall::Pwrite64 => const { &row("pwrite64", &[18], &[68], &[X32 | 18], &[181], &[181]) },
        SystemCall::Writev => const { &row("writev", &[20], &[66], &[X32 | 516], &[146], &[146]) },
        SystemCall::Pwritev => const { &row("pwritev", &[296], &[70], &[X32 | 535], &[334], &[362]) },
        SystemCall::Sendfile => const { &row("sendfile", &[40], &[71], &[X32 | 40], &[187, 239], &[187, 239]) },
        SystemCall::Splice => const { &row("splice", &[275], &[76], &[X32 | 275], &[313], &[340]) },
        SystemCall::CopyFileRange => const { &row("copy_file_range", &[326], &[285], &[X32 | 326], &[377], &[391]) },
        SystemCall::Open => const { &row("open", &[2], &[], &[X32 | 2], &[5], &[5]) },
        SystemCall::Creat => const { &row("creat", &[85], &[], &[X32 | 85], &[8], &[8]) },
        SystemCall::Openat => const { &row("openat", &[257], &[56], &[X32 | 257], &[295], &[322]) },
        SystemCall::Openat2 => const { &row("openat2", &[437], &[437], &[X32 | 437], &[437], &[437]) },
        SystemCall::Unlink => const { &row("unlink", &[87], &[], &[X32 | 87], &[10], &[10]) },
        SystemCall::Rmdir => const { &row("rmdir", &[84], &[], &[X32 | 84], &[40], &[40]) },
        SystemCall::Unlinkat => const { &row("unlinkat", &[263], &[35], &[X32 | 263], &[301], &[328]) },
        SystemCall::Rename => const { &row("rename", &[82], &[], &[X32 | 82], &[38], &[38]) },
        SystemCall::Renameat => const { &row("renameat", &[264], &[38], &[X32 | 264], &[302], &[329]) },
        SystemCall::Renameat2 => const { &row("renameat2", &[316], &[276], &[X32 | 316], &[353], &[382]) },
        SystemCall::Truncate => const { &row("truncate", &[76], &[45], &[X32 | 76], &[92, 193], &[92, 193]) },
        SystemCall::Ftruncate => const { &row("ftruncate", &[77], &[46], &[X32 | 77], &[93, 194], &[93, 194]) },
        SystemCall::Fallocate => const { &row("fallocate", &[285], &[47], &[X32 | 285], &[324], &[352]) },
        SystemCall::Ioctl => const { &row("ioctl", &[16], &[29], &[X32 | 514], &[54], &[54]) },
        SystemCall::Mmap => const { &row("mmap", &[9], &[222], &[], &[], &[]) },
        SystemCall::OpenByHandleAt => const { &row("open_by_handle_at", &[304], &[265], &[], &[], &[]) },
        SystemCall::IoSetup => const { &row("io_setup", &[206], &[0], &[], &[], &[]) },
        SystemCall::IoSubmit => const { &row("io_submit", &[209], &[2], &[], &[], &[]) },
        SystemCall::IoUringSetup => const { &row("io_uring_setup", &[425], &[425], &[], &[], &[]) },
        SystemCall::Execve => const { &row("execve", &[59], &[221], &[], &[], &[]) },
        SystemCall::Execveat => const { &row("execveat", &[322], &[281], &[], &[], &[]) },
    }
}

const fn row(
    name: &'static str,
    x86_64: &'static [u32],
    arm64: &'static [u32],
    x32: &'static [u32],
    i386: &'static [u32],
    arm: &'static [u32],
) -> Row {
    Row {
        name,
        x86_64,
        arm64,
        x32,
        i386,
        arm,
    }
}

const X32: u32 = 0x4000_0000;
