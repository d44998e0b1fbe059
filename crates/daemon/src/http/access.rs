//! Access over TCP. The API requires the token, and refuses requests from pages of other sites. The metrics
//! need no token, but also refuse requests from pages of other sites.
//!
//! A browser sends requests on behalf of any page that it shows. The check of `Origin` keeps pages of other
//! sites out. The check of `Host` keeps out pages whose site has a foreign name that resolves to this host.
//! A `Host` that is an IP address is always allowed, because no other site can make an address lead to this
//! host. The token keeps all other callers out.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use dashpot_api::Error;

use super::answer::Guest;
use super::error::refuse;
use super::page;

/// Names by which a host reaches itself.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The conditions for a request over TCP.
#[derive(Debug)]
pub struct Access {
    token: String,
    hosts: Hosts,
}

/// Marks a request that came over TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote;

/// The names that a request over TCP may have as its host.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Names that `--allow-host` adds to the local ones.
    allowed: Vec<String>,
}

impl Access {
    /// Requires this token, and one of these names as the host.
    pub fn new(token: String, hosts: Hosts) -> Access {
        Access { token, hosts }
    }

    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), (StatusCode, Error)> {
        self.hosts.check(headers)?;
        let given = bearer(headers).or_else(|| query_token(uri));
        if given.is_some_and(|given| same(given, &self.token)) {
            return Ok(());
        }
        Err((
            StatusCode::UNAUTHORIZED,
            Error {
                error: "the API over TCP needs its token".to_owned(),
                remedy: Some(
                    "take the address that 'dashpot serve' printed, or send the header \
                     'Authorization: Bearer TOKEN'"
                        .to_owned(),
                ),
            },
        ))
    }
}

impl Hosts {
    /// Allows addresses, the local names, and the names in `allowed`.
    pub fn new(allowed: Vec<String>) -> Hosts {
        Hosts { allowed }
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), (StatusCode, Error)> {
        let host = header_text(headers, &header::HOST);
        if !is_address(without_port(host)) {
            self.check_name(host)?;
        }
        if headers.contains_key(header::ORIGIN) {
            self.check_origin(header_text(headers, &header::ORIGIN), host)?;
        }
        Ok(())
    }

    fn check_name(&self, host: &str) -> Result<(), (StatusCode, Error)> {
        let name = without_port(host);
        if LOCAL_NAMES.into_iter().any(is_named(name)) || self.allows(name) {
            return Ok(());
        }
        Err((
            StatusCode::FORBIDDEN,
            Error {
                error: format!("Host '{host}' is foreign"),
                remedy: Some(format!("if it is yours: --allow-host {name}")),
            },
        ))
    }

    /// A page may send requests to its own name and port. The API speaks plain HTTP. A name of `--allow-host`
    /// may belong to a proxy that speaks HTTPS, so a page under such a name may have been loaded over HTTP or
    /// HTTPS.
    fn check_origin(&self, origin: &str, host: &str) -> Result<(), (StatusCode, Error)> {
        let (scheme, from) = origin.split_once("://").unwrap_or_default();
        let usual = match scheme {
            "http" => Some("80"),
            "https" if self.allows(without_port(host)) => Some("443"),
            _ => None,
        };
        let is_same = |usual| {
            let (from, host) = (name_and_port(from, usual), name_and_port(host, usual));
            from.0.eq_ignore_ascii_case(host.0) && from.1 == host.1
        };
        if usual.is_some_and(is_same) {
            return Ok(());
        }
        Err((
            StatusCode::FORBIDDEN,
            Error {
                error: format!("Origin '{origin}' is foreign: it is not that of '{host}'"),
                remedy: Some("only pages of the API's own address may use it".to_owned()),
            },
        ))
    }

    fn allows(&self, name: &str) -> bool {
        self.allowed.iter().map(String::as_str).any(is_named(name))
    }
}

fn is_named(name: &str) -> impl Fn(&str) -> bool {
    move |known| known.eq_ignore_ascii_case(name)
}

/// Passes requests that the token and the names allow. `/healthz` reveals nothing, so it is open to everyone.
/// The files of the page reveal nothing of this daemon, and a browser asks for them before the page can show
/// the token, so requests for these files need only the right names.
pub(super) async fn guard(
    State(access): State<Arc<Access>>,
    mut request: Request,
    next: Next,
) -> Response {
    match access.check(request.uri(), request.headers()) {
        Ok(()) => {
            if let Some(guest) = request.extensions().get::<Arc<Guest>>() {
                guest.recognise();
            }
        }
        Err(_) if request.uri().path() == "/healthz" => {}
        Err((StatusCode::UNAUTHORIZED, _)) if page::has(request.uri().path()) => {}
        Err((status, error)) => return refuse(status, error),
    }
    request.extensions_mut().insert(Remote);
    // The handlers do not know the parameter with the token, and would refuse it as an unknown option.
    *request.uri_mut() = without_token(request.uri());
    next.run(request).await
}

/// Passes requests for these hosts.
pub async fn guard_host(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    match hosts.check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err((status, error)) => refuse(status, error),
    }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// The host in `HOST:PORT` or `[V6]:PORT`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// The parts of `HOST:PORT`, with the usual port if the text has none.
fn name_and_port<'a>(host: &'a str, usual: &'a str) -> (&'a str, &'a str) {
    let name = without_port(host);
    let port = host.get(name.len() + 1..).filter(|port| !port.is_empty());
    (name, port.unwrap_or(usual))
}

fn is_address(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host).parse::<IpAddr>().is_ok()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    header_text(headers, &header::AUTHORIZATION).strip_prefix("Bearer ")
}

fn query_token(uri: &Uri) -> Option<&str> {
    let mut pairs = uri.query()?.split('&');
    pairs.find_map(|pair| pair.strip_prefix("token="))
}

fn without_token(uri: &Uri) -> Uri {
    let Some(query) = uri.query() else {
        return uri.clone();
    };
    let others = query.split('&').filter(|pair| !pair.starts_with("token="));
    let others: Vec<&str> = others.collect();
    let rest = format!("{}?{}", uri.path(), others.join("&"));
    // The text consists of parts of a parsed URI, so parsing it does not fail.
    rest.parse().unwrap_or_else(|_| uri.clone())
}

/// Compares the guess with the token, in a time that depends only on the length of the guess, so that timing
/// reveals nothing.
fn same(given: &str, token: &str) -> bool {
    let bytes = given.bytes().zip(token.bytes());
    let differ = bytes.fold(0, |differ, (a, b)| differ | (a ^ b));
    given.len() == token.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::{Access, Hosts, without_token};
    use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};

    fn answer(uri: &str, headers: &[(&str, &str)]) -> Option<StatusCode> {
        let access = Access::new("secret".to_owned(), Hosts::new(vec!["lab".to_owned()]));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.insert(name, HeaderValue::from_str(value).unwrap());
        }
        let uri: Uri = uri.parse().unwrap();
        access.check(&uri, &map).err().map(|(status, _)| status)
    }

    #[test]
    fn the_token_is_needed_in_one_of_two_places() {
        let host = ("host", "127.0.0.1:4242");
        let auth = |value| [host, ("authorization", value)];
        assert_eq!(answer("/v1/status", &auth("Bearer secret")), None);
        assert_eq!(answer("/v1/status?a=b&token=secret", &[host]), None);
        let refused = Some(StatusCode::UNAUTHORIZED);
        assert_eq!(answer("/v1/status", &[host]), refused);
        assert_eq!(answer("/v1/status", &auth("Bearer secre")), refused);
        assert_eq!(answer("/v1/status", &auth("Basic secret")), refused);
        assert_eq!(answer("/v1/status?token=", &[host]), refused);
    }

    #[test]
    fn handlers_see_the_rest_of_the_query() {
        for (uri, rest) in [
            ("/v1/a?token=secret", "/v1/a?"),
            ("/v1/a%2Fb?x=1&token=secret&y=2", "/v1/a%2Fb?x=1&y=2"),
            ("/v1/a?x=1", "/v1/a?x=1"),
            ("/v1/a", "/v1/a"),
        ] {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(without_token(&uri).to_string(), rest);
        }
    }

    #[test]
    fn foreign_names_are_refused_with_the_token_too() {
        let with = |headers: &[(&str, &str)]| answer("/v1/status?token=secret", headers);
        for host in ["localhost:1", "LOCALHOST", "[::1]:80", "[::1]", "lab:4242"] {
            assert_eq!(with(&[("host", host)]), None, "{host}");
        }
        let refused = Some(StatusCode::FORBIDDEN);
        for host in ["evil.example", "localhost.evil.example:80", ""] {
            assert_eq!(with(&[("host", host)]), refused, "{host}");
        }
        for address in ["192.0.2.7:9464", "[2001:db8::1]:80"] {
            assert_eq!(with(&[("host", address)]), None, "{address}");
        }
        let origin = |origin| with(&[("host", "localhost:1"), ("origin", origin)]);
        assert_eq!(origin("http://localhost:1"), None);
        assert_eq!(origin("http://LOCALHOST:1"), None);
        for foreign in [
            "http://localhost:5173",
            "http://localhost",
            "https://localhost:1",
            "file://localhost:1",
            "http://127.0.0.1:1",
            "https://evil.example",
            "localhost:1",
        ] {
            assert_eq!(origin(foreign), refused, "{foreign}");
        }
        let proxied = |origin| with(&[("host", "lab"), ("origin", origin)]);
        assert_eq!(proxied("https://lab"), None);
        assert_eq!(proxied("https://lab:443"), None);
        assert_eq!(proxied("http://lab:80"), None);
        assert_eq!(proxied("https://lab:8443"), refused);
        assert_eq!(origin("http://192.0.2.7"), refused);
        assert_eq!(origin("null"), refused);
    }
}
