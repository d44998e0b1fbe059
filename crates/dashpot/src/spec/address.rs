//! Where a socket is: `unix:PATH`, `unix:-` (private), `tcp:HOST:PORT`.

use std::net::ToSocketAddrs;
use std::path::PathBuf;

use dashpot_export::Address;

use super::ParseError;

/// What a path of a unix socket can hold on Linux (`sun_path` less its terminating zero).
const UNIX_PATH_MAX: usize = 107;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// A unix socket in a directory of its own, which only this user can enter.
    Private,
    /// An address that was named.
    At(Address),
}

/// An address to listen at. Names of hosts are looked up; port 0 picks a free one.
pub(crate) fn parse_listen(text: &str) -> Result<Listen, ParseError> {
    match text.split_once(':') {
        Some(("unix", "-")) => Ok(Listen::Private),
        Some(("unix", path)) => unix_address(path).map(Listen::At),
        Some(("tcp", socket)) => tcp_address(socket).map(Listen::At),
        _ => Err(ParseError::new(format!(
            "'{text}' is no address: write unix:PATH, unix:- or tcp:HOST:PORT"
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
            "the path '{path}' has {} bytes: a unix socket's has at most {UNIX_PATH_MAX}",
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
    use super::{Listen, parse_listen};
    use dashpot_export::Address;

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
