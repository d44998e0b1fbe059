//! The numbers of the notified calls, for the machine's own programs and for programs of another word size.
//!
//! A filter that looked at the numbers of 64-bit programs alone would overlook each call of a 32-bit program.
//! From the kernel's arch/*/entry/syscalls tables and include/uapi/linux/audit.h.

/// A call that a filter can notify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SystemCall {
    /// `fsync(2)`
    Fsync,
    /// `fdatasync(2)`
    Fdatasync,
    /// `sync_file_range(2)`
    SyncFileRange,
    /// `msync(2)` with `MS_SYNC`
    Msync,
    /// `syncfs(2)`
    Syncfs,
    /// `sync(2)`
    Sync,
    /// `pwritev2(2)` with `RWF_SYNC` or `RWF_DSYNC`
    Pwritev2,
}

impl SystemCall {
    /// Every call that makes data durable.
    pub const SYNCS: [SystemCall; 7] = [
        SystemCall::Fsync,
        SystemCall::Fdatasync,
        SystemCall::SyncFileRange,
        SystemCall::Msync,
        SystemCall::Syncfs,
        SystemCall::Sync,
        SystemCall::Pwritev2,
    ];

    /// Its name, as in the manual.
    pub fn name(self) -> &'static str {
        match self {
            SystemCall::Fsync => "fsync",
            SystemCall::Fdatasync => "fdatasync",
            SystemCall::SyncFileRange => "sync_file_range",
            SystemCall::Msync => "msync",
            SystemCall::Syncfs => "syncfs",
            SystemCall::Sync => "sync",
            SystemCall::Pwritev2 => "pwritev2",
        }
    }

    /// The argument that must have one of these bits, if only some calls are notified.
    pub(super) fn condition(self) -> Option<Condition> {
        match self {
            SystemCall::Msync => Some(Condition {
                argument: 2,
                bits: libc::MS_SYNC.cast_unsigned(),
            }),
            SystemCall::Pwritev2 => Some(Condition {
                argument: 5,
                bits: (libc::RWF_SYNC | libc::RWF_DSYNC).cast_unsigned(),
            }),
            _ => None,
        }
    }
}

/// Flags in an argument of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub(super) argument: usize,
    pub(super) bits: u32,
}

/// One way for programs to make calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abi {
    /// That of the machine's own programs.
    Native,
    /// The way of programs of another word size.
    Foreign,
}

/// An ABI of this machine, by the kernel's name for its architecture, and the number of a call in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    pub(super) abi: Abi,
    pub(super) architecture: u32,
    pub(super) number: fn(SystemCall) -> u32,
}

/// The call with this number in this architecture.
pub(super) fn find(architecture: u32, number: u32) -> Option<(SystemCall, Abi)> {
    NUMBERINGS.iter().find_map(|numbering| {
        let is_it = |call: &SystemCall| {
            numbering.architecture == architecture && (numbering.number)(*call) == number
        };
        let call = SystemCall::SYNCS.into_iter().find(is_it)?;
        Some((call, numbering.abi))
    })
}

/// The ABIs of this machine. None: this machine's numbers are not known here, and no filter is installed.
#[cfg(target_arch = "x86_64")]
pub(super) const NUMBERINGS: &[Numbering] = &[
    Numbering {
        abi: Abi::Native,
        architecture: 0xc000_003e,
        number: native,
    },
    // A program of 32 bits for the x32 ABI: another number for the same architecture.
    Numbering {
        abi: Abi::Foreign,
        architecture: 0xc000_003e,
        number: x32,
    },
    Numbering {
        abi: Abi::Foreign,
        architecture: 0x4000_0003,
        number: i386,
    },
];
#[cfg(target_arch = "aarch64")]
pub(super) const NUMBERINGS: &[Numbering] = &[
    Numbering {
        abi: Abi::Native,
        architecture: 0xc000_00b7,
        number: native,
    },
    Numbering {
        abi: Abi::Foreign,
        architecture: 0x4000_0028,
        number: arm,
    },
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) const NUMBERINGS: &[Numbering] = &[];

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn native(call: SystemCall) -> u32 {
    let number = match call {
        SystemCall::Fsync => libc::SYS_fsync,
        SystemCall::Fdatasync => libc::SYS_fdatasync,
        SystemCall::SyncFileRange => libc::SYS_sync_file_range,
        SystemCall::Msync => libc::SYS_msync,
        SystemCall::Syncfs => libc::SYS_syncfs,
        SystemCall::Sync => libc::SYS_sync,
        SystemCall::Pwritev2 => libc::SYS_pwritev2,
    };
    number as u32
}

#[cfg(target_arch = "x86_64")]
fn x32(call: SystemCall) -> u32 {
    const X32: u32 = 0x4000_0000;
    match call {
        SystemCall::Pwritev2 => X32 | 547,
        _ => X32 | native(call),
    }
}

#[cfg(target_arch = "x86_64")]
fn i386(call: SystemCall) -> u32 {
    match call {
        SystemCall::Fsync => 118,
        SystemCall::Fdatasync => 148,
        SystemCall::SyncFileRange => 314,
        SystemCall::Msync => 144,
        SystemCall::Syncfs => 344,
        SystemCall::Sync => 36,
        SystemCall::Pwritev2 => 379,
    }
}

#[cfg(target_arch = "aarch64")]
fn arm(call: SystemCall) -> u32 {
    match call {
        SystemCall::Fsync => 118,
        SystemCall::Fdatasync => 148,
        SystemCall::SyncFileRange => 341,
        SystemCall::Msync => 144,
        SystemCall::Syncfs => 373,
        SystemCall::Sync => 36,
        SystemCall::Pwritev2 => 393,
    }
}
