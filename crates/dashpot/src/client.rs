//! The client of the API that the command line is: one blocking call for each request.

use std::io::ErrorKind::WouldBlock;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::{Method, Request, Response, StatusCode, header};
use dashpot_export::Address;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};

use crate::api::{default_socket, token_file, types};
use crate::spec::{ApiAddress, Listen};

/// A way to a daemon. Making one does not connect.
pub(crate) struct Client {
    address: Address,
    /// Over TCP.
    token: Option<String>,
    runtime: Runtime,
}

/// An answer that does not end. What the daemon gave for as long as it lasts goes when this is
/// dropped, or its process ends.
pub(crate) struct Lease {
    _body: Incoming,
    _sender: http1::SendRequest<Full<Bytes>>,
}

/// A connection of either kind.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// Nobody answers.
    NoDaemon {
        address: Address,
        error: std::io::Error,
    },
    /// The daemon refused.
    Refused {
        status: StatusCode,
        error: types::Error,
    },
    /// What answers is no daemon of this version.
    Unexpected(String),
    /// The user gave up waiting.
    Interrupted,
}

impl Client {
    /// A client of the daemon at `api`, or at the default socket.
    pub(crate) fn find(api: Option<&ApiAddress>) -> anyhow::Result<Client> {
        let Some(api) = api else {
            return Client::at(Address::Unix(default_socket()), None);
        };
        match &api.at {
            Listen::At(address) => Client::at(address.clone(), api.token.clone()),
            Listen::Private => {
                anyhow::bail!("--api unix:-: a private socket has a path: give that")
            }
        }
    }

    /// A client of the daemon at `address`. Over TCP without a token, that of the daemon of this
    /// user at that very address is taken, if there is one.
    pub(crate) fn at(address: Address, token: Option<String>) -> anyhow::Result<Client> {
        let token = match (token, &address) {
            (None, Address::Tcp(socket)) => read_token(token_file(*socket)),
            (token, _) => token,
        };
        Ok(Client {
            address,
            token,
            runtime: Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// Where the daemon is looked for.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.send(Method::GET, path, &())
    }

    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.send(Method::POST, path, body)
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.runtime.block_on(self.exchange(method, path, body))
    }

    /// As [`Client::post`], where the answer is one line and then lasts.
    pub(crate) fn lease<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<(T, Lease), ClientError> {
        self.runtime.block_on(async {
            let request = self.request(Method::POST, path, body)?;
            let (response, sender) = respond(self.connect().await?, request).await?;
            if !response.status().is_success() {
                return Err(refused(response).await?);
            }
            let (line, body) = first_line(response.into_body()).await?;
            let answer = serde_json::from_slice(&line).map_err(unexpected)?;
            let (_body, _sender) = (body, sender);
            Ok((answer, Lease { _body, _sender }))
        })
    }

    /// As [`Client::post`], but Ctrl-C ends the waiting, and not the program.
    pub(crate) fn post_unless_interrupted<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.runtime.block_on(async {
            tokio::select! {
                answer = self.exchange(Method::POST, path, body) => answer,
                _ = tokio::signal::ctrl_c() => Err(ClientError::Interrupted),
            }
        })
    }

    /// Waits until nobody answers any more, and says why not.
    pub(crate) async fn until_gone(&self) -> ClientError {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            match self.connect().await {
                // Too many are before us.
                Err(ClientError::NoDaemon { error, .. }) if error.kind() == WouldBlock => {}
                Err(gone) => return gone,
                Ok(_) => {}
            }
        }
    }

    /// Runs something beside which requests are sent.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let request = self.request(method, path, body)?;
        answer(self.connect().await?, request).await
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, ClientError> {
        let stream: std::io::Result<Box<dyn Stream>> = match &self.address {
            Address::Unix(path) => UnixStream::connect(path)
                .await
                .map(|one| Box::new(one) as _),
            Address::Tcp(socket) => TcpStream::connect(socket)
                .await
                .map(|one| Box::new(one) as _),
        };
        stream.map_err(|error| ClientError::NoDaemon {
            address: self.address.clone(),
            error,
        })
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
            _ => serde_json::to_vec(body).map_err(unexpected)?.into(),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        request.body(Full::new(bytes)).map_err(unexpected)
    }
}

/// A name as one segment of a path.
pub(crate) fn segment(name: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(encode).collect()
}

async fn answer<T: DeserializeOwned>(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
) -> Result<T, ClientError> {
    let (response, _sender) = respond(stream, request).await?;
    if !response.status().is_success() {
        return Err(refused(response).await?);
    }
    let body = response.into_body().collect().await.map_err(unexpected)?;
    serde_json::from_slice(&body.to_bytes()).map_err(unexpected)
}

/// Sends a request, and answers with the response as soon as its body begins. The connection lasts
/// as long as the sender.
async fn respond(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
) -> Result<(Response<Incoming>, http1::SendRequest<Full<Bytes>>), ClientError> {
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(unexpected)?;
    // Its errors are those of the request.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(unexpected)?;
    Ok((response, sender))
}

/// What the daemon said instead of what it was asked for.
async fn refused(response: Response<Incoming>) -> Result<ClientError, ClientError> {
    let status = response.status();
    let body = response.into_body().collect().await.map_err(unexpected)?;
    let error = serde_json::from_slice(&body.to_bytes()).map_err(unexpected)?;
    Ok(ClientError::Refused { status, error })
}

/// The first line of a body, and what follows.
async fn first_line(mut body: Incoming) -> Result<(Vec<u8>, Incoming), ClientError> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let frame = body.frame().await;
        let frame = frame.ok_or_else(|| unexpected("it ends before its first line"))?;
        let data = frame.map_err(unexpected)?.into_data();
        line.extend_from_slice(&data.unwrap_or_default());
    }
    Ok((line, body))
}

fn read_token(path: PathBuf) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn is_denied(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied
}

fn unexpected(error: impl std::fmt::Display) -> ClientError {
    ClientError::Unexpected(error.to_string())
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClientError::NoDaemon { address, error } if is_denied(error) => write!(
                f,
                "the socket {address} may not be used by this user ({error}): use dashpot as the \
                 user whose daemon it is, or as root, or name another with --api"
            ),
            ClientError::NoDaemon { address, error } => write!(
                f,
                "no daemon at {address} ({error}): start one with 'dashpot serve', or name the one \
                 that you mean with --api"
            ),
            ClientError::Refused { error, .. } => match &error.remedy {
                Some(remedy) => write!(f, "{}: {remedy}", error.error),
                None => f.write_str(&error.error),
            },
            ClientError::Unexpected(what) => write!(
                f,
                "the daemon's answer is not understood ({what}): is it of another version?"
            ),
            ClientError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for ClientError {}

/// How often somebody who waits for long looks whether the daemon is still there.
const ASK_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn a_name_is_one_segment() {
        assert_eq!(segment("tank/foo-1_a.b"), "tank%2Ffoo-1_a.b");
        assert_eq!(segment("a b%"), "a%20b%25");
    }
}
