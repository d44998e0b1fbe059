//! The command line's client of the API: one blocking call for each request, over a connection that the
//! client keeps.

mod calls;
mod connection;
mod error;
mod handover;
mod silence;

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};

use dashpot_rules::{Address, ApiAddress, Listen};
use dashpot_sys::Trusted;
use http::{Method, Request, header};
use http_body_util::Full;
use hyper::body::Bytes;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use crate::place::{
    default_socket, handover_socket, recording_link, to_ask, token_file, token_from_environment,
    whole_address,
};
pub use calls::WantedZios;
pub use connection::Lease;
use connection::{Answer, Connection};
pub use error::ClientError;
pub use handover::hand_over;
use silence::{PATIENCE, Silence, State, Wait};

/// A client of one daemon. It connects at its first request.
pub struct Client {
    address: Address,
    /// The token, for a daemon over TCP.
    token: Option<String>,
    runtime: Runtime,
    /// The connection that delivered the last answer. The next GET reuses it.
    kept: RefCell<Option<Connection>>,
    /// The id of the daemon's process, if it is known.
    pid: Cell<Option<i32>>,
}

impl Client {
    /// A client of the daemon at `api`, or at the default socket. Refuses `unix:-`, which names no path.
    pub fn find(api: Option<&ApiAddress>) -> anyhow::Result<Client> {
        let Some(api) = api else {
            return Client::at(Address::Unix(to_ask(default_socket())), None);
        };
        match &api.at {
            Listen::At(address) => Client::at(address.clone(), api.token.clone()),
            Listen::Private => {
                anyhow::bail!("--api unix:-: this names no socket: give the private socket's path")
            }
        }
    }

    /// A client of the daemon at `address`. Over TCP, if `token` is `None`, the client reads the token from
    /// the file of that address or, if there is no such file, from the environment.
    pub fn at(address: Address, token: Option<String>) -> anyhow::Result<Client> {
        let token = match (token, &address) {
            (None, Address::Tcp(socket)) => {
                read_token(to_ask(token_file(*socket))).or_else(token_from_environment)
            }
            (token, _) => token,
        };
        Ok(Client {
            address,
            token,
            runtime: Builder::new_current_thread().enable_all().build()?,
            kept: RefCell::default(),
            pid: Cell::default(),
        })
    }

    /// The daemon's address, in a form that is valid in every working directory.
    pub fn address(&self) -> String {
        whole_address(&self.address).to_string()
    }

    /// The socket at which the daemon receives descriptors.
    pub fn handover_socket(&self) -> PathBuf {
        to_ask(handover_socket(&self.address))
    }

    /// The path of the link to the daemon's recording. The link exists only if the daemon records.
    pub fn recording_link(&self) -> PathBuf {
        to_ask(recording_link(&self.address))
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.send(Method::GET, path, &())
    }

    fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.send(Method::POST, path, body)
    }

    /// Sends a request for which this client has no separate method, and waits at most a minute for the
    /// answer.
    ///
    /// Fails if the daemon cannot be reached, does not answer, or refuses the request, or if its answer does
    /// not have the shape of `T`.
    pub fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.runtime
            .block_on(self.call(method, path, body, Wait::Answer))
    }

    /// Like [`Client::get`], but it fails if the answer takes longer than `limit`.
    fn get_within<T: DeserializeOwned>(
        &self,
        path: &str,
        limit: Duration,
    ) -> Result<T, ClientError> {
        let answer = self.call(Method::GET, path, &(), Wait::Within(limit));
        self.runtime.block_on(answer)
    }

    /// Like [`Client::post`], for an answer whose first line is the value and which then stays
    /// open. The daemon keeps the change until the [`Lease`] is dropped.
    fn lease<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<(T, Lease), ClientError> {
        let request = self.request(Method::POST, path, body)?;
        let leased = async {
            let connection = Connection::open(&self.address).await?;
            self.pid.set(connection.pid);
            connection.lease(request).await
        };
        let leased = self.patiently(leased, Wait::Answer);
        let (answer, lease) = self.runtime.block_on(leased)?;
        Ok((read(&answer)?, lease))
    }

    /// Like [`Client::post`], but it waits for the answer as long as the daemon lives. Ctrl-C ends
    /// the call with [`ClientError::Interrupted`], but not the program.
    fn post_unless_interrupted<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.runtime.block_on(async {
            tokio::select! {
                answer = self.call(Method::POST, path, body, Wait::Long) => answer,
                _ = tokio::signal::ctrl_c() => Err(ClientError::Interrupted),
            }
        })
    }

    /// Waits until the daemon no longer accepts connections, and returns the error of the last attempt.
    pub async fn until_gone(&self) -> ClientError {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            if let Err(gone) = Connection::open(&self.address).await {
                return gone;
            }
        }
    }

    /// A descriptor of the daemon's process; `None` if the process is not known, or not on this host.
    fn process(&self) -> Option<OwnedFd> {
        let pid = Pid::from_raw(self.pid.get()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok()
    }

    /// Runs a future on the client's runtime, in which [`Client::until_gone`] works.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Sends a request and reads its answer, unless it takes too long.
    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
        wait: Wait,
    ) -> Result<T, ClientError> {
        let request = self.request(method, path, body)?;
        read(&self.patiently(self.exchange(request), wait).await?)
    }

    /// Waits for an answer, unless it takes too long.
    async fn patiently<T>(
        &self,
        answer: impl Future<Output = Result<T, ClientError>>,
        wait: Wait,
    ) -> Result<T, ClientError> {
        let asked = Instant::now();
        let mut answer = pin!(answer);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                alive = self.while_silent(asked, wait) => alive?,
            }
        }
    }

    /// Sends a request. A GET changes nothing and may be sent twice, so the client tries the kept connection
    /// first, even though the daemon may have closed it.
    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answer, ClientError> {
        if request.method() == Method::GET
            && let Some(mut kept) = self.kept.take()
            && let Ok(answer) = kept.ask(request.clone()).await
        {
            self.kept.replace(Some(kept));
            return Ok(answer);
        }
        let mut connection = Connection::open(&self.address).await?;
        self.pid.set(connection.pid);
        let answer = connection.ask(request).await?;
        self.kept.replace(Some(connection));
        Ok(answer)
    }

    /// Waits a few seconds more for the answer to a call. Fails if the call's time is up or the daemon does
    /// not respond.
    async fn while_silent(&self, asked: Instant, wait: Wait) -> Result<(), ClientError> {
        let left = wait.left(asked.elapsed());
        tokio::time::sleep(PATIENCE.min(left)).await;
        let is_over = left <= PATIENCE;
        let is_stopped = || State::of(self.pid.get()) == State::Stopped;
        if !is_stopped() && !is_over && self.answers().await {
            return Ok(());
        }
        // If the time of a `Wait::Answer` call is up, the daemon has answered `/healthz` during the call;
        // otherwise the call would have ended earlier.
        let answers = is_over && wait == Wait::Answer && !is_stopped();
        Err(ClientError::Silent {
            address: self.address.clone(),
            silence: Silence {
                pid: self.pid.get(),
                state: if answers {
                    State::BusyWithThis
                } else {
                    State::of(self.pid.get())
                },
                lasted: asked.elapsed(),
            },
        })
    }

    /// Whether the daemon responds.
    async fn answers(&self) -> bool {
        let asked = async {
            let request = self.request(Method::GET, "/healthz", &())?;
            Connection::open(&self.address).await?.ask(request).await
        };
        matches!(tokio::time::timeout(PATIENCE, asked).await, Ok(Ok(_)))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let host = match &self.address {
            Address::Unix(_) => "localhost".to_owned(),
            Address::Tcp(socket) => socket.to_string(),
        };
        let bytes = match method {
            Method::GET | Method::DELETE => Bytes::new(),
            _ => serde_json::to_vec(body)
                .map_err(ClientError::unexpected)?
                .into(),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        request
            .body(Full::new(bytes))
            .map_err(ClientError::unexpected)
    }
}

/// Decodes an answer.
fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, ClientError> {
    let Answer { status, body } = answer;
    if status.is_success() {
        return serde_json::from_slice(body).map_err(ClientError::unexpected);
    }
    let error = serde_json::from_slice(body).map_err(ClientError::unexpected)?;
    Err(ClientError::Refused {
        status: *status,
        error,
    })
}

/// The token in a file, unless another user may have made the file.
fn read_token(path: PathBuf) -> Option<String> {
    if !Trusted::owns(&path) {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// How often the client checks whether the daemon still accepts connections.
const ASK_EVERY: Duration = Duration::from_secs(1);
