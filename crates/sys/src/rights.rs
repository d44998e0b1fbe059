//! The rights with which a thread looks at files and at other processes: for a while, those of another user.
//!
//! The kernel checks a look into another process, as into `/proc/PID/fd`, by the file-system ids of the thread
//! that looks. So a thread of root that takes these ids of a user sees what the user may see, also without
//! CAP_SYS_PTRACE. Its other ids stay those of root, so the user can neither stop the thread nor look into it.

use std::process::abort;

use rustix::io::Errno;
use rustix::process::{Gid, getegid, geteuid, getgroups};
use rustix::thread::set_thread_groups;

/// The numbers of a user and of the user's groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The number of the user's group.
    pub gid: u32,
    /// The numbers of the user's supplementary groups.
    pub groups: Vec<u32>,
}

/// Does some work with the rights of a user. The rights of other threads do not change.
///
/// # Errors
/// Fails with `EACCES` if this process may not take the rights of the user: only root may.
pub fn with_rights_of<T>(user: &User, work: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    if !geteuid().is_root() {
        return Err(Errno::ACCESS);
    }
    let _own = Own::exchanged_for(user)?;
    work()
}

/// The ids of this thread, which it takes back when this value is dropped.
struct Own {
    uid: u32,
    gid: u32,
    groups: Vec<Gid>,
}

impl Own {
    fn exchanged_for(user: &User) -> Result<Own, Errno> {
        let own = Own {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
            groups: getgroups()?,
        };
        let groups: Vec<Gid> = user.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        set_thread_groups(&groups).map_err(|_| Errno::ACCESS)?;
        if take_group(user.gid) && take_user(user.uid) {
            Ok(own)
        } else {
            // Dropping `own` takes this thread's ids back.
            Err(Errno::ACCESS)
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let is_back =
            take_user(self.uid) && take_group(self.gid) && set_thread_groups(&self.groups).is_ok();
        if !is_back {
            // The kernel always gives a thread its own ids back. No thread may go on with those of another
            // user.
            abort();
        }
    }
}

/// Takes a user's file-system id. Returns whether the thread has it now.
fn take_user(uid: u32) -> bool {
    // SAFETY: the call only changes the ids of this thread. It returns the id that the thread had before, and
    // with an invalid id it changes nothing.
    unsafe {
        libc::setfsuid(uid);
        libc::setfsuid(INVALID) == uid.cast_signed()
    }
}

/// As [`take_user`], for a group.
fn take_group(gid: u32) -> bool {
    // SAFETY: as in `take_user`.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsgid(INVALID) == gid.cast_signed()
    }
}

/// The id that no user and no group has.
const INVALID: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::{User, with_rights_of};
    use rustix::io::Errno;
    use rustix::process::geteuid;
    use std::fs::{Permissions, read, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, chown};

    #[test]
    fn a_thread_has_the_rights_of_a_user_for_a_while() {
        let user = |uid| User {
            uid,
            gid: uid,
            groups: Vec::new(),
        };
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        write(&path, "x").unwrap();
        let look = || read(&path).map_err(|error| Errno::from_io_error(&error).unwrap());
        if !geteuid().is_root() {
            assert_eq!(with_rights_of(&user(7), look), Err(Errno::ACCESS));
            return;
        }
        set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(7), Some(7)).unwrap();
        assert_eq!(with_rights_of(&user(7), look), Ok(b"x".to_vec()));
        assert_eq!(with_rights_of(&user(8), look), Err(Errno::ACCESS));
        assert_eq!(look(), Ok(b"x".to_vec()));
        let new = place.path().join("new");
        write(&new, "").unwrap();
        assert!(std::fs::metadata(&new).is_ok(), "this thread is root again");
    }
}
