//! The paths at which the programs of one user find their daemon.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dashpot_rules::Address;

/// The directory of this user's sockets and tokens.
pub fn runtime_dir() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_dir()) {
        Some(dir) => PathBuf::from(dir).join("dashpot"),
        None => PathBuf::from(format!("/tmp/dashpot-{}", user_id())),
    }
}

/// The default socket of the API.
pub fn default_socket() -> PathBuf {
    runtime_dir().join("api.sock")
}

/// The socket of the API that a command asks. Under `sudo` it is that of the user who typed it, unless
/// root has a daemon of its own.
pub(crate) fn socket_to_ask() -> PathBuf {
    let own = default_socket();
    let caller = std::env::var("SUDO_UID").ok();
    let caller = caller.and_then(|uid| uid.parse().ok());
    match caller.filter(|_| user_id() == 0 && !own.exists()) {
        Some(uid) => socket_of(uid).unwrap_or(own),
        None => own,
    }
}

/// The socket of a daemon of a user, in a directory that is surely that user's.
fn socket_of(uid: u32) -> Option<PathBuf> {
    let places = [
        format!("/run/user/{uid}/dashpot"),
        format!("/tmp/dashpot-{uid}"),
    ];
    let is_theirs = |place: &String| {
        let found = std::fs::symlink_metadata(place);
        found.is_ok_and(|found| found.is_dir() && found.uid() == uid)
    };
    let theirs = places.iter().filter(|place| is_theirs(place));
    let mut sockets = theirs.map(|place| Path::new(place).join("api.sock"));
    sockets.find(|socket| socket.exists())
}

/// The file with the token of the API at a TCP address. Each address has a file of its own. So one
/// daemon does not overwrite the token of another, and the client sends each token only to its own
/// address.
pub fn token_file(socket: SocketAddr) -> PathBuf {
    runtime_dir().join(format!("api-{socket}.token"))
}

/// The socket beside the API's at which the daemon is handed descriptors.
pub fn handover_socket(api: &Address) -> PathBuf {
    match api {
        Address::Unix(path) => {
            let mut beside = path.clone().into_os_string();
            beside.push(".fd");
            beside.into()
        }
        Address::Tcp(socket) => runtime_dir().join(format!("api-{socket}.fd")),
    }
}

/// The real user id of this process.
pub fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}
