//! Counts the calls that reach a disk's files in a way that dashpot cannot hold, and makes a sentence about
//! them for the user.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use dashpot_engine::{Op, OpSet};
use dashpot_sys::seccomp::{Call, SystemCall};
use rustix::fs::FileType;
use rustix::process::Pid;

use super::files::Files;
use super::kinds::{Named, SYNCS, Target, libc_flags::O_DSYNC, parts};
use super::subject::{Subject, Unknown, program, status_field};
use crate::export::{Counts, Unheld, Uring};

/// A sentence for the user about a call that dashpot cannot hold, and whether the call fails with `ENOSYS`.
pub(super) struct Counted {
    pub(super) cause: Cause,
    pub(super) sentence: String,
    pub(super) refused: bool,
}

/// The reason for a sentence. The user is told only the first sentence for each reason, because a program can
/// have any number of files and processes.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Cause {
    /// Such an access to the disk with this number, or to any.
    Unheld(Unheld, Option<usize>),
    /// A call that `--uring refuse` refuses.
    Refused(SystemCall),
    /// A cause that has words of its own.
    Other(String),
}

/// Counts a call if it reaches files of disks in a way that dashpot cannot hold.
pub(super) fn count(
    call: &Call,
    it: SystemCall,
    files: &Files,
    subject: &mut Subject<'_, '_>,
    (counts, uring): (&Counts, Uring),
) -> Result<Option<Counted>, Unknown> {
    let mut context = Context {
        call,
        files,
        subject,
        counts,
    };
    match it {
        SystemCall::Open | SystemCall::Openat | SystemCall::Openat2 => context.synced_open(it),
        SystemCall::OpenByHandleAt => context.opened_by_handle(),
        SystemCall::Mmap => context.mapping(),
        SystemCall::IoSubmit => context.submitted(),
        SystemCall::IoSetup if uring == Uring::Refuse => Ok(Some(refused(call, it))),
        SystemCall::IoUringSetup if uring == Uring::Refuse => Ok(Some(refused(call, it))),
        SystemCall::IoUringSetup => Ok(Some(context.ring())),
        SystemCall::Execve | SystemCall::Execveat => context.executed(it),
        _ => Ok(None),
    }
}

/// A call, and everything that is needed to count it.
struct Context<'a, 'b, 'c> {
    call: &'a Call,
    files: &'a Files,
    subject: &'a mut Subject<'b, 'c>,
    counts: &'a Counts,
}

impl Context<'_, '_, '_> {
    /// Counts an access to the disks that hold calls of one of these types. The sentence is the result of `say`.
    fn count(
        &mut self,
        unheld: Unheld,
        disks: &[usize],
        say: impl FnOnce(&mut Self, &str) -> Result<String, Unknown>,
    ) -> Result<Option<Counted>, Unknown> {
        let Some(first) = disks.first() else {
            return Ok(None);
        };
        self.counts.add(disks, unheld, 1);
        let program = program(self.call.thread);
        let sentence = say(self, &program)?;
        Ok(Some(Counted {
            cause: Cause::Unheld(unheld, Some(*first)),
            sentence: format!("{sentence}: {}", unheld.remedy()),
            refused: false,
        }))
    }

    fn synced_open(&mut self, it: SystemCall) -> Result<Option<Counted>, Unknown> {
        let arguments = &self.call.arguments;
        let flags = match it {
            SystemCall::Open => arguments[1],
            SystemCall::Openat => arguments[2],
            // The flags are the first word of the caller's `struct open_how`.
            _ => self.subject.word(arguments[2])?.unwrap_or(0),
        };
        if flags as i32 & O_DSYNC == 0 {
            return Ok(None);
        }
        let Some(part) = parts(it, arguments).pop() else {
            return Ok(None);
        };
        let reached = self.files.reached(part.target, arguments, self.subject)?;
        let disks = self.files.of_types(reached, |types| {
            types.contains(SYNC) && !types.contains(WRITE)
        });
        self.count(Unheld::SyncedOpen, &disks, |context, program| {
            let name = name(part.target, context.call, context.subject)?;
            Ok(format!(
                "{program} has opened a file{name} with O_SYNC or O_DSYNC, so each write to it also syncs, and is \
                 not held"
            ))
        })
    }

    fn opened_by_handle(&mut self) -> Result<Option<Counted>, Unknown> {
        // The first argument is a descriptor of the file system. The handle does not tell the file.
        let arguments = &self.call.arguments;
        let reached = self
            .files
            .reached(Target::FileSystem, arguments, self.subject)?;
        let disks = self.files.of_types(reached, |types| types.contains(OPEN));
        self.count(Unheld::Handle, &disks, |_, program| {
            Ok(format!(
                "{program} opens a file by its handle, which may be a file of the disk, and the open is not held"
            ))
        })
    }

    fn mapping(&mut self) -> Result<Option<Counted>, Unknown> {
        let [_, _, protection, flags, number, _] = self.call.arguments;
        let (protection, flags) = (protection as u32, flags as u32);
        let target = Target::Descriptor(4);
        let reached = self
            .files
            .reached(target, &self.call.arguments, self.subject)?;
        if reached.is_empty() {
            return Ok(None);
        }
        let is_shared = flags & MAP_SHARED != 0;
        let writes = is_shared && protection & PROT_WRITE != 0;
        if !self.subject.may_map(number as u32, writes)? {
            return Ok(None);
        }
        let status = self.subject.status(number as u32)?;
        let is_durable =
            flags & MAP_SYNC != 0 && flags & MAP_SHARED_VALIDATE == MAP_SHARED_VALIDATE;
        // A mapping that asks for durable stores fails unless the file is in persistent memory.
        if is_durable && !status.is_some_and(|status| status.is_persistent_memory) {
            return Ok(None);
        }
        let written = self.files.of_types(reached.clone(), |types| {
            (writes && types.meets(WRITE.union(READ))) || (is_durable && types.contains(SYNC))
        });
        if !written.is_empty() {
            return self.count(Unheld::Mapping, &written, |context, program| {
                let name = name(target, context.call, context.subject)?;
                Ok(format!(
                    "{program} maps a file{name} shared and writable, and dashpot does not see stores into the \
                     mapping, only msync"
                ))
            });
        }
        let read = self.files.of_types(reached, |types| types.contains(READ));
        self.count(Unheld::ReadMapping, &read, |context, program| {
            let name = name(target, context.call, context.subject)?;
            Ok(format!(
                "{program} maps a file{name}, and dashpot does not see reads of the mapping"
            ))
        })
    }

    fn submitted(&mut self) -> Result<Option<Counted>, Unknown> {
        let [_, count, list, ..] = self.call.arguments;
        let most = count.min(SUBMITTED_MAX);
        let list = self.subject.memory(list, most as u32 * 8)?;
        let mut reached_by = HashMap::new();
        let mut said = self.not_looked_at(count - most)?;
        for address in list.as_chunks().0 {
            // `struct iocb` of include/uapi/linux/aio_abi.h has the flags at byte 12, the operation at byte 16
            // and the descriptor at byte 20.
            let block = self.subject.memory(u64::from_ne_bytes(*address), 24)?;
            let word = |at: usize| {
                block
                    .get(at..)?
                    .first_chunk()
                    .map(|it| u32::from_ne_bytes(*it))
            };
            let (Some(flags), Some(operation), Some(descriptor)) = (word(12), word(16), word(20))
            else {
                continue;
            };
            let asked = submitted_types(operation & 0xffff, flags);
            let reached: &Vec<usize> = match reached_by.entry(descriptor) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    new.insert(self.files.of_descriptor(descriptor, self.subject)?)
                }
            };
            let disks = self
                .files
                .of_types(reached.clone(), |types| types.meets(asked));
            said = said.or(self.count(Unheld::Aio, &disks, submits)?);
        }
        Ok(said)
    }

    /// Counts I/Os by `io_submit` that dashpot does not look at. Each may be of any disk.
    fn not_looked_at(&mut self, rest: u64) -> Result<Option<Counted>, Unknown> {
        let any = READ.union(WRITE).union(SYNC);
        let disks = self
            .files
            .of_types(self.files.all(), |types| types.meets(any));
        if rest == 0 || disks.is_empty() {
            return Ok(None);
        }
        self.counts.add(&disks, Unheld::Aio, rest - 1);
        self.count(Unheld::Aio, &disks, submits)
    }

    fn ring(&mut self) -> Counted {
        self.counts.add(&self.files.all(), Unheld::Uring, 1);
        let program = program(self.call.thread);
        Counted {
            cause: Cause::Unheld(Unheld::Uring, None),
            sentence: format!(
                "{program} makes an io_uring, whose I/Os are not held: {}",
                Unheld::Uring.remedy()
            ),
            refused: false,
        }
    }

    /// Counts a file of a disk that the program executes, because the kernel maps the file without a call.
    /// Otherwise, returns a hint about the file if it has a set-ID bit. Skips a file that this process may not
    /// look up. That includes the calls of a process that has just changed its user, as in a container image
    /// that starts as root. Such a process can be inspected again only after its next execve.
    fn executed(&mut self, it: SystemCall) -> Result<Option<Counted>, Unknown> {
        let (directory, path) = match it {
            SystemCall::Execve => (None, 0),
            _ => (Some(0), 1),
        };
        let named = Named {
            directory,
            path,
            follows: true,
            is_inside: false,
            may_be_empty: false,
            how: None,
        };
        let arguments = &self.call.arguments;
        let Ok(Some(place)) = self.subject.place(named, arguments) else {
            return Ok(None);
        };
        let is_file = FileType::from_raw_mode(place.status.mode) == FileType::RegularFile;
        if !is_file {
            return Ok(None);
        }
        let target = Target::Named(named);
        let reached = self.files.reached(target, arguments, self.subject);
        let read = self
            .files
            .of_types(reached.unwrap_or_default(), |types| types.contains(READ));
        let path = String::from_utf8_lossy(&place.path).into_owned();
        let counted = self.count(Unheld::ReadMapping, &read, |_, program| {
            Ok(format!(
                "{program} executes {path}, and the kernel reads the file without a call"
            ))
        })?;
        if counted.is_some() || place.status.mode & SET_ID == 0 {
            return Ok(counted);
        }
        let sentence = format!(
            "{path} has the set-user-ID or set-group-ID bit, which has no effect here: a program under a path disk \
             gains no privileges"
        );
        Ok(Some(Counted {
            cause: Cause::Other(path),
            sentence,
            refused: false,
        }))
    }
}

fn submits(_: &mut Context<'_, '_, '_>, program: &str) -> Result<String, Unknown> {
    Ok(format!(
        "{program} uses io_submit on files of a disk, and these I/Os are not held"
    ))
}

fn refused(call: &Call, it: SystemCall) -> Counted {
    let program = program(call.thread);
    let asked = match it {
        SystemCall::IoSetup => "a context of io_submit",
        _ => "an io_uring",
    };
    Counted {
        cause: Cause::Refused(it),
        sentence: format!("{program} asks for {asked}, and gets ENOSYS"),
        refused: true,
    }
}

/// The types of an I/O that `io_submit` begins, from include/uapi/linux/aio_abi.h.
fn submitted_types(operation: u32, flags: u32) -> OpSet {
    match operation {
        0 | 7 => READ,
        1 | 8 if flags as i32 & SYNCS != 0 => WRITE.union(SYNC),
        1 | 8 => WRITE,
        2 | 3 => SYNC,
        _ => OpSet::EMPTY,
    }
}

/// The path of a file in parentheses, to be inserted into a sentence. Empty if the path is not known.
fn name(target: Target, call: &Call, subject: &mut Subject<'_, '_>) -> Result<String, Unknown> {
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

const READ: OpSet = OpSet::of(Op::Read);
const WRITE: OpSet = OpSet::of(Op::Write);
const SYNC: OpSet = OpSet::of(Op::Sync);
const OPEN: OpSet = OpSet::of(Op::Open);
const PROT_WRITE: u32 = 2;
/// `MAP_SHARED_VALIDATE` has this bit, too.
const MAP_SHARED: u32 = 1;
const MAP_SHARED_VALIDATE: u32 = 3;
const MAP_SYNC: u32 = 0x8_0000;
/// The largest number of I/Os of one `io_submit` that dashpot looks at: the default of `fs.aio-max-nr`, so the
/// kernel takes no more of one call unless root has raised that bound.
const SUBMITTED_MAX: u64 = 65_536;
/// `S_ISUID` and `S_ISGID`.
const SET_ID: u32 = 0o6000;
