//! The paths at which the programs of one user find their daemon.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf, absolute};

use dashpot_rules::Address;
use dashpot_sys::Trusted;
use rustix::net::sockopt::socket_peercred;

/// The directory of this user's sockets and tokens. It is below `XDG_RUNTIME_DIR` if this user or root owns
/// that directory, or else below `/run/user/UID`; root's is `/run/dashpot`. Only where none of these can be
/// written is it in `/tmp`, where another user may have made it first.
pub fn runtime_dir() -> PathBuf {
    let uid = user_id();
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let given = given.filter(|dir| is_dir_of(dir, &[uid, ROOT]));
    let session = || Some(PathBuf::from(format!("/run/user/{uid}")));
    let session = || session().filter(|dir| is_dir_of(dir, &[uid]));
    let system = || (uid == ROOT && can_write(RUN)).then(|| RUN.into());
    match given.or_else(session).or_else(system) {
        Some(dir) => dir.join("dashpot"),
        None => PathBuf::from(format!("/tmp/dashpot-{uid}")),
    }
}

/// The remedy where the files of the [runtime directory](runtime_dir) cannot be made.
pub const RUNTIME_DIR_REMEDY: &str = "set XDG_RUNTIME_DIR to a directory of your own that can be written; a \
     container with a read-only root gets one by a tmpfs (docker run --tmpfs /tmp)";

fn is_dir_of(dir: &Path, owners: &[u32]) -> bool {
    std::fs::metadata(dir).is_ok_and(|found| found.is_dir() && owners.contains(&found.uid()))
}

fn can_write(dir: &str) -> bool {
    rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
}

/// The user who typed `sudo`.
fn caller() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

/// The default socket of the API.
pub fn default_socket() -> PathBuf {
    runtime_dir().join("api.sock")
}

/// The path at which a command finds a file of its daemon. Under `sudo`, the file is in the directory of
/// the user who typed `sudo`, unless root's own daemon has such a file.
pub(crate) fn to_ask(own: PathBuf) -> PathBuf {
    let in_runtime_dir = own.parent() == Some(&runtime_dir());
    let may_be_theirs = user_id() == 0 && in_runtime_dir && !is_in_use(&own);
    match caller().filter(|_| may_be_theirs) {
        Some(uid) => file_of(uid, &own).unwrap_or(own),
        None => own,
    }
}

/// Whether the file exists and, if it is a socket, whether a daemon of a trusted user listens at it. A daemon that was
/// killed leaves its socket behind.
fn is_in_use(path: &Path) -> bool {
    let is_socket = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket {
        let trusted = |listener: UnixStream| {
            socket_peercred(&listener)
                .is_ok_and(|peer| Trusted::stranger(path, peer.uid.as_raw()).is_none())
        };
        UnixStream::connect(path).is_ok_and(trusted)
    } else {
        path.exists()
    }
}

/// The file that the daemon of user `uid` has made under the same name as `own`. The file's directory must
/// belong to that user.
fn file_of(uid: u32, own: &Path) -> Option<PathBuf> {
    let name = own.file_name()?;
    let places = [
        format!("/run/user/{uid}/dashpot"),
        format!("/tmp/dashpot-{uid}"),
    ];
    let is_theirs = |place: &String| {
        let found = std::fs::symlink_metadata(place);
        found.is_ok_and(|found| found.is_dir() && found.uid() == uid)
    };
    let theirs = places.iter().filter(|place| is_theirs(place));
    let mut files = theirs.map(|place| Path::new(place).join(name));
    files.find(|file| file.exists())
}

/// The environment variable with the token of an API over TCP: the daemon demands this token, and clients
/// send it.
pub const TOKEN_VARIABLE: &str = "DASHPOT_TOKEN";

/// The token in [`TOKEN_VARIABLE`].
pub fn token_from_environment() -> Option<String> {
    let token = std::env::var_os(TOKEN_VARIABLE)?;
    let token = token.to_string_lossy().into_owned();
    Some(token).filter(|token| !token.is_empty())
}

/// The file with the token of the API at a TCP address. Each address has a file of its own, so that no daemon
/// overwrites the token of another, and a client sends a token only to the address that the token is for.
pub fn token_file(socket: SocketAddr) -> PathBuf {
    runtime_dir().join(format!("api-{socket}.token"))
}

/// The address of an API in a form that is valid in every working directory: the path of a socket begins at
/// the root, and none of its directories is a link.
pub fn whole_address(api: &Address) -> Address {
    let Address::Unix(path) = api else {
        return api.clone();
    };
    let whole = absolute(path).unwrap_or_else(|_| path.clone());
    let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
        return Address::Unix(whole);
    };
    match parent.canonicalize() {
        Ok(parent) => Address::Unix(parent.join(name)),
        Err(_) => Address::Unix(whole),
    }
}

/// The socket at which the daemon receives descriptors. It is beside the API's socket or, for an API over
/// TCP, in the runtime directory.
pub fn handover_socket(api: &Address) -> PathBuf {
    match api {
        Address::Unix(path) => beside(path),
        Address::Tcp(socket) => runtime_dir().join(format!("api-{socket}.fd")),
    }
}

/// The link to the recording that a daemon makes: beside the API's socket or, for an API over TCP, in the
/// runtime directory.
pub fn recording_link(api: &Address) -> PathBuf {
    match api {
        Address::Unix(path) => {
            let mut path = path.clone().into_os_string();
            path.push(".rec");
            path.into()
        }
        Address::Tcp(socket) => runtime_dir().join(format!("api-{socket}.rec")),
    }
}

/// The link to the recording that `observe` makes of the kernel's disks. Root makes the link, for all users.
pub fn kernel_recording_link() -> PathBuf {
    PathBuf::from("/run/dashpot/kernel.rec")
}

/// The path of the API's socket with the suffix of handover sockets. If the result would be too long for a
/// socket's path, the suffix replaces the last bytes of the path.
fn beside(api: &Path) -> PathBuf {
    let api = api.as_os_str().as_bytes();
    let kept = api.len().min(SOCKET_PATH_MAX - SUFFIX.len());
    OsString::from_vec([&api[..kept], SUFFIX].concat()).into()
}

const ROOT: u32 = 0;
/// The directory of the sockets of system services. Only root can write it.
const RUN: &str = "/run";
const SUFFIX: &[u8] = b".fd";
/// The longest path of a unix socket, which is `sun_path` in unix(7) without the byte that ends it.
const SOCKET_PATH_MAX: usize = 107;

/// The real user id of this process.
pub fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::{handover_socket, is_in_use, whole_address};
    use dashpot_rules::Address;
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};

    #[test]
    fn an_address_reads_the_same_in_every_directory() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        let own = Address::Unix(here.join("a.sock"));
        for path in ["a.sock", "./a.sock", "/proc/self/cwd/a.sock"] {
            assert_eq!(whole_address(&Address::Unix(path.into())), own, "{path}");
        }
        let nowhere = Address::Unix("/nowhere/a.sock".into());
        assert_eq!(whole_address(&nowhere), nowhere);
        let tcp = Address::Tcp("127.0.0.1:1".parse().unwrap());
        assert_eq!(whole_address(&tcp), tcp);
    }

    fn beside(length: usize) -> (String, PathBuf) {
        let api = format!("/run/{:a>1$}", "", length - "/run/".len());
        (api.clone(), handover_socket(&Address::Unix(api.into())))
    }

    #[test]
    fn the_handover_socket_fits_wherever_the_apis_does() {
        let (api, socket) = beside(104);
        assert_eq!(socket, Path::new(&(api + ".fd")));
        for length in 105..=107 {
            let (api, socket) = beside(length);
            assert_eq!(socket.as_os_str().len(), 107);
            assert_eq!(socket.parent(), Path::new(&api).parent());
            assert_ne!(socket, Path::new(&api));
        }
    }

    #[test]
    fn the_socket_of_a_killed_daemon_is_not_in_use() {
        let name = format!("dashpot-place-{}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listener = UnixListener::bind(&path).expect("a socket");
        assert!(is_in_use(&path));
        drop(listener);
        assert!(path.exists() && !is_in_use(&path));
        std::fs::remove_file(&path).expect("its removal");
    }
}
