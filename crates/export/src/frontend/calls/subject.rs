//! The thread that makes a call, as `/proc` shows it.

use dashpot_sys::seccomp::{Call, Name, PathTarget, Status, content, link, memory};
use dashpot_sys::{User, with_rights_of};
use rustix::io::Errno;
use rustix::process::Pid;

use super::kinds::{Named, libc_flags::O_APPEND, libc_flags::O_NOFOLLOW};
use super::lead::{Crowded, Lead};
use super::names::DELETED;

/// A thread while its call waits.
pub(super) struct Subject<'a, 'b> {
    thread: i32,
    lead: &'a mut Lead<'b>,
}

/// The reason that the file of a call is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    /// The kernel refuses to give the information.
    #[error("{0}")]
    Refused(#[from] Errno),
    /// The thread is in a PID namespace that this process does not see.
    #[error("its process is in another namespace of processes")]
    NoThread,
    /// The file has several names, and there are too many files to search for them.
    #[error("it has several names, and the directory has too many files to search")]
    TooMany,
    /// The file is in a mount that neither this process nor the thread sees.
    #[error("its mount has been detached, so its file system is not known")]
    NoMount,
    /// Too many other calls are looked up.
    #[error("{0}")]
    Crowded(#[from] Crowded),
}

impl<'a, 'b> Subject<'a, 'b> {
    pub(super) fn new(call: &Call, lead: &'a mut Lead<'b>) -> Result<Self, Unknown> {
        let thread = call.thread.ok_or(Unknown::NoThread)?.as_raw_nonzero().get();
        Ok(Subject { thread, lead })
    }

    /// Lets another thread receive calls, because the next step of this look-up may take long.
    pub(super) fn may_take_long(&mut self) -> Result<(), Unknown> {
        Ok(self.lead.pass_on()?)
    }

    /// The path or name to which `/proc` links a descriptor. `None` if there is no such descriptor.
    pub(super) fn link(&mut self, descriptor: u32) -> Result<Option<Vec<u8>>, Unknown> {
        let path = self.descriptor(descriptor);
        self.ask(|| link(&path))
    }

    /// The status of a descriptor's file.
    pub(super) fn status(&mut self, descriptor: u32) -> Result<Option<Status>, Unknown> {
        let path = self.descriptor(descriptor);
        self.ask(|| Status::of(&path))
    }

    /// The file name of the program that the thread executes. `None` if this process may not know it.
    pub(super) fn program(&mut self) -> Option<String> {
        let path = format!("/proc/{}/exe", self.thread);
        let path = self.ask(|| link(&path)).ok()??;
        Some(file_name(&path))
    }

    /// The list of the thread's memory mappings, as in `/proc/PID/maps`.
    pub(super) fn maps(&mut self) -> Result<Vec<u8>, Unknown> {
        self.list("maps")
    }

    /// The list of the mounts that the thread sees, as in `/proc/PID/mountinfo`.
    pub(super) fn mounts(&mut self) -> Result<Vec<u8>, Unknown> {
        self.list("mountinfo")
    }

    fn list(&mut self, name: &str) -> Result<Vec<u8>, Unknown> {
        self.may_take_long()?;
        let path = format!("/proc/{}/{name}", self.thread);
        Ok(self.ask(|| content(&path))?.unwrap_or_default())
    }

    /// The position of a descriptor: where its next byte is read or written.
    pub(super) fn position(&mut self, descriptor: u32) -> Result<u64, Unknown> {
        let info = self.descriptor_info(descriptor)?;
        let (flags, field) = (open_flags(&info), |name| field(&info, name));
        if flags.is_some_and(|flags| flags & O_APPEND != 0) {
            return Ok(self.status(descriptor)?.map_or(0, |status| status.length));
        }
        Ok(field("pos:")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0))
    }

    /// Whether the descriptor was opened so that the thread may map its file, and with `writes`, share what it
    /// writes into the mapping. Otherwise `mmap` fails by itself.
    pub(super) fn may_map(&mut self, descriptor: u32, writes: bool) -> Result<bool, Unknown> {
        let flags = open_flags(&self.descriptor_info(descriptor)?);
        Ok(match flags.map(|flags| flags & O_ACCMODE) {
            Some(O_WRONLY) => false,
            Some(O_RDONLY) => !writes,
            _ => true,
        })
    }

    /// The content of `/proc/PID/fdinfo/N`. Empty if there is no such descriptor.
    fn descriptor_info(&mut self, descriptor: u32) -> Result<Vec<u8>, Unknown> {
        let path = format!("/proc/{}/fdinfo/{descriptor}", self.thread);
        Ok(self.ask(|| content(&path))?.unwrap_or_default())
    }

    /// Bytes of the thread's memory. Empty if the thread has no memory at this address.
    pub(super) fn memory(&mut self, address: u64, length: u32) -> Result<Vec<u8>, Unknown> {
        // Another process may have to provide a page of this memory.
        self.may_take_long()?;
        let path = format!("/proc/{}/mem", self.thread);
        match self.ask(|| memory(&path, address, length)) {
            // A call with an invalid address fails with EFAULT by itself.
            Err(Unknown::Refused(Errno::IO | Errno::FAULT)) => Ok(Vec::new()),
            found => Ok(found?.unwrap_or_default()),
        }
    }

    /// A word of the thread's memory.
    pub(super) fn word(&mut self, address: u64) -> Result<Option<u64>, Unknown> {
        let bytes = self.memory(address, 8)?;
        Ok(bytes.first_chunk().map(|word| u64::from_ne_bytes(*word)))
    }

    /// Whether the thread has another root directory than this process.
    pub(super) fn has_other_root(&mut self) -> Result<bool, Unknown> {
        let path = format!("/proc/{}/root", self.thread);
        let root = self.ask(|| Status::of(&path))?;
        let own = Status::of("/")?;
        Ok(root.is_some_and(|root| (root.device, root.inode) != (own.device, own.inode)))
    }

    /// The file that a name leads to. `None` if there is no such file. In that case the call will fail by
    /// itself.
    pub(super) fn place(
        &mut self,
        named: Named,
        arguments: &[u64; 6],
    ) -> Result<Option<PathTarget>, Unknown> {
        let Some(named) = self.with_how(named, arguments)? else {
            return Ok(None);
        };
        let bytes = match arguments[named.path] {
            // Since Linux 6.11, a null pointer stands for the empty name, too.
            0 if named.may_be_empty => vec![0],
            address => self.memory(address, PATH_MAX)?,
        };
        let end = bytes.iter().position(|byte| *byte == 0);
        let name = match end.map(|end| &bytes[..end]) {
            Some([]) if named.may_be_empty => return self.place_of_base(named, arguments),
            None | Some([]) => return Ok(None),
            Some(name) => name,
        };
        let (base, name) = self.base(named, name, arguments);
        let root = if named.is_inside {
            base.clone()
        } else {
            format!("/proc/{}/root", self.thread)
        };
        let name = Name {
            root,
            base,
            name,
            follows: named.follows,
        };
        // The server of a file system may have to find the name.
        self.may_take_long()?;
        match self.ask(|| name.place()) {
            Err(Unknown::Refused(
                Errno::ACCESS | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG,
            )) => Ok(None),
            found => found,
        }
    }

    /// The file of the descriptor from which a name would start. `None` for a pipe or a socket, which have no
    /// path.
    fn place_of_base(
        &mut self,
        named: Named,
        arguments: &[u64; 6],
    ) -> Result<Option<PathTarget>, Unknown> {
        let base = self.directory(named, arguments);
        let (path, status) = (self.ask(|| link(&base))?, self.ask(|| Status::of(&base))?);
        let path = path.filter(|path| path.first() == Some(&b'/'));
        Ok(path
            .zip(status)
            .map(|(path, status)| PathTarget { status, path }))
    }

    /// The name, with the changes that the caller's `struct open_how` demands. `None` if the caller has no
    /// memory at that address.
    fn with_how(&mut self, named: Named, arguments: &[u64; 6]) -> Result<Option<Named>, Unknown> {
        let Some(at) = named.how else {
            return Ok(Some(named));
        };
        let how = self.memory(arguments[at], OPEN_HOW)?;
        let mut words = how
            .as_chunks()
            .0
            .iter()
            .map(|word| u64::from_ne_bytes(*word));
        let (Some(flags), Some(_), Some(resolve)) = (words.next(), words.next(), words.next())
        else {
            return Ok(None);
        };
        Ok(Some(Named {
            follows: flags as i32 & O_NOFOLLOW == 0,
            is_inside: resolve & RESOLVE_IN_ROOT != 0,
            ..named
        }))
    }

    /// The directory where a lookup of the name starts, and the rest of the name. For names such as
    /// `/proc/self/…`, that directory is the thread's own in `/proc`.
    fn base(&self, named: Named, name: &[u8], arguments: &[u64; 6]) -> (String, Vec<u8>) {
        let thread = self.thread;
        if name[0] != b'/' || named.is_inside {
            return (self.directory(named, arguments), name.to_vec());
        }
        for (own, its) in [
            ("/proc/self/", ""),
            ("/proc/thread-self/", ""),
            ("/dev/fd/", "fd/"),
            ("/dev/stdin", "fd/0"),
            ("/dev/stdout", "fd/1"),
            ("/dev/stderr", "fd/2"),
        ] {
            if let Some(rest) = name.strip_prefix(own.as_bytes()) {
                let name = [its.as_bytes(), rest].concat();
                return (format!("/proc/{thread}"), name);
            }
        }
        (format!("/proc/{thread}/root"), name.to_vec())
    }

    /// The directory from which a relative name starts.
    fn directory(&self, named: Named, arguments: &[u64; 6]) -> String {
        let directory = named.directory.map(|at| arguments[at] as i32);
        match directory.filter(|it| *it != AT_FDCWD) {
            Some(descriptor) => format!("/proc/{}/fd/{descriptor}", self.thread),
            None => format!("/proc/{}/cwd", self.thread),
        }
    }

    fn descriptor(&self, number: u32) -> String {
        format!("/proc/{}/fd/{number}", self.thread)
    }

    /// Does a lookup. `None` if the file is missing, or if the thread has ended.
    fn ask<T>(&mut self, look_up: impl Fn() -> Result<T, Errno>) -> Result<Option<T>, Unknown> {
        match look_up().or_else(|error| as_its_user(self.thread, error, &look_up)) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT | Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Does a lookup with the rights of a thread's user, if it has failed because this process may not do it. Does
/// it without the user's supplementary groups first, because most lookups do not need the groups, and finding
/// them takes time.
pub(super) fn as_its_user<T>(
    thread: i32,
    failed: Errno,
    look_up: impl Fn() -> Result<T, Errno>,
) -> Result<T, Errno> {
    if !matches!(failed, Errno::ACCESS | Errno::PERM) {
        return Err(failed);
    }
    let Ok(mut user) = owner(thread) else {
        return Err(failed);
    };
    match with_rights_of(&user, &look_up) {
        Err(Errno::ACCESS) => {
            user.groups = groups(thread);
            if user.groups.is_empty() {
                Err(Errno::ACCESS)
            } else {
                with_rights_of(&user, &look_up)
            }
        }
        found => found,
    }
}

/// The name of a thread's process, for messages.
pub(super) fn program(thread: Option<Pid>) -> String {
    let Some(thread) = thread else {
        return "a process of another namespace".to_owned();
    };
    let name = process_name(Some(thread));
    format!("{name} (thread {})", thread.as_raw_nonzero())
}

/// The file name in the link of a program's `exe`. No glob of a rule has control characters, so each of them
/// becomes a '?', which the same letter of a glob matches.
fn file_name(exe: &[u8]) -> String {
    let path = exe.strip_suffix(DELETED).unwrap_or(exe);
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    String::from_utf8_lossy(name).replace(char::is_control, "?")
}

/// The name of a thread's process, which is the name of its first thread. Empty if the thread is not known, or
/// has ended.
pub(super) fn process_name(thread: Option<Pid>) -> String {
    let name = || {
        let process = status_field(thread?.as_raw_nonzero().get(), "Tgid:")?;
        std::fs::read(format!("/proc/{process}/comm")).ok()
    };
    String::from_utf8_lossy(name().unwrap_or_default().trim_ascii_end()).into_owned()
}

/// The user of a thread's process. `/proc` shows root as the owner if only root may look into the
/// process.
fn owner(thread: i32) -> Result<User, Errno> {
    let found = rustix::fs::stat(format!("/proc/{thread}"))?;
    let (uid, gid) = (found.st_uid, found.st_gid);
    match uid {
        0 => Err(Errno::ACCESS),
        _ => Ok(User {
            uid,
            gid,
            groups: Vec::new(),
        }),
    }
}

/// The supplementary groups of a thread.
fn groups(thread: i32) -> Vec<u32> {
    let groups = status_field(thread, "Groups:").unwrap_or_default();
    let numbers = groups.split_whitespace().map(str::parse);
    numbers.filter_map(Result::ok).collect()
}

/// A field in a thread's `/proc/TID/status`, which every user may read.
pub(super) fn status_field(thread: i32, name: &str) -> Option<String> {
    let status = std::fs::read(format!("/proc/{thread}/status")).ok()?;
    // The status also has the program's name, which can have any bytes.
    let status = String::from_utf8_lossy(&status);
    field(status.as_bytes(), name).map(str::to_owned)
}

/// The flags with which a descriptor was opened, from its `/proc/PID/fdinfo/N`.
fn open_flags(info: &[u8]) -> Option<i32> {
    let flags = field(info, "flags:")?;
    i32::from_str_radix(flags, 8).ok()
}

fn field<'a>(info: &'a [u8], name: &str) -> Option<&'a str> {
    let text = str::from_utf8(info).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim())
}

/// The flags of how a descriptor was opened, which are the same on x86-64 and ARM64.
const O_ACCMODE: i32 = 3;
const O_RDONLY: i32 = 0;
const O_WRONLY: i32 = 1;
/// The length of the longest file name that the kernel takes, with its final zero byte.
const PATH_MAX: u32 = 4096;
/// The length of `struct open_how` (include/uapi/linux/openat2.h), whose fields are the flags, the mode, and
/// how names are resolved.
const OPEN_HOW: u32 = 24;
const RESOLVE_IN_ROOT: u64 = 0x10;
/// The number that stands for the working directory.
const AT_FDCWD: i32 = -100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_can_select_each_program_by_its_file_name() {
        for (exe, name) in [
            (&b"/usr/lib/postgres"[..], "postgres"),
            (b"/tmp/a b (deleted)", "a b"),
            (b"/tmp/a\nb\x7f", "a?b?"),
        ] {
            assert_eq!(file_name(exe), name);
        }
    }

    #[test]
    fn a_thread_has_the_name_of_its_process() {
        // A test runs in a thread with the name of the test.
        let own = std::fs::read_to_string("/proc/thread-self/comm").expect("a name");
        let process = std::fs::read_to_string("/proc/self/comm").expect("a name");
        assert_ne!(own, process);
        let thread = rustix::thread::gettid();
        assert_eq!(process_name(Some(thread)), process.trim_end());
        assert_eq!(process_name(Pid::from_raw(i32::MAX)), "");
    }
}
