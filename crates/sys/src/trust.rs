//! The users whom a process may trust at a path.
//!
//! In a directory such as `/tmp`, any user can make a file first under the name that another process will look
//! for. So the owner of a file says whether to trust it, and the directories on the way to it say which owners
//! can be right: a directory that only trusted users can write leads to further trusted users, because one of
//! them gave the next directory to its owner. `/run/user/1000` leads to user 1000, and `/tmp/api.sock` to
//! nobody.

use std::collections::VecDeque;
use std::fs::{Metadata, read_link, read_to_string, symlink_metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf, absolute};

use rustix::io::Errno;
use rustix::process::geteuid;

/// The users whom this process trusts at a path.
#[derive(Debug)]
pub struct Trusted(Vec<u32>);

impl Trusted {
    /// Root, this process's user, the user who typed `sudo`, and the users to whom one of these gave `path`, or
    /// a directory or a link on the way to it. Nobody, if the way leads through a stranger's file. Fails if the
    /// path's directory cannot be examined.
    pub fn at(path: &Path) -> io::Result<Trusted> {
        let mut users = Trusted(own_users());
        let mut walk = Walk::to(path)?;
        let mut is_shared = false;
        while let Some(found) = walk.next()? {
            if !users.admits(&found, is_shared) {
                // The stranger decides where the rest of the way leads, to a file of root's, say.
                return Ok(Trusted(Vec::new()));
            }
            // The mode of a link says nothing: what a link leads to is looked at next.
            is_shared = if found.is_symlink() {
                is_shared
            } else {
                found.mode() & OTHERS_WRITE != 0
            };
        }
        Ok(users)
    }

    /// Whether the walk may go on: a trusted user made this file, or gave it to its owner, who is trusted from
    /// here on.
    fn admits(&mut self, found: &Metadata, is_shared: bool) -> bool {
        let owner = found.uid();
        if !self.has(owner) {
            if is_shared {
                return false;
            }
            // A user outside of this user namespace may be any user, root included.
            if !is_unmapped(owner) {
                self.0.push(owner);
            }
        }
        true
    }

    /// Whether a file or a process of this user may be trusted.
    pub fn has(&self, uid: u32) -> bool {
        self.0.contains(&uid)
    }

    /// Whether a file may be trusted: it exists, and belongs to a user whom this process trusts at this path.
    /// Of a link, its own owner counts.
    pub fn owns(path: &Path) -> bool {
        let found = symlink_metadata(path);
        found.is_ok_and(|found| Trusted::stranger(path, found.uid()).is_none())
    }

    /// The user, if this process may not trust that user at this path.
    pub fn stranger(path: &Path, uid: u32) -> Option<u32> {
        let is_trusted = Trusted::at(path).is_ok_and(|trusted| trusted.has(uid));
        (!is_trusted).then_some(uid)
    }
}

/// Root, this process's user and, for root, the user who typed `sudo`.
fn own_users() -> Vec<u32> {
    let own = geteuid().as_raw();
    let caller = std::env::var("SUDO_UID");
    let caller = caller.ok().and_then(|uid| uid.parse().ok());
    [Some(ROOT), Some(own), caller.filter(|_| own == ROOT)]
        .into_iter()
        .flatten()
        .collect()
}

/// Looks at the files on the way to a path as the kernel does: one after another, links included.
struct Walk {
    at: PathBuf,
    rest: VecDeque<PathBuf>,
    links: usize,
}

impl Walk {
    fn to(path: &Path) -> io::Result<Walk> {
        let mut walk = Walk {
            at: PathBuf::new(),
            rest: VecDeque::new(),
            links: 0,
        };
        walk.go_first(&absolute(path)?);
        Ok(walk)
    }

    fn go_first(&mut self, path: &Path) {
        for part in path.components().rev() {
            self.rest.push_front(part.as_os_str().into());
        }
    }

    /// The next file on the way. The last one may be missing.
    fn next(&mut self) -> io::Result<Option<Metadata>> {
        let Some(part) = self.rest.pop_front() else {
            return Ok(None);
        };
        let path = match part.components().next() {
            Some(Component::ParentDir) => self.at.parent().unwrap_or(&self.at).to_owned(),
            _ => self.at.join(part),
        };
        let found = match symlink_metadata(&path) {
            Err(error) if self.rest.is_empty() && error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            found => found?,
        };
        if found.is_symlink() {
            self.links += 1;
            if self.links > LINKS_MAX {
                return Err(Errno::LOOP.into());
            }
            self.go_first(&read_link(&path)?);
        } else {
            self.at = path;
        }
        Ok(Some(found))
    }
}

/// Whether the kernel shows this number also for users who have none in this user namespace.
fn is_unmapped(uid: u32) -> bool {
    uid == OVERFLOW && read_to_string("/proc/self/uid_map").is_ok_and(|map| !maps_all(&map))
}

fn maps_all(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

const ROOT: u32 = 0;
/// The number that the kernel shows for users without one, unless /proc/sys/kernel/overflowuid is changed.
const OVERFLOW: u32 = 65_534;
/// How many links the kernel follows on one way.
const LINKS_MAX: usize = 40;
/// The bits of a directory's mode that let users other than its owner make files.
const OTHERS_WRITE: u32 = 0o022;

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
    use std::path::Path;

    use super::{Trusted, geteuid, maps_all};

    const STRANGER: u32 = 4242;

    fn make(path: &Path, mode: u32, owner: u32) {
        fs::create_dir_all(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        chown(path, Some(owner), None).unwrap();
    }

    #[test]
    fn own_files_are_trusted_wherever_they_are() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o1777)).unwrap();
        let file = home.path().join("file");
        assert!(!Trusted::owns(&file), "missing");
        fs::write(&file, "").unwrap();
        assert!(Trusted::owns(&file));
        assert!(Trusted::at(Path::new("file")).unwrap().has(0));
        assert!(Trusted::at(Path::new("/nowhere/file")).is_err());
    }

    #[test]
    fn a_stranger_is_trusted_only_where_a_trusted_user_gave_a_directory() {
        if !geteuid().is_root() {
            eprintln!("skipped: trust::a_stranger_is_trusted: takes root");
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let trusts = |path: &Path| Trusted::at(&path.join("api.sock")).unwrap().has(STRANGER);
        let (shared, given) = (home.path().join("tmp"), home.path().join("given"));
        make(&shared, 0o1777, 0);
        make(&given, 0o755, STRANGER);
        assert!(trusts(&given), "only root can have made it");
        assert!(!trusts(&shared));
        let first = shared.join("dashpot-0");
        make(&first, 0o700, STRANGER);
        assert!(!trusts(&first), "the stranger made it first");
        make(&first.join("below"), 0o700, STRANGER);
        assert!(!trusts(&first.join("below")));
        let own = shared.join("own");
        make(&own, 0o755, 0);
        make(&own.join("given"), 0o755, STRANGER);
        assert!(trusts(&own.join("given")), "root made it within its own");
        let group = home.path().join("group");
        make(&group, 0o775, 0);
        make(&group.join("theirs"), 0o755, STRANGER);
        assert!(!trusts(&group.join("theirs")), "the group may have made it");
        let link = |to: &Path, owner: u32| {
            let link = shared.join(format!("link-{owner}"));
            symlink(to, &link).unwrap();
            lchown(&link, Some(owner), None).unwrap();
            link
        };
        assert!(trusts(&link(&given, 0)), "root made the link");
        assert!(!trusts(&link(&given, STRANGER)), "the stranger made it");
        assert!(
            !trusts(&first.join("../../given")),
            "the way leads through theirs"
        );
    }

    #[test]
    fn what_a_strangers_way_leads_to_is_not_trusted_even_if_it_is_roots() {
        if !geteuid().is_root() {
            eprintln!("skipped: trust::what_a_strangers_way_leads_to: takes root");
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let theirs = home.path().join("tmp/theirs");
        make(&home.path().join("tmp"), 0o1777, 0);
        make(&theirs, 0o755, STRANGER);
        let precious = home.path().join("precious");
        fs::write(&precious, "").unwrap();
        assert_eq!(Trusted::stranger(&precious, 0), None);
        symlink(&precious, theirs.join("disk.img")).unwrap();
        assert_eq!(Trusted::stranger(&theirs.join("disk.img"), 0), Some(0));
        make(&theirs.join("rec"), 0o755, 0);
        assert!(!Trusted::owns(&theirs.join("rec")));
    }

    #[test]
    fn only_the_first_namespace_has_all_users() {
        assert!(maps_all("         0          0 4294967295\n"));
        assert!(!maps_all("      1000       1000          1\n"));
        let rootless = "         0       1000          1\n         1     100000      65536\n";
        assert!(!maps_all(rootless));
    }
}
