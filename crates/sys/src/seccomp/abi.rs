//! The numbers of the notified calls, for native programs and for programs of another word size.
//!
//! A filter that looked only for the numbers of 64-bit programs would overlook all calls of 32-bit programs.
//! The numbers come from the kernel's arch/*/entry/syscalls tables and include/uapi/linux/audit.h.

/// Declares the calls, one row for each: its name, and its numbers for programs of x86-64, of ARM64, of x32,
/// and of 32 bits on x86-64 and on ARM64.
macro_rules! calls {
    ($($(#[$which:meta])* $call:ident $name:literal
        $x86_64:tt $arm64:tt $x32:tt $i386:tt $arm:tt;)*) => {
        /// A system call that a filter can notify. To notify a call means to report it to the filter's
        /// listener.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SystemCall {
            $(#[doc = concat!("`", $name, "(2)`")] $(#[$which])* $call,)*
        }

        impl SystemCall {
            pub const ALL: [SystemCall; [$($name),*].len()] = [$(SystemCall::$call),*];

            fn row(self) -> &'static Row {
                match self {
                    $(SystemCall::$call => const {
                        &Row {
                            name: $name,
                            x86_64: &$x86_64,
                            arm64: &$arm64,
                            x32: &$x32,
                            i386: &$i386,
                            arm: &$arm,
                        }
                    },)*
                }
            }
        }
    };
}

// dashpot needs the numbers for programs of another word size only to refuse the calls that it would otherwise
// have to hold. The row of a call that dashpot only counts therefore lacks these numbers.
calls! {
    Fsync "fsync" [74] [82] [X32 | 74] [118] [118];
    Fdatasync "fdatasync" [75] [83] [X32 | 75] [148] [148];
    /// that waits
    SyncFileRange "sync_file_range" [277] [84] [X32 | 277] [314] [341];
    /// with `MS_SYNC`
    Msync "msync" [26] [227] [X32 | 26] [144] [144];
    Syncfs "syncfs" [306] [267] [X32 | 306] [344] [373];
    Sync "sync" [162] [81] [X32 | 162] [36] [36];
    Pwritev2 "pwritev2" [328] [287] [X32 | 547] [379] [393];
    Read "read" [0] [63] [X32] [3] [3];
    Pread64 "pread64" [17] [67] [X32 | 17] [180] [180];
    Readv "readv" [19] [65] [X32 | 515] [145] [145];
    Preadv "preadv" [295] [69] [X32 | 534] [333] [361];
    Preadv2 "preadv2" [327] [286] [X32 | 546] [378] [392];
    Write "write" [1] [64] [X32 | 1] [4] [4];
    Pwrite64 "pwrite64" [18] [68] [X32 | 18] [181] [181];
    Writev "writev" [20] [66] [X32 | 516] [146] [146];
    Pwritev "pwritev" [296] [70] [X32 | 535] [334] [362];
    Sendfile "sendfile" [40] [71] [X32 | 40] [187, 239] [187, 239];
    Splice "splice" [275] [76] [X32 | 275] [313] [340];
    CopyFileRange "copy_file_range" [326] [285] [X32 | 326] [377] [391];
    Open "open" [2] [] [X32 | 2] [5] [5];
    Creat "creat" [85] [] [X32 | 85] [8] [8];
    Openat "openat" [257] [56] [X32 | 257] [295] [322];
    Openat2 "openat2" [437] [437] [X32 | 437] [437] [437];
    Unlink "unlink" [87] [] [X32 | 87] [10] [10];
    Rmdir "rmdir" [84] [] [X32 | 84] [40] [40];
    Unlinkat "unlinkat" [263] [35] [X32 | 263] [301] [328];
    Rename "rename" [82] [] [X32 | 82] [38] [38];
    Renameat "renameat" [264] [38] [X32 | 264] [302] [329];
    Renameat2 "renameat2" [316] [276] [X32 | 316] [353] [382];
    Truncate "truncate" [76] [45] [X32 | 76] [92, 193] [92, 193];
    Ftruncate "ftruncate" [77] [46] [X32 | 77] [93, 194] [93, 194];
    Fallocate "fallocate" [285] [47] [X32 | 285] [324] [352];
    Link "link" [86] [] [X32 | 86] [9] [9];
    Linkat "linkat" [265] [37] [X32 | 265] [303] [330];
    Symlink "symlink" [88] [] [X32 | 88] [83] [83];
    Symlinkat "symlinkat" [266] [36] [X32 | 266] [304] [331];
    Mkdir "mkdir" [83] [] [X32 | 83] [39] [39];
    Mkdirat "mkdirat" [258] [34] [X32 | 258] [296] [323];
    Close "close" [3] [57] [X32 | 3] [6] [6];
    Stat "stat" [4] [] [X32 | 4] [18, 106, 195] [106, 195];
    Lstat "lstat" [6] [] [X32 | 6] [84, 107, 196] [107, 196];
    Fstat "fstat" [5] [80] [X32 | 5] [28, 108, 197] [108, 197];
    Newfstatat "newfstatat" [262] [79] [X32 | 262] [300] [327];
    Statx "statx" [332] [291] [X32 | 332] [383] [397];
    Access "access" [21] [] [X32 | 21] [33] [33];
    Faccessat "faccessat" [269] [48] [X32 | 269] [307] [334];
    Faccessat2 "faccessat2" [439] [439] [X32 | 439] [439] [439];
    Statfs "statfs" [137] [43] [X32 | 137] [99, 268] [99, 266];
    Fstatfs "fstatfs" [138] [44] [X32 | 138] [100, 269] [100, 267];
    Getdents "getdents" [78] [] [X32 | 78] [89, 141] [141];
    Getdents64 "getdents64" [217] [61] [X32 | 217] [220] [217];
    Getxattr "getxattr" [191] [8] [X32 | 191] [229] [229];
    Lgetxattr "lgetxattr" [192] [9] [X32 | 192] [230] [230];
    Fgetxattr "fgetxattr" [193] [10] [X32 | 193] [231] [231];
    Getxattrat "getxattrat" [464] [464] [X32 | 464] [464] [464];
    Setxattr "setxattr" [188] [5] [X32 | 188] [226] [226];
    Lsetxattr "lsetxattr" [189] [6] [X32 | 189] [227] [227];
    Fsetxattr "fsetxattr" [190] [7] [X32 | 190] [228] [228];
    Setxattrat "setxattrat" [463] [463] [X32 | 463] [463] [463];
    Listxattr "listxattr" [194] [11] [X32 | 194] [232] [232];
    Llistxattr "llistxattr" [195] [12] [X32 | 195] [233] [233];
    Flistxattr "flistxattr" [196] [13] [X32 | 196] [234] [234];
    Listxattrat "listxattrat" [465] [465] [X32 | 465] [465] [465];
    Removexattr "removexattr" [197] [14] [X32 | 197] [235] [235];
    Lremovexattr "lremovexattr" [198] [15] [X32 | 198] [236] [236];
    Fremovexattr "fremovexattr" [199] [16] [X32 | 199] [237] [237];
    Removexattrat "removexattrat" [466] [466] [X32 | 466] [466] [466];
    /// with one of [`REQUESTS`]
    Ioctl "ioctl" [16] [29] [X32 | 514] [54] [54];
    /// of a file
    Mmap "mmap" [9] [222] [] [] [];
    OpenByHandleAt "open_by_handle_at" [304] [265] [] [] [];
    IoSetup "io_setup" [206] [0] [] [] [];
    IoSubmit "io_submit" [209] [2] [] [] [];
    IoUringSetup "io_uring_setup" [425] [425] [] [] [];
    Execve "execve" [59] [221] [] [] [];
    Execveat "execveat" [322] [281] [] [] [];
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

const X32: u32 = 0x4000_0000;
