//! Answers HTTP requests, and does not wait for ever for one: `axum::serve` has no time-out, so
//! that a client which stops in the middle of a request would keep its descriptor.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long a connection may take for the head of a request, from the reply to the one before.
const HEAD_MAX: Duration = Duration::from_secs(10);

/// How long a connection for one request may take for it, and for its answer.
const ONE_MAX: Duration = Duration::from_secs(20);

/// How many connections for one request there may be at once; more wait to be accepted.
const ONES_MAX: usize = 128;

/// What clients may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manners {
    /// Keep any number of connections, for one request after another.
    Trusted,
    /// Ask one thing over a connection, and take the answer in time: for listeners that ask nobody
    /// who they are.
    OneRequest,
}

/// Answers who connects, until it is dropped.
pub(super) async fn answer(mut listener: impl Listener, router: Router, manners: Manners) {
    let (most, longest) = match manners {
        Manners::Trusted => (Semaphore::MAX_PERMITS, Duration::MAX),
        Manners::OneRequest => (ONES_MAX, ONE_MAX),
    };
    let places = Arc::new(Semaphore::new(most));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
    http.keep_alive(manners == Manners::Trusted);
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let (socket, _) = listener.accept().await;
        let service = TowerToHyperService::new(router.clone());
        let connection = http.serve_connection(TokioIo::new(socket), service);
        // What breaks it is the client's doing, and there is nobody else to tell.
        tokio::spawn(async move {
            let _ = timeout(longest, connection).await;
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{HEAD_MAX, Manners, answer};
    use crate::api::error::Body;
    use crate::api::types::Lose;
    use axum::Router;
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::{Instant, timeout};

    /// Somebody who connects once.
    struct Once(Option<DuplexStream>);

    impl axum::serve::Listener for Once {
        type Io = DuplexStream;
        type Addr = ();

        async fn accept(&mut self) -> (DuplexStream, ()) {
            match self.0.take() {
                Some(socket) => (socket, ()),
                None => std::future::pending().await,
            }
        }

        fn local_addr(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn connect() -> DuplexStream {
        let (client, server) = duplex(4096);
        let lose = async |_: Body<Lose>| "lost";
        let router = Router::new().route("/", get(async || "here"));
        let router = router.route("/lose", post(lose));
        tokio::spawn(answer(Once(Some(server)), router, Manners::Trusted));
        client
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_request_ends_its_connection() {
        let (mut client, asked) = (connect(), Instant::now());
        client.write_all(b"GET / HT").await.unwrap();
        let mut said = Vec::new();
        let ended = timeout(HEAD_MAX * 10, client.read_to_end(&mut said)).await;
        ended.expect("an end").unwrap();
        assert!(asked.elapsed() >= HEAD_MAX);
        assert!(!said.starts_with(b"HTTP/1.1 200"));
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_body_is_refused() {
        let mut client = connect();
        let request = b"POST /lose HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{";
        client.write_all(request).await.unwrap();
        let mut said = [0; 16];
        let answered = timeout(HEAD_MAX * 10, client.read_exact(&mut said)).await;
        answered.expect("an answer").unwrap();
        assert!(said.starts_with(b"HTTP/1.1 400"));
    }

    #[tokio::test]
    async fn a_whole_one_is_answered() {
        let mut client = connect();
        let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        client.write_all(request).await.unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).await.unwrap();
        assert!(said.ends_with("here"), "{said}");
    }
}
