//! Answers HTTP requests within time limits. `axum::serve` has no such limit, so the connection of a client
//! that stops in the middle of a request would occupy a descriptor for ever.
//!
//! A client that has not shown the token is a stranger. A stranger may send one request over a connection,
//! has little time, and takes one of few places. When all places are taken, a new client takes the place of
//! the oldest stranger that has not sent its request yet, once that stranger has been there for half a
//! second. A client with the token therefore gets in, whatever the strangers do.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, Request, header};
use axum::response::Response;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};

/// How long a client may take to send the head of a request, counted from the last reply.
const HEAD_MAX: Duration = Duration::from_secs(10);

/// The most bytes of request heads that the daemon keeps for one connection.
const HEAD_BYTES: usize = 64 << 10;

/// How long a stranger may take for its request and for the answer.
const STRANGER_MAX: Duration = Duration::from_secs(20);

/// The most strangers at once.
const STRANGERS: usize = 128;

/// How long a stranger without a request keeps its place while others wait.
const SILENCE_MAX: Duration = Duration::from_millis(500);

/// The most connections at once, including strangers. Any other connection waits to be accepted.
const CONNECTIONS: usize = 384;

/// The rights of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manners {
    /// Clients may send one request after another.
    Trusted,
    /// Clients may send one request over a connection, and must take the answer in time. These are the
    /// rights at a listener without a token.
    OneRequest,
    /// Clients have the rights of `OneRequest` until a request has shown the token.
    OneRequestUntilKnown,
}

/// The client at the other end of a connection.
#[derive(Debug)]
pub(super) struct Guest {
    since: Instant,
    /// Whether the client has sent a request.
    asked: AtomicBool,
    known: AtomicBool,
    recognised: Notify,
    evicted: Notify,
}

/// The strangers, the oldest first.
#[derive(Debug, Default)]
struct Strangers {
    present: Mutex<VecDeque<Arc<Guest>>>,
    left: Notify,
}

/// Answers clients until the future is dropped.
pub(super) async fn answer(mut listener: impl Listener, router: Router, manners: Manners) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let strangers = Arc::new(Strangers::default());
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
    http.max_buf_size(HEAD_BYTES);
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let (socket, _) = listener.accept().await;
        if manners != Manners::Trusted {
            strangers.until_one_may_come().await;
        }
        let guest = Arc::new(Guest::new(manners == Manners::Trusted));
        strangers.admit(&guest);
        let service = service(TowerToHyperService::new(router.clone()), Arc::clone(&guest));
        let connection = http.serve_connection(TokioIo::new(socket), service_fn(service));
        let strangers = Arc::clone(&strangers);
        // An error of the connection concerns only its client, so the daemon does not report it.
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            tokio::select! {
                _ = &mut connection => {}
                () = strangers.until_over(&guest) => {}
            }
            strangers.leave(&guest);
            drop(place);
        });
    }
}

/// Answers the requests of a guest. A stranger's connection ends after one answer.
fn service(
    router: TowerToHyperService<Router>,
    guest: Arc<Guest>,
) -> impl Fn(Request<Incoming>) -> ServiceAnswer {
    move |mut request| {
        guest.asked.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(Arc::clone(&guest));
        let (answer, guest) = (router.call(request), Arc::clone(&guest));
        Box::pin(async move {
            let mut response = answer.await?;
            if !guest.is_known() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok(response)
        })
    }
}

type ServiceAnswer = std::pin::Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

impl Guest {
    fn new(known: bool) -> Guest {
        Guest {
            since: Instant::now(),
            asked: AtomicBool::new(false),
            known: AtomicBool::new(known),
            recognised: Notify::new(),
            evicted: Notify::new(),
        }
    }

    /// Notes that the guest has shown the token.
    pub(super) fn recognise(&self) {
        if !self.known.swap(true, Ordering::Relaxed) {
            self.recognised.notify_one();
        }
    }

    fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    fn is_known(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }
}

impl Strangers {
    /// Waits for a free place. A place becomes free when a stranger leaves. If the oldest stranger without a
    /// request has been silent for [`SILENCE_MAX`], this function makes it leave.
    async fn until_one_may_come(&self) {
        loop {
            // Gives the guests that came last a chance to send their requests before the loop looks for a
            // silent guest.
            tokio::task::yield_now().await;
            let silent = {
                let present = self.lock();
                if present.len() < STRANGERS {
                    return;
                }
                let silent = present.iter().find(|guest| !guest.has_asked());
                silent.cloned()
            };
            let over = silent.as_ref().map(|guest| guest.since + SILENCE_MAX);
            if let Some(silent) = silent
                && over.is_some_and(|over| over <= Instant::now())
            {
                silent.evicted.notify_one();
                self.leave(&silent);
                return;
            }
            tokio::select! {
                () = self.left.notified() => {}
                () = sleep_until(over.unwrap_or_else(Instant::now)), if over.is_some() => {}
            }
        }
    }

    fn admit(&self, guest: &Arc<Guest>) {
        if !guest.is_known() {
            self.lock().push_back(Arc::clone(guest));
        }
    }

    fn leave(&self, guest: &Arc<Guest>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, guest));
        self.left.notify_one();
    }

    /// Waits until a stranger's time is over. A guest with the token has no limit.
    async fn until_over(&self, guest: &Arc<Guest>) {
        if !guest.is_known() {
            tokio::select! {
                () = guest.evicted.notified() => return,
                () = sleep(STRANGER_MAX) => return,
                () = guest.recognised.notified() => {}
            }
        }
        // The guest is not a stranger any more: it showed the token during this wait or before it.
        self.leave(guest);
        std::future::pending::<()>().await;
    }

    /// Locks the list. Code that holds the lock does not panic.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Guest>>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Guest, HEAD_MAX, Manners, STRANGER_MAX, STRANGERS, answer};
    use crate::http::error::Body;
    use axum::routing::{get, post};
    use axum::{Extension, Router};
    use dashpot_api::Crash;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::sync::mpsc;
    use tokio::time::{Instant, timeout};

    /// A listener for the tests' connections.
    struct Queue(mpsc::UnboundedReceiver<DuplexStream>);

    impl axum::serve::Listener for Queue {
        type Io = DuplexStream;
        type Addr = ();

        async fn accept(&mut self) -> (DuplexStream, ()) {
            match self.0.recv().await {
                Some(socket) => (socket, ()),
                None => std::future::pending().await,
            }
        }

        fn local_addr(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The other end of a [`Queue`], by which tests connect.
    struct Listener(mpsc::UnboundedSender<DuplexStream>);

    impl Listener {
        fn open(manners: Manners) -> Listener {
            let (send, receive) = mpsc::unbounded_channel();
            let crash = async |_: Body<Crash>| "lost";
            let know = async |Extension(guest): Extension<Arc<Guest>>| {
                guest.recognise();
                "known"
            };
            let router = Router::new().route("/", get(async || "here"));
            let router = router
                .route("/crash", post(crash))
                .route("/know", get(know));
            tokio::spawn(answer(Queue(receive), router, manners));
            Listener(send)
        }

        fn connect(&self) -> DuplexStream {
            let (client, server) = duplex(4096);
            self.0.send(server).unwrap();
            client
        }
    }

    fn connect() -> DuplexStream {
        Listener::open(Manners::Trusted).connect()
    }

    async fn ask(client: &mut DuplexStream, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"here") && !said.ends_with(b"known") {
            said.push(client.read_u8().await.unwrap());
        }
        String::from_utf8(said).unwrap()
    }

    /// Whether the daemon closes the connection within this time.
    async fn closes(client: &mut DuplexStream, within: Duration) -> bool {
        let mut rest = Vec::new();
        timeout(within, client.read_to_end(&mut rest)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_has_one_request_and_a_known_guest_has_many() {
        let door = Listener::open(Manners::OneRequestUntilKnown);
        let mut stranger = door.connect();
        let said = ask(&mut stranger, "/").await;
        assert!(said.contains("connection: close"), "{said}");
        assert!(closes(&mut stranger, Duration::from_secs(1)).await);
        let mut known = door.connect();
        for path in ["/know", "/", "/"] {
            let said = ask(&mut known, path).await;
            assert!(!said.contains("connection: close"), "{said}");
        }
        let mut trusted = Listener::open(Manners::Trusted).connect();
        ask(&mut trusted, "/").await;
        ask(&mut trusted, "/").await;
    }

    #[tokio::test(start_paused = true)]
    async fn silent_strangers_go_when_others_come_or_their_time_is_up() {
        let door = Listener::open(Manners::OneRequestUntilKnown);
        let mut known = door.connect();
        ask(&mut known, "/know").await;
        let mut guests: Vec<DuplexStream> = (0..=STRANGERS).map(|_| door.connect()).collect();
        assert!(closes(&mut guests[0], Duration::from_secs(1)).await);
        assert!(!closes(&mut guests[1], Duration::from_secs(1)).await);
        ask(&mut known, "/").await;
        assert!(closes(&mut guests[1], STRANGER_MAX).await);
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
        let request = b"POST /crash HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{";
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
