//! The listeners of the API and the metrics: a unix socket that only this user can reach, or TCP.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use axum::Router;
use dashpot_api::{RUNTIME_DIR_REMEDY, default_socket, runtime_dir, token_file, user_id};
use dashpot_export::{Occupied, bind_private, keep_alive, remove_dead_socket, ways_out};
use dashpot_rules::{Address, shell_word};
use tokio::net::{TcpListener, UnixListener, UnixStream};

use super::access::Hosts;
use super::answer::{Manners, answer};

/// A listening socket. Dropping it removes a unix socket.
pub struct HttpListener {
    address: Address,
    socket: Socket,
}

enum Socket {
    Unix(UnixSocket),
    Tcp(TcpListener),
}

/// A unix socket that only this user can reach. Dropping it removes its file.
pub(crate) struct UnixSocket(UnixListener, SocketFile);

impl UnixSocket {
    /// Listens at a path that the user gave with `option`.
    pub(crate) fn bind(option: &str, path: &Path) -> anyhow::Result<UnixSocket> {
        if path.parent() == Some(&runtime_dir()) {
            make_private_dir(&runtime_dir())?;
        }
        make_way(option, path)?;
        match listen_private(path) {
            Ok(listener) => Ok(UnixSocket(listener, SocketFile(path.to_owned()))),
            Err(error) => bail!(
                "{option} unix:{}: cannot listen there: {error}{}",
                path.display(),
                remedy(path, &error)
            ),
        }
    }

    /// Waits for the next caller.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.0.accept().await?;
        Ok(stream)
    }
}

/// The remedy if a file cannot be made at a path.
fn remedy(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied | ErrorKind::NotFound => {
            if path.parent() == Some(&runtime_dir()) {
                format!("; {RUNTIME_DIR_REMEDY}")
            } else {
                "; name a path in a directory that this user can write".to_owned()
            }
        }
        _ => String::new(),
    }
}

/// The file of a socket. Dropping this value removes the file.
struct SocketFile(PathBuf);

impl HttpListener {
    /// Listens at the address of `option`. Replaces the socket of a daemon that has ended. Fails if
    /// another daemon listens there.
    pub async fn bind(option: &str, address: &Address) -> anyhow::Result<HttpListener> {
        match address {
            Address::Unix(path) => Ok(HttpListener {
                address: address.clone(),
                socket: Socket::Unix(UnixSocket::bind(option, path)?),
            }),
            Address::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted).await;
                let listener = listener.with_context(|| {
                    format!("{option} tcp:{wanted}: cannot listen there (port 0 picks a free one)")
                })?;
                keep_alive(&listener)?;
                Ok(HttpListener {
                    address: Address::Tcp(listener.local_addr()?),
                    socket: Socket::Tcp(listener),
                })
            }
        }
    }

    /// The address at which the listener listens. The kernel has replaced port 0 by a free port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The hosts that requests over TCP may name: addresses, the local names, and the names in `allowed`.
    /// `None` for a unix socket, where no host is checked.
    pub fn hosts(&self, allowed: &[String]) -> Option<Hosts> {
        match self.address {
            Address::Unix(_) => None,
            Address::Tcp(_) => Some(Hosts::new(allowed.to_vec())),
        }
    }

    /// Answers requests until the future is dropped.
    pub async fn serve(self, router: Router, manners: Manners) {
        match self.socket {
            Socket::Unix(UnixSocket(listener, _file)) => answer(listener, router, manners).await,
            Socket::Tcp(listener) => answer(listener, router, manners).await,
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // If a user has already removed the file, nothing is left to do.
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes the directory of sockets, or checks that no other user can reach its files.
pub fn make_private_dir(dir: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().mode(0o700).create(dir);
    match made {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => bail!(
            "cannot make {}: {error}; {RUNTIME_DIR_REMEDY}",
            dir.display()
        ),
    }
    let metadata = fs::symlink_metadata(dir)?;
    if !metadata.is_dir() || metadata.uid() != user_id() {
        bail!(
            "{} is not a directory of this user: remove it, or set XDG_RUNTIME_DIR",
            dir.display()
        );
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// The file from which this user's commands read the token of an API over TCP. Dropping this removes
/// the file.
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// Writes the token of the API at an address into a file that only this user can read.
    pub fn write(socket: SocketAddr, token: &str) -> anyhow::Result<TokenFile> {
        make_private_dir(&runtime_dir())?;
        let path = token_file(socket);
        // If the file exists, remove it, because other users, or programs that read the last token, may have
        // it open.
        let _ = fs::remove_file(&path);
        let mut file = fs::OpenOptions::new();
        let file = file.write(true).create_new(true).mode(0o600).open(&path);
        if let Err(error) = file.and_then(|mut file| writeln!(file, "{token}")) {
            bail!(
                "cannot write {}: {error}{}",
                path.display(),
                remedy(&path, &error)
            );
        }
        Ok(TokenFile(path))
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // If a user has already removed the file, nothing is left to do.
        let _ = fs::remove_file(&self.0);
    }
}

fn listen_private(path: &Path) -> io::Result<UnixListener> {
    let listener = bind_private(path)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Removes the socket of a daemon that was killed. Any other file is an error.
fn make_way(option: &str, path: &Path) -> anyhow::Result<()> {
    match remove_dead_socket(path) {
        Ok(()) => Ok(()),
        Err(Occupied::NotASocket) => bail!(
            "{option} unix:{}: that is not a socket; name another path",
            path.display()
        ),
        Err(Occupied::Stuck(error)) => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Err(Occupied::InUse(by)) => {
            let at = path.display();
            let ways_out = match option {
                "--api" if path == default_socket() => ways_out("dashpot stop"),
                "--api" => ways_out(&format!(
                    "dashpot --api {} stop",
                    shell_word(&format!("unix:{at}"))
                )),
                _ => format!("end it, or give this one {option} unix:PATH"),
            };
            bail!("{option} unix:{at}: {by} listens there already: {ways_out}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HttpListener, Socket, make_private_dir};
    use dashpot_rules::Address;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &std::path::Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn a_live_socket_is_left_alone_and_a_dead_one_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.sock");
        let address = Address::Unix(path.clone());
        let first = HttpListener::bind("--api", &address).await.unwrap();
        assert_eq!(mode(&path) & 0o077, 0);
        let second = HttpListener::bind("--api", &address).await.err().unwrap();
        assert!(second.to_string().contains("listens there"), "{second}");
        drop(first);
        assert!(!path.exists());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        HttpListener::bind("--api", &address).await.unwrap();
    }

    #[tokio::test]
    async fn a_host_that_vanishes_is_noticed() {
        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let listener = HttpListener::bind("--api", &any).await.unwrap();
        let Socket::Tcp(socket) = &listener.socket else {
            panic!("a unix socket");
        };
        assert!(rustix::net::sockopt::socket_keepalive(socket).unwrap());
    }

    #[tokio::test]
    async fn a_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        std::fs::write(&path, "mine").unwrap();
        let refused = HttpListener::bind("--api", &Address::Unix(path.clone()))
            .await
            .err();
        assert!(refused.unwrap().to_string().contains("not a socket"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn the_directory_is_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dashpot");
        make_private_dir(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        make_private_dir(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
    }
}
