//! The addresses at which clients reach a listener, and the token that clients need over TCP.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use dashpot_api::TOKEN_VARIABLE;
use dashpot_daemon::http::{Access, Hosts, HttpListener, TokenFile};
use dashpot_rules::{Address, ApiAddress, Listen};

use crate::token::Token;

/// The addresses of the API and of its page, and the token that they need.
pub(crate) struct Endpoint {
    /// The address of the API, with its token.
    pub(crate) url: String,
    /// The address of the API to print. It has the token only if the user does not know it: what is printed may
    /// be kept, in the log of a pipeline for example.
    pub(crate) shown: String,
    /// The address of the page to print, or a sentence that says how to get one.
    pub(crate) page: String,
    pub(crate) access: Option<Arc<Access>>,
    _token: Option<TokenFile>,
}

impl Endpoint {
    /// The door of an API. Over TCP, the token comes from the token file or from the environment; if neither
    /// has one, it is random.
    pub(crate) fn new(
        api: &HttpListener,
        allowed_hosts: Vec<String>,
        token_file: Option<&Path>,
    ) -> anyhow::Result<Endpoint> {
        let Address::Tcp(socket) = api.address() else {
            if let Some(file) = token_file {
                bail!(
                    "--token-file {}: an API at a unix socket takes no token: leave it out, or add --api tcp:HOST:PORT",
                    file.display()
                );
            }
            return Ok(Endpoint {
                url: api.address().to_string(),
                shown: api.address().to_string(),
                page: "the page needs a port: --api tcp:127.0.0.1:0".to_owned(),
                access: None,
                _token: None,
            });
        };
        let socket = reachable(*socket);
        let token = Token::find(token_file)?;
        let word = token.word().to_owned();
        let file = TokenFile::write(socket, &word)?;
        let url = format!("http://{socket}/?token={word}");
        let (shown, page) = match token {
            // The page asks for the token.
            Token::Given(_) => (format!("http://{socket}"), format!("http://{socket}/")),
            // A browser does not send the fragment of an address, so the token appears in no log and in no
            // referrer.
            Token::Made(word) => (url.clone(), format!("http://{socket}/#token={word}")),
        };
        Ok(Endpoint {
            url,
            shown,
            page,
            access: Some(Arc::new(Access::new(word, Hosts::new(allowed_hosts)))),
            _token: Some(file),
        })
    }
}

/// Where a new daemon's API listens. Refuses an address with a token: only a client of a running daemon needs
/// one.
pub(crate) fn place_to_listen<'a>(api: &'a ApiAddress, option: &str) -> anyhow::Result<&'a Listen> {
    if api.token.is_some() {
        bail!(
            "{option}: a new daemon makes a new token, or takes yours from {TOKEN_VARIABLE}: give \
             tcp:HOST:PORT without a token"
        );
    }
    Ok(&api.at)
}

/// The address at which Prometheus can scrape the metrics.
pub(crate) fn metrics_url(listener: &HttpListener) -> String {
    match listener.address() {
        Address::Tcp(socket) => format!("http://{}/metrics", reachable(*socket)),
        unix @ Address::Unix(_) => unix.to_string(),
    }
}

/// An address at which this host reaches a socket that may listen on all addresses.
fn reachable(mut socket: SocketAddr) -> SocketAddr {
    if socket.ip().is_unspecified() {
        socket.set_ip(match socket {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    socket
}

#[cfg(test)]
mod tests {
    use super::reachable;

    #[test]
    fn every_address_includes_that_of_the_host_itself() {
        for (listens, reached) in [
            ("0.0.0.0:7", "127.0.0.1:7"),
            ("[::]:7", "[::1]:7"),
            ("192.0.2.1:7", "192.0.2.1:7"),
        ] {
            assert_eq!(reachable(listens.parse().unwrap()).to_string(), reached);
        }
    }
}
