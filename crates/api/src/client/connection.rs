//! A connection to a daemon, over which the client sends one request after another and receives the answer to
//! each.

use std::io::ErrorKind::WouldBlock;
use std::time::Duration;

use dashpot_rules::Address;
use dashpot_sys::Trusted;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::UCred;
use tokio::net::{TcpStream, UnixStream};

use super::error::ClientError;

/// The time between two attempts to connect to a daemon whose queue of connections is full.
const CONNECT_EVERY: Duration = Duration::from_millis(20);

/// The most bytes of an answer. All answers of a daemon together take no more.
const ANSWER_MAX: usize = 256 << 20;

/// The most bytes of the first line of an answer that stays open.
const LINE_MAX: usize = 16 << 20;

/// An open connection.
pub(super) struct Connection {
    address: Address,
    sender: SendRequest<Full<Bytes>>,
    /// The id of the daemon's process; known only over a unix socket.
    pub(super) pid: Option<i32>,
}

/// An HTTP answer with any status.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

/// An answer that stays open. When the caller drops the lease, or the caller's process ends, the daemon
/// undoes the change that the request asked for.
pub struct Lease {
    rest: Incoming,
    connection: Connection,
}

/// A stream over a unix socket or over TCP.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Lease {
    /// Waits until the daemon ends the answer, and returns the last line.
    pub async fn last<T: DeserializeOwned>(&mut self) -> Result<T, ClientError> {
        let mut line = Vec::new();
        while let Some(frame) = self.rest.frame().await {
            let data = frame
                .map_err(|error| self.connection.gone(&error))?
                .into_data();
            line.extend_from_slice(&data.unwrap_or_default());
            if line.len() > LINE_MAX {
                return Err(too_long(LINE_MAX));
            }
        }
        serde_json::from_slice(&line).map_err(|error| self.connection.gone(&error))
    }
}

impl Connection {
    /// Connects, and tries again while the daemon's queue of connections is full.
    pub(super) async fn open(address: &Address) -> Result<Connection, ClientError> {
        let (stream, peer) = loop {
            match connect(address).await {
                Err(error) if error.kind() == WouldBlock => {
                    tokio::time::sleep(CONNECT_EVERY).await;
                }
                Err(error) => {
                    let address = address.clone();
                    return Err(ClientError::NoDaemon { address, error });
                }
                Ok(connected) => break connected,
            }
        };
        if let (Address::Unix(path), Some(peer)) = (address, &peer)
            && let Some(uid) = Trusted::stranger(path, peer.uid())
        {
            let address = address.clone();
            return Err(ClientError::Stranger { address, uid });
        }
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(ClientError::unexpected)?;
        // The task ends when `sender` is dropped. Its errors reach the caller through the request.
        tokio::spawn(connection);
        Ok(Connection {
            address: address.clone(),
            sender,
            pid: peer.and_then(|peer| peer.pid()),
        })
    }

    /// Sends a request and waits for the whole answer.
    pub(super) async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, ClientError> {
        let response = self.sender.send_request(request).await;
        let response = response.map_err(|error| self.gone(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_MAX);
        match body.collect().await {
            Ok(body) => Ok(Answer {
                status,
                body: body.to_bytes(),
            }),
            Err(error) if error.is::<LengthLimitError>() => Err(too_long(ANSWER_MAX)),
            Err(error) => Err(self.gone(&error)),
        }
    }

    /// Sends a request, and waits for the first line of an answer that stays open or, if the daemon refuses
    /// the request, for the whole answer.
    pub(super) async fn lease(
        mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Answer, Lease), ClientError> {
        let response = self.sender.send_request(request).await;
        let response = response.map_err(|error| self.gone(&error))?;
        let status = response.status();
        let (mut rest, mut line) = (response.into_body(), Vec::new());
        while !status.is_success() || !line.ends_with(b"\n") {
            let Some(frame) = rest.frame().await else {
                break;
            };
            let data = frame.map_err(|error| self.gone(&error))?.into_data();
            line.extend_from_slice(&data.unwrap_or_default());
            if line.len() > LINE_MAX {
                return Err(too_long(LINE_MAX));
            }
        }
        let body = line.into();
        let lease = Lease {
            rest,
            connection: self,
        };
        Ok((Answer { status, body }, lease))
    }

    fn gone(&self, error: &impl ToString) -> ClientError {
        ClientError::Gone {
            address: self.address.clone(),
            why: error.to_string(),
        }
    }
}

/// The error of an answer that is longer than any daemon sends.
fn too_long(most: usize) -> ClientError {
    ClientError::unexpected(format!("it has more than {} MiB", most >> 20))
}

/// Connects to the daemon. Over a unix socket, it also returns the listening process and its user.
async fn connect(address: &Address) -> std::io::Result<(Box<dyn Stream>, Option<UCred>)> {
    match address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).await?;
            let peer = stream.peer_cred()?;
            Ok((Box::new(stream), Some(peer)))
        }
        Address::Tcp(socket) => {
            let stream = TcpStream::connect(socket).await?;
            Ok((Box::new(stream), None))
        }
    }
}
