//! Readers: processes that look into `/proc` as other users.
//!
//! Images often start as root and run their database as another user. Root may not look into that user's
//! processes without CAP_SYS_PTRACE, which containers do not have by default; the user itself may. So
//! dashpot starts a second process of itself as that user, and asks that process.

use std::collections::HashMap;
use std::env::args_os;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use dashpot_sys::seccomp::{Lookup, User};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::descriptors::inherited;

/// The readers, by user.
#[derive(Default)]
pub(super) struct Lookups {
    readers: HashMap<User, UnixStream>,
}

impl Lookups {
    /// Asks the reader of a user. Starts a reader if the user has none.
    pub(super) fn ask(&mut self, user: &User, lookup: &Lookup) -> Result<Vec<u8>, Errno> {
        let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        if !self.readers.contains_key(user) {
            // Only root can become another user. The program may use any number of users, so dashpot bounds
            // the number of readers.
            if !rustix::process::geteuid().is_root() || self.readers.len() == READERS_MAX {
                return Err(Errno::ACCESS);
            }
            self.readers
                .insert(user.clone(), start(user).map_err(errno)?);
        }
        let reader = self.readers.get(user).ok_or(Errno::ACCESS)?;
        let asked = ask(reader, lookup);
        if asked.is_err() {
            // The user may have killed or stopped its reader, so the next question starts another reader.
            self.readers.remove(user);
        }
        asked.map_err(errno)?
    }
}

fn start(user: &User) -> io::Result<UnixStream> {
    let (near, far) = UnixStream::pair()?;
    // The user may have stopped its reader, so bound the wait: the calls of all other users wait for the
    // answer, too.
    near.set_read_timeout(Some(PATIENCE))?;
    near.set_write_timeout(Some(PATIENCE))?;
    let far: OwnedFd = far.into();
    let ids = [&[user.uid, user.gid], user.groups.as_slice()].concat();
    Command::new("/proc/self/exe")
        .arg0(READS)
        .args(ids.iter().map(ToString::to_string))
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::from(far))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(near)
}

/// Asks a reader. Each question and each answer begins with two words: the first is 0 or an error number, and
/// the second is the length of the rest.
fn ask(mut reader: &UnixStream, lookup: &Lookup) -> io::Result<Result<Vec<u8>, Errno>> {
    reader.write_all(&message(0, &lookup.to_bytes()))?;
    let (errno, answer) = receive(&mut reader)?;
    Ok(match errno.cast_signed() {
        0 => Ok(answer),
        errno => Err(Errno::from_raw_os_error(errno)),
    })
}

/// Becomes a reader, if dashpot was started for that.
pub fn become_reader() -> Option<ExitCode> {
    let mut words = args_os();
    if words.next()? != READS {
        return None;
    }
    let became = become_user(words);
    Some(match became.and_then(|()| answer_all(inherited()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// Gives up root, and takes the ids and the groups of a user. The standard library cannot start a process
/// with several groups.
fn become_user(ids: impl Iterator<Item = OsString>) -> io::Result<()> {
    let ids = ids.map(|id| id.to_string_lossy().parse().ok());
    let ids: Option<Vec<u32>> = ids.collect();
    let Some([uid, gid, groups @ ..]) = ids.as_deref() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
    let groups: Vec<Gid> = groups.iter().map(|group| Gid::from_raw(*group)).collect();
    // These calls change only the calling thread, and this process has no other thread.
    set_thread_groups(&groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// Answers dashpot's questions until dashpot has ended.
fn answer_all(mut dashpot: UnixStream) -> io::Result<()> {
    loop {
        let (_, question) = receive(&mut dashpot)?;
        let lookup = Lookup::from_bytes(&question).ok_or(io::ErrorKind::InvalidData)?;
        let answer = match lookup.answer() {
            Ok(answer) => message(0, &answer),
            Err(errno) => message(errno.raw_os_error().cast_unsigned(), &[]),
        };
        dashpot.write_all(&answer)?;
    }
}

fn message(word: u32, bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_ne_bytes();
    [&word.to_ne_bytes(), &length, bytes].concat()
}

fn receive(from: &mut impl Read) -> io::Result<(u32, Vec<u8>)> {
    let (mut word, mut length) = ([0; 4], [0; 4]);
    from.read_exact(&mut word)?;
    from.read_exact(&mut length)?;
    let length = u32::from_ne_bytes(length);
    if length > LENGTH_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    Ok((u32::from_ne_bytes(word), bytes))
}

/// The name under which dashpot starts a reader.
const READS: &str = "dashpot-reads-proc";
/// How long a reader may take to answer on a busy host.
const PATIENCE: Duration = Duration::from_secs(5);
/// The greatest number of readers. The processes of a program rarely run as more than two users.
const READERS_MAX: usize = 16;
/// The size of the longest answer, in bytes. A process can have 65,530 mappings, and the line of a mapping is
/// rarely longer than 250 bytes.
const LENGTH_MAX: u32 = 16 << 20;
