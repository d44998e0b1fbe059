//! The address of a socket: `unix:PATH`, `unix:-` (private), `tcp:HOST:PORT`. An API's address is either the
//! address of its socket or the URL that its daemon prints, `http://HOST:PORT/?token=TOKEN`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use super::ParseError;

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A path in the file system.
    Unix(PathBuf),
    /// A TCP address; port 0 picks a free port.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(addr) => write!(f, "tcp:{addr}"),
        }
    }
}

/// The maximum length of a Unix socket's path on Linux (`sun_path` without its terminating zero).
const UNIX_PATH_MAX: usize = 107;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket in a separate directory that only this user can enter.
    Private,
    /// The address that the user gave.
    At(Address),
}

/// The address of an API, and its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAddress {
    /// The socket.
    pub at: Listen,
    pub token: Option<String>,
}

pub fn parse_api(text: &str) -> Result<ApiAddress, ParseError> {
    let Some(url) = text.strip_prefix("http://") else {
        let at = parse_listen(text)?;
        return Ok(ApiAddress { at, token: None });
    };
    let (socket, rest) = url.split_at(url.find(['/', '?']).unwrap_or(url.len()));
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let token = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("token="));
    Ok(ApiAddress {
        at: Listen::At(tcp_address(socket)?),
        token: token.map(str::to_owned),
    })
}

/// Parses an address to listen at. Names of hosts are looked up; port 0 picks a free port.
pub fn parse_listen(text: &str) -> Result<Listen, ParseError> {
    match text.split_once(':') {
        Some(("unix", "-")) => Ok(Listen::Private),
        Some(("unix", path)) => unix_address(path).map(Listen::At),
        Some(("tcp", socket)) => tcp_address(socket).map(Listen::At),
        _ => Err(ParseError::new(format!(
            "'{text}' is not an address: write unix:PATH, unix:- or tcp:HOST:PORT"
        ))),
    }
}

fn unix_address(path: &str) -> Result<Address, ParseError> {
    if path.is_empty() {
        return Err(ParseError::new(
            "'unix:' has no path: write unix:PATH or unix:-",
        ));
    }
    if path.len() > UNIX_PATH_MAX {
        return Err(ParseError::new(format!(
            "the path '{path}' has {} bytes: the path of a unix socket has at most {UNIX_PATH_MAX}",
            path.len()
        )));
    }
    Ok(Address::Unix(PathBuf::from(path)))
}

fn tcp_address(socket: &str) -> Result<Address, ParseError> {
    let refuse = |why: String| ParseError::new(format!("'tcp:{socket}': {why}"));
    let has_host = socket
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !has_host {
        return Err(refuse(
            "write tcp:HOST:PORT, with 0 for any free port".to_owned(),
        ));
    }
    let mut found = socket
        .to_socket_addrs()
        .map_err(|error| refuse(format!("the host is not known: {error}")))?;
    let first = found
        .next()
        .ok_or_else(|| refuse("the host has no address".to_owned()))?;
    Ok(Address::Tcp(first))
}

#[cfg(test)]
mod tests {
    use super::{Address, ApiAddress, Listen, parse_api, parse_listen};

    #[test]
    fn addresses() {
        assert_eq!(parse_listen("unix:-"), Ok(Listen::Private));
        let unix = Listen::At(Address::Unix("/run/a:b.sock".into()));
        assert_eq!(parse_listen("unix:/run/a:b.sock"), Ok(unix));
        for socket in ["127.0.0.1:0", "[::1]:10809"] {
            let tcp = socket
                .parse()
                .map(|addr| Listen::At(Address::Tcp(addr)))
                .ok();
            assert_eq!(parse_listen(&format!("tcp:{socket}")).ok(), tcp);
        }
    }

    #[test]
    fn an_api_is_found_at_what_its_daemon_printed() {
        let api = |token: Option<&str>| ApiAddress {
            at: Listen::At(Address::Tcp("127.0.0.1:4242".parse().unwrap())),
            token: token.map(str::to_owned),
        };
        for (text, token) in [
            ("tcp:127.0.0.1:4242", None),
            ("http://127.0.0.1:4242", None),
            ("http://127.0.0.1:4242/", None),
            ("http://127.0.0.1:4242/?token=abc", Some("abc")),
            ("http://127.0.0.1:4242?x=1&token=abc", Some("abc")),
        ] {
            assert_eq!(parse_api(text), Ok(api(token)), "{text}");
        }
        for text in [
            "http://",
            "http://127.0.0.1/?token=abc",
            "https://127.0.0.1:4242",
        ] {
            assert!(parse_api(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "/run/sock",
            "unix:",
            "tcp:",
            "tcp:10809",
            "tcp::10809",
            "tcp:127.0.0.1",
            "tcp:127.0.0.1:70000",
            "udp:127.0.0.1:1",
            "tcp:::1",
        ] {
            assert!(parse_listen(text).is_err(), "{text}");
        }
        assert!(parse_listen(&format!("unix:/{}", "a".repeat(107))).is_err());
    }
}
