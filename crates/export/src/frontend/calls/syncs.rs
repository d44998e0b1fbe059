//! Syncs that dashpot does itself, before a rule with `--mode floor` holds the program's own sync. Threads of
//! dashpot do these syncs. Each sync uses a descriptor of its own.
//!
//! For each open file description, the kernel remembers which errors it has reported. So the program's own
//! sync, which follows, still reports each error that dashpot's sync has seen.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use dashpot_sys::seccomp::{CallId, Status, SystemCall};
use rustix::fs::{CWD, FileType, Mode, OFlags, fdatasync, fsync, openat, syncfs};
use rustix::io::Errno;

use super::answers::Answers;
use super::subject::as_its_user;

/// The sync that dashpot does itself for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Way {
    /// dashpot cannot do this sync itself.
    None = 0,
    Fsync = 1,
    Fdatasync = 2,
    Syncfs = 3,
    Sync = 4,
}

impl Way {
    pub(super) const fn of(call: SystemCall) -> Way {
        match call {
            SystemCall::Fsync => Way::Fsync,
            SystemCall::Fdatasync | SystemCall::SyncFileRange | SystemCall::Msync => Way::Fdatasync,
            SystemCall::Syncfs => Way::Syncfs,
            SystemCall::Sync => Way::Sync,
            // dashpot cannot sync a write's bytes before the call, because they are not in the file yet.
            _ => Way::None,
        }
    }

    pub(super) const fn of_word(word: u32) -> Way {
        match word {
            1 => Way::Fsync,
            2 => Way::Fdatasync,
            3 => Way::Syncfs,
            4 => Way::Sync,
            _ => Way::None,
        }
    }
}

/// Does the sync of a call. Fails only if the file of the thread's descriptor cannot be opened. If the sync itself
/// fails, the program's own sync will report the error.
pub(super) fn sync(
    answers: &Answers,
    id: CallId,
    way: Way,
    descriptor: (u32, u32),
) -> Result<(), Errno> {
    if way == Way::Sync {
        rustix::fs::sync();
        return Ok(());
    }
    let file = open(answers, id, descriptor)?;
    let _ = match way {
        Way::Fsync => fsync(&file),
        Way::Fdatasync => fdatasync(&file),
        Way::Syncfs => syncfs(&file),
        Way::None | Way::Sync => Ok(()),
    };
    Ok(())
}

/// Opens the file of a sync. The program may change what is at a path between two looks at it, so each path is used
/// once: first for a handle of the file, which this function checks and then opens.
fn open(answers: &Answers, id: CallId, (thread, descriptor): (u32, u32)) -> Result<OwnedFd, Errno> {
    let thread = thread.cast_signed();
    let mapped = answers.mapped(id);
    let handle = match &mapped {
        Some(mapped) => opened(&mapped.path, OFlags::PATH | OFlags::NOFOLLOW)?,
        None => {
            let path = PathBuf::from(format!("/proc/{thread}/fd/{descriptor}"));
            let open = || opened(&path, OFlags::PATH);
            open().or_else(|error| as_its_user(thread, error, open))?
        }
    };
    let path = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
    let status = Status::of(&path)?;
    let is_it = mapped.is_none_or(|it| it.identity == (status.device, status.inode));
    // Opening a device or a pipe can have effects.
    let kind = FileType::from_raw_mode(status.mode);
    let is_plain = matches!(kind, FileType::RegularFile | FileType::Directory);
    // If the call still waits, the handle is that of the caller's file, and not that of the file of a
    // later thread with the same number.
    if !is_it || !is_plain || !answers.waits(id) {
        return Err(Errno::SRCH);
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = || match opened(&path, flags | OFlags::RDONLY) {
        Err(Errno::ACCESS) => opened(&path, flags | OFlags::WRONLY),
        opened => opened,
    };
    open().or_else(|error| as_its_user(thread, error, open))
}

fn opened(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())
}
