//! The paths at which the programs of one user find their daemon.

use std::net::SocketAddr;
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
