//! NBD URIs for plain sockets, as in doc/uri.md of NetworkBlockDevice/nbd.

use std::path::PathBuf;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::{Address, Listen, ParseError, parse_listen};

/// An export, and the address of its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdUri {
    /// The server.
    pub address: Address,
    /// The export. The empty name is the server's default export.
    pub export: String,
}

/// Parses `nbd://HOST[:PORT]/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`.
pub fn parse_uri(text: &str) -> Result<NbdUri, ParseError> {
    let parsed = match text.split_once("://") {
        Some(("nbd", rest)) => parse_tcp(rest),
        Some(("nbd+unix", rest)) => parse_unix(rest),
        _ => None,
    };
    parsed.ok_or_else(|| {
        ParseError::new(format!(
            "'{text}' is not an NBD URI: give nbd://HOST[:PORT]/DISK or \
             nbd+unix:///DISK?socket=PATH"
        ))
    })
}

fn parse_tcp(rest: &str) -> Option<NbdUri> {
    let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.contains(']'));
    let host = if has_port {
        host.to_owned()
    } else {
        format!("{host}:{DEFAULT_PORT}")
    };
    let Ok(Listen::At(address)) = parse_listen(&format!("tcp:{host}")) else {
        return None;
    };
    Some(NbdUri {
        address,
        export: decode(export)?,
    })
}

fn parse_unix(rest: &str) -> Option<NbdUri> {
    let (export, query) = rest.strip_prefix('/')?.split_once('?')?;
    let socket = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("socket="))?;
    let path = decode(socket).filter(|path| !path.is_empty())?;
    let address = Address::Unix(PathBuf::from(path));
    Some(NbdUri {
        address,
        export: decode(export)?,
    })
}

fn decode(text: &str) -> Option<String> {
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

/// The port for a URI without a port.
const DEFAULT_PORT: u16 = 10_809;

/// Encodes a name as one segment of a URI's path.
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// The characters that must be encoded in a segment: all but RFC 3986's unreserved characters.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[cfg(test)]
mod tests {
    use super::parse_uri;
    use crate::Address;

    #[test]
    fn addresses_and_exports() {
        for (text, address, export) in [
            ("nbd://127.0.0.1/a", "tcp:127.0.0.1:10809", "a"),
            ("nbd://127.0.0.1:7", "tcp:127.0.0.1:7", ""),
            ("nbd://[::1]:7/a%2Fb", "tcp:[::1]:7", "a/b"),
            (
                "nbd+unix:///tank/foo?socket=/run/a%20b",
                "unix:/run/a b",
                "tank/foo",
            ),
            ("nbd+unix:///?socket=x.sock", "unix:x.sock", ""),
        ] {
            let uri = parse_uri(text).unwrap();
            assert_eq!(
                (uri.address.to_string().as_str(), uri.export.as_str()),
                (address, export)
            );
        }
    }

    #[test]
    fn what_is_none_is_refused_with_both_forms() {
        for text in [
            "",
            "a",
            "http://a/b",
            "nbd+unix:///a",
            "nbd+unix:///a?socket=",
            "nbds://a",
        ] {
            let error = parse_uri(text).unwrap_err().to_string();
            assert!(error.contains("nbd+unix:///DISK?socket=PATH"), "{error}");
        }
        assert!(matches!(
            parse_uri("nbd+unix:///?socket=a").unwrap().address,
            Address::Unix(_)
        ));
    }

    #[test]
    fn a_name_is_one_segment() {
        assert_eq!(super::segment("tank/foo-1_a.b"), "tank%2Ffoo-1_a.b");
        assert_eq!(super::segment("a b%"), "a%20b%25");
    }
}
