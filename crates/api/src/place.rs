//! Where a daemon of this user is found.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The directory of sockets that this user's programs find each other in.
pub fn runtime_dir() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_dir()) {
        Some(dir) => PathBuf::from(dir).join("dashpot"),
        None => PathBuf::from(format!("/tmp/dashpot-{}", user_id())),
    }
}

/// Where a daemon's API is that nobody has named.
pub fn default_socket() -> PathBuf {
    runtime_dir().join("api.sock")
}

/// Where the command line finds the token of the API at an address of TCP. Each has a file of its
/// own: daemons do not take each other's away, and no other address is ever sent the token.
pub fn token_file(socket: SocketAddr) -> PathBuf {
    runtime_dir().join(format!("api-{socket}.token"))
}

pub fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}
