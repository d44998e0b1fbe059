//! Opens the listening sockets at which clients connect. Only the user of this process can connect to a unix
//! socket, and the socket's path is removed when the socket is dropped.

use std::ffi::OsStr;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs, io};

use dashpot_rules::{Address, visible};
use rustix::fs::{Mode, fchmod};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

/// The reason that clients cannot connect at an address.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another program listens at this address.
    #[error("{0}: {1} listens there already: {ways_out}", ways_out = ways_out("dashpot stop"))]
    InUse(Address, Occupant),
    /// The path exists, but is not a socket.
    #[error("{0}: this file exists and is not a socket; choose another path")]
    NotASocket(Address),
    /// The directory of a unix socket does not exist.
    #[error("{0}: there is no such directory; create it, or choose another path")]
    NoDirectory(Address),
    /// A descriptor that the parent process has handed over is not a listening socket.
    #[error(
        "LISTEN_FDS: descriptor {at} of those handed over {why}; hand over a listening stream socket"
    )]
    Handed {
        /// The descriptor's number among those that were handed over, counted from 1.
        at: usize,
        /// Why the descriptor cannot be used.
        why: String,
    },
    /// The system refuses to listen at this address.
    #[error("{address}: cannot listen there ({reason}); choose another address")]
    Refused {
        address: Address,
        /// The system's reason.
        reason: io::Error,
    },
}

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Listener {
    fd: OwnedFd,
    /// The address. If the configuration left the port open, this address has the port that the system
    /// picked.
    pub(crate) address: Address,
    /// Removes the path when the listener is dropped.
    _path: Option<Unlink>,
}

impl Listener {
    pub(crate) fn bind(address: &Address) -> Result<Listener, ListenError> {
        let listener = match address {
            Address::Unix(path) => bind_unix(path, address)?,
            Address::Tcp(socket) => bind_tcp(*socket, address)?,
        };
        let refused = |error: rustix::io::Errno| refusal(address, error.into());
        rustix::io::ioctl_fionbio(&listener.fd, true).map_err(refused)?;
        Ok(listener)
    }

    /// A listener on the socket that was handed over as number `at`. The socket's path is not removed.
    pub(crate) fn adopt(at: usize, socket: &OwnedFd) -> Result<Listener, ListenError> {
        let refused = |why: String| ListenError::Handed { at, why };
        let failed = |error: io::Error| refused(format!("cannot be used ({error})"));
        if !sockopt::socket_acceptconn(socket).unwrap_or(false) {
            return Err(refused("is no socket that listens".to_owned()));
        }
        let address = match net::getsockname(socket).map(SocketAddr::try_from) {
            Ok(Ok(tcp)) => Address::Tcp(tcp),
            _ => Address::Unix(
                path_of(socket).ok_or_else(|| refused("has no path and no port".to_owned()))?,
            ),
        };
        if matches!(address, Address::Tcp(_)) {
            keep_alive(socket).map_err(failed)?;
        }
        let fd = socket.try_clone().map_err(failed)?;
        rustix::io::ioctl_fionbio(&fd, true).map_err(|error| failed(error.into()))?;
        Ok(Listener {
            fd,
            address,
            _path: None,
        })
    }
}

/// The path of a unix socket, if the socket has a path.
fn path_of(socket: &OwnedFd) -> Option<PathBuf> {
    let address = SocketAddrUnix::try_from(net::getsockname(socket).ok()?).ok()?;
    let path = address.path()?;
    Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn bind_tcp(socket: SocketAddr, address: &Address) -> Result<Listener, ListenError> {
    let refused = |source| refusal(address, source);
    let listener = TcpListener::bind(socket).map_err(refused)?;
    keep_alive(&listener).map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    Ok(Listener {
        fd: listener.into(),
        address: Address::Tcp(bound),
        _path: None,
    })
}

fn bind_unix(path: &Path, address: &Address) -> Result<Listener, ListenError> {
    remove_dead_socket(path).map_err(|occupied| match occupied {
        Occupied::NotASocket => ListenError::NotASocket(address.clone()),
        Occupied::InUse(by) => ListenError::InUse(address.clone(), by),
        Occupied::Stuck(source) => refusal(address, source),
    })?;
    let listener = bind_private(path).map_err(|source| refusal(address, source))?;
    Ok(Listener {
        fd: listener.into(),
        address: address.clone(),
        _path: Some(Unlink(path.to_owned())),
    })
}

/// Binds a unix socket that only this user can connect to. On Linux, the socket's file gets the mode that the
/// descriptor has when it is bound. So other users can never connect, not even for a moment, and the umask,
/// which all threads share, need not change.
pub fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Makes the kernel probe the peers of idle connections. A host that has vanished sends nothing, so without
/// probes its connections would stay for ever. Connections inherit this setting from their listener.
pub fn keep_alive(socket: impl AsFd) -> io::Result<()> {
    sockopt::set_tcp_keepidle(&socket, IDLE)?;
    sockopt::set_tcp_keepintvl(&socket, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(&socket, PROBES)?;
    Ok(sockopt::set_socket_keepalive(&socket, true)?)
}

/// The reason that a socket cannot be bound to a path.
#[derive(Debug)]
pub enum Occupied {
    /// The path exists, but is not a socket.
    NotASocket,
    /// Another program listens on the socket.
    InUse(Occupant),
    /// The system refuses to remove the socket of a killed daemon.
    Stuck(io::Error),
}

/// Removes the socket that a killed daemon has left at `path`. Fails if anything else is at this path.
pub fn remove_dead_socket(path: &Path) -> Result<(), Occupied> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(Occupied::NotASocket);
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(Occupied::Stuck)
        }
        Ok(stream) => Err(Occupied::InUse(Occupant::of(&stream))),
        Err(_) => Err(Occupied::InUse(Occupant(None))),
    }
}

/// The program that listens at an address; `None` if the system does not show its process.
#[derive(Debug)]
pub struct Occupant(Option<(i32, String)>);

impl Occupant {
    fn of(stream: &UnixStream) -> Occupant {
        let pid = sockopt::socket_peercred(stream).map(|peer| peer.pid.as_raw_nonzero().get());
        let named = pid.ok().and_then(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            Some((pid, visible(name.trim_end()).into_owned()))
        });
        Occupant(named)
    }
}

impl fmt::Display for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some((pid, name)) => write!(f, "{name} (process {pid})"),
            None => f.write_str("another program"),
        }
    }
}

/// The remedies for a daemon that finds another one at its sockets. `stop` is the command that ends the other.
pub fn ways_out(stop: &str) -> String {
    format!("end it ({stop}), or give both sockets of this daemon: --api unix:PATH --nbd unix:PATH")
}

fn refusal(address: &Address, reason: io::Error) -> ListenError {
    let address = address.clone();
    match reason.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse(address, Occupant(None)),
        io::ErrorKind::NotFound => ListenError::NoDirectory(address),
        _ => ListenError::Refused { address, reason },
    }
}

/// Removes the path when this value is dropped.
#[derive(Debug)]
struct Unlink(PathBuf);

impl Drop for Unlink {
    fn drop(&mut self) {
        // The path may already be gone, together with its directory.
        let _ = fs::remove_file(&self.0);
    }
}

/// The length of the backlog. The system reduces it to the largest length that it allows. A client that finds
/// the backlog full retries only after a second or more.
const BACKLOG: i32 = i32::MAX;

/// How long a connection is idle before the kernel probes its peer.
const IDLE: Duration = Duration::from_secs(60);
/// The time between two probes of the peer of an idle connection.
const PROBE_EVERY: Duration = Duration::from_secs(10);
/// After this many probes without an answer, the kernel ends the connection.
const PROBES: u32 = 6;

#[cfg(test)]
mod tests {
    use super::{IDLE, ListenError, Listener};
    use dashpot_rules::Address;
    use rustix::net::sockopt;
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_unix_socket_is_open_to_its_user_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nbd.sock");
        let _listener = Listener::bind(&Address::Unix(path.clone())).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_live_socket_is_left_alone_and_a_dead_one_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let address = Address::Unix(directory.path().join("nbd.sock"));
        let first = Listener::bind(&address).unwrap();
        assert!(matches!(
            Listener::bind(&address),
            Err(ListenError::InUse(..))
        ));
        drop(first);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

        let Address::Unix(path) = &address else {
            return;
        };
        drop(UnixListener::bind(path).unwrap());
        assert!(path.exists(), "a listener of std leaves its path behind");
        Listener::bind(&address).unwrap();
    }

    #[test]
    fn a_file_is_not_taken_for_a_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("precious");
        fs::write(&path, "data").unwrap();
        let error = Listener::bind(&Address::Unix(path.clone())).unwrap_err();
        assert!(matches!(error, ListenError::NotASocket(_)));
        assert_eq!(fs::read(&path).unwrap(), b"data");
    }

    #[test]
    fn a_refusal_names_the_reason_and_the_remedy() {
        let missing = Address::Unix("/nonexistent/nbd.sock".into());
        let error = Listener::bind(&missing).unwrap_err().to_string();
        assert!(
            error.contains("/nonexistent/nbd.sock") && error.contains("create it"),
            "{error}"
        );
        let elsewhere = Address::Tcp("192.0.2.1:1".parse().unwrap());
        let error = Listener::bind(&elsewhere).unwrap_err().to_string();
        assert!(
            error.contains("os error") && error.contains("another address"),
            "{error}"
        );
    }

    #[test]
    fn a_host_that_vanishes_is_noticed() {
        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(&any).unwrap();
        let Address::Tcp(picked) = &listener.address else {
            panic!("{:?}", listener.address)
        };
        let _client = std::net::TcpStream::connect(picked).unwrap();
        let accepted = rustix::net::accept(&listener).unwrap();
        assert!(sockopt::socket_keepalive(&accepted).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&accepted).unwrap(), IDLE);
    }

    #[test]
    fn a_socket_that_was_handed_over_keeps_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sock");
        let handed = OwnedFd::from(UnixListener::bind(&path).unwrap());
        let listener = Listener::adopt(1, &handed).unwrap();
        assert_eq!(listener.address, Address::Unix(path.clone()));
        drop(listener);
        assert!(path.exists());
        let handed = OwnedFd::from(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let listener = Listener::adopt(1, &handed).unwrap();
        assert!(matches!(listener.address, Address::Tcp(at) if at.port() != 0));
    }

    #[test]
    fn other_things_that_were_handed_over_are_refused() {
        let file = OwnedFd::from(tempfile::tempfile().unwrap());
        let (connected, _) = std::os::unix::net::UnixStream::pair().unwrap();
        for handed in [file, OwnedFd::from(connected)] {
            let error = Listener::adopt(2, &handed).unwrap_err().to_string();
            assert!(
                error.contains("descriptor 2") && error.contains("no socket that listens"),
                "{error}"
            );
        }
    }

    #[test]
    fn port_0_picks_one() {
        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(&any).unwrap();
        let Address::Tcp(picked) = &listener.address else {
            panic!("{:?}", listener.address)
        };
        assert_ne!(picked.port(), 0);
    }
}
