//! Counts the calls that reach a disk's files in a way that dashpot cannot hold, and makes a sentence about
//! them for the user.

use std::sync::atomic::{AtomicU64, Ordering};

use dashpot_engine::{Op, OpSet};
use dashpot_sys::seccomp::{Call, SystemCall};
use rustix::fs::FileType;
use rustix::process::Pid;

use super::files::Files;
use super::kinds::{Named, Target, libc_flags::O_DSYNC, parts};
use super::subject::{Subject, Unknown, program, status_field};
use crate::export::{Counts, Uring};

/// A sentence for the user about a counted call, and whether the call fails with `ENOSYS`.
pub(super) struct Counted {
    pub(super) sentence: String,
    pub(super) refused: bool,
}

/// Counts a call if it reaches files of disks in a way that dashpot cannot hold.
pub(super) fn count(
    call: &Call,
    it: SystemCall,
    files: &Files,
    subject: &mut Subject<'_>,
    (counts, uring): (&Counts, Uring),
) -> Result<Option<Counted>, Unknown> {
    match it {
        SystemCall::Open | SystemCall::Openat | SystemCall::Openat2 => {
            synced_open(call, it, files, subject, counts)
        }
        SystemCall::Mmap => mapping(call, files, subject, counts),
        SystemCall::IoSubmit => submitted(call, files, subject, counts),
        SystemCall::IoUringSetup => Ok(Some(ring(call, uring, counts))),
        SystemCall::Execve | SystemCall::Execveat => Ok(executed(call, it, subject)),
        _ => Ok(None),
    }
}

fn synced_open(
    call: &Call,
    it: SystemCall,
    files: &Files,
    subject: &mut Subject<'_>,
    counts: &Counts,
) -> Result<Option<Counted>, Unknown> {
    let flags = match it {
        SystemCall::Open => call.arguments[1],
        SystemCall::Openat => call.arguments[2],
        // The flags are the first word of the caller's `struct open_how`.
        _ => subject.word(call.arguments[2])?.unwrap_or(0),
    };
    if flags as i32 & O_DSYNC == 0 {
        return Ok(None);
    }
    let Some(part) = parts(it, &call.arguments).pop() else {
        return Ok(None);
    };
    let held = files.reached(part.target, &call.arguments, subject)?;
    let Some(disk) = held.first() else {
        return Ok(None);
    };
    add(&counts.synced_opens, 1);
    let types = files.types_of(*disk);
    let remedy = match types.contains(OpSet::of(Op::Write)) {
        true => "these writes are calls of the type write",
        false => "only types=sync,write can hold these writes",
    };
    Ok(Some(said(format!(
        "{} has opened a file{} with O_SYNC or O_DSYNC, so each write to it also syncs: {remedy}",
        program(call.thread),
        name(part.target, call, subject)?,
    ))))
}

/// The path of a file in parentheses, to be inserted into a sentence. Empty if the path is not known.
fn name(target: Target, call: &Call, subject: &mut Subject<'_>) -> Result<String, Unknown> {
    let path = match target {
        Target::Named(named) => {
            let place = subject.place(named, &call.arguments)?;
            place.map(|place| place.path)
        }
        Target::Descriptor(at) => subject.link(call.arguments[at] as u32)?,
        _ => None,
    };
    Ok(path.map_or_else(String::new, |path| {
        format!(" ({})", String::from_utf8_lossy(&path))
    }))
}

fn mapping(
    call: &Call,
    files: &Files,
    subject: &mut Subject<'_>,
    counts: &Counts,
) -> Result<Option<Counted>, Unknown> {
    let target = Target::Descriptor(4);
    if files.reached(target, &call.arguments, subject)?.is_empty() {
        return Ok(None);
    }
    add(&counts.mappings, 1);
    Ok(Some(said(format!(
        "{} maps a file{} shared and writable: dashpot does not see stores into the mapping, only msync",
        program(call.thread),
        name(target, call, subject)?,
    ))))
}

fn submitted(
    call: &Call,
    files: &Files,
    subject: &mut Subject<'_>,
    counts: &Counts,
) -> Result<Option<Counted>, Unknown> {
    let [_, count, list, ..] = call.arguments;
    let count = count.min(SUBMITTED_MAX);
    let list = subject.memory(list, count as u32 * 8)?;
    let mut held = 0;
    for address in list.as_chunks().0 {
        // `struct iocb` of include/uapi/linux/aio_abi.h: the descriptor is at byte 20.
        let block = subject.memory(u64::from_ne_bytes(*address), 24)?;
        let Some(descriptor) = block.get(20..).and_then(<[u8]>::first_chunk) else {
            continue;
        };
        let descriptor = u32::from_ne_bytes(*descriptor);
        held += u64::from(!files.of_descriptor(descriptor, subject)?.is_empty());
    }
    if held == 0 {
        return Ok(None);
    }
    add(&counts.submitted, held);
    Ok(Some(said(format!(
        "{} uses io_submit on files of a disk: these I/Os are not held",
        program(call.thread)
    ))))
}

fn ring(call: &Call, uring: Uring, counts: &Counts) -> Counted {
    add(&counts.rings, 1);
    let program = program(call.thread);
    let refused = uring == Uring::Refuse;
    let sentence = match refused {
        true => format!("{program} asks for an io_uring, and gets ENOSYS"),
        false => format!(
            "{program} makes an io_uring, whose I/Os are not held: --uring refuse makes programs use other calls"
        ),
    };
    Counted { sentence, refused }
}

/// A sentence about a file with a set-ID bit that the program executes. The sentence is only a hint, so this
/// function skips a call whose file this process may not look up. That includes the calls of a process that
/// has just changed its user, as in a container image that starts as root. Such a process can be inspected
/// again only after its next execve.
fn executed(call: &Call, it: SystemCall, subject: &mut Subject<'_>) -> Option<Counted> {
    let (directory, path) = match it {
        SystemCall::Execve => (None, 0),
        _ => (Some(0), 1),
    };
    let named = Named {
        directory,
        path,
        follows: true,
        is_inside: false,
        how: None,
    };
    let place = subject.place(named, &call.arguments).ok()??;
    let path = String::from_utf8_lossy(&place.path);
    let is_file = FileType::from_raw_mode(place.status.mode) == FileType::RegularFile;
    (is_file && place.status.mode & SET_ID != 0).then(|| {
        said(format!(
            "{path} has the set-user-ID or set-group-ID bit, which has no effect here: a program under a path disk \
             gains no privileges"
        ))
    })
}

/// A sentence about the process that traces the thread of a call. This function looks for a tracer only at
/// each execve, because most tracers trace a program from its execve on.
pub(super) fn tracer(call: &Call, it: SystemCall) -> Option<String> {
    if !matches!(it, SystemCall::Execve | SystemCall::Execveat) {
        return None;
    }
    let thread = call.thread?.as_raw_nonzero().get();
    let tracer = status_field(thread, "TracerPid:")?.parse().ok()?;
    let tracer = Pid::from_raw(tracer)?;
    Some(format!(
        "{} traces the program: calls are held all the same, but the tracer can delay or replace a call before \
         dashpot sees it",
        program(Some(tracer))
    ))
}

fn said(sentence: String) -> Counted {
    Counted {
        sentence,
        refused: false,
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// The largest number of I/Os of one `io_submit` that dashpot looks at.
const SUBMITTED_MAX: u64 = 256;
/// `S_ISUID` and `S_ISGID`.
const SET_ID: u32 = 0o6000;
