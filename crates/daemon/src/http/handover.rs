//! The socket for handovers, over which a privileged process gives the daemon a descriptor that makes the
//! kernel a client of a disk or a volume. Only this user and root can connect.
//!
//! A caller sends one descriptor with a line of JSON. The daemon answers with a line of JSON as soon as it
//! has accepted or refused the descriptor. The daemon opens no path that a caller names.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use dashpot_api::{HandOver, HandedOver, MechanismWord, handover_socket};
use dashpot_export::reclaim::lock_memory;
use dashpot_export::{Attach, Mechanism};
use dashpot_rules::Address;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::listen::UnixSocket;
use crate::daemon::Daemon;
use crate::refusal::Refusal;

/// The socket for handovers. Dropping it removes the socket.
pub struct HandoverListener(UnixSocket);

impl HandoverListener {
    /// Listens beside the API's own socket.
    pub fn bind(api: &Address) -> anyhow::Result<HandoverListener> {
        UnixSocket::bind("--api", &handover_socket(api)).map(HandoverListener)
    }

    /// Takes descriptors until the future is dropped.
    pub async fn serve(self, daemon: Arc<Daemon>) {
        loop {
            match self.0.accept().await {
                Ok(stream) => {
                    tokio::spawn(timeout(PATIENCE, answer(stream, Arc::clone(&daemon))));
                }
                // The process has too many open descriptors. Some may be closed soon.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// Answers one caller, unless the caller breaks the protocol or has gone.
async fn answer(stream: UnixStream, daemon: Arc<Daemon>) -> io::Result<()> {
    let (line, descriptor) = read(&stream).await?;
    let by = stream.peer_cred()?;
    let by = match by.pid() {
        Some(pid) => format!("uid={} pid={pid}", by.uid()),
        None => format!("uid={}", by.uid()),
    };
    let taken = take(&daemon, &line, descriptor, by).await;
    let handed = HandedOver {
        refused: taken.err().map(Into::into),
    };
    let mut answer = serde_json::to_vec(&handed)?;
    answer.push(b'\n');
    let mut rest = answer.as_slice();
    while !rest.is_empty() {
        stream.writable().await?;
        match stream.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn take(
    daemon: &Daemon,
    line: &[u8],
    descriptor: Option<OwnedFd>,
    by: String,
) -> Result<(), Refusal> {
    let wanted: HandOver =
        serde_json::from_slice(line).map_err(|error| Refusal::bad_request(error.to_string()))?;
    let descriptor =
        descriptor.ok_or_else(|| Refusal::bad_request("no descriptor came with the line"))?;
    let attach = Attach {
        descriptor,
        node: wanted.node,
        mechanism: match wanted.mechanism {
            MechanismWord::Loop => Mechanism::Loop,
            MechanismWord::Nbd => Mechanism::Nbd,
            MechanismWord::Ublk => Mechanism::Ublk,
        },
        by,
    };
    daemon.attach(&wanted.disk, attach).await?;
    // The caller may have raised the limit of locked memory, so the daemon tries again to lock its
    // memory.
    lock_memory();
    Ok(())
}

/// A caller's line, and the descriptor that came with it.
async fn read(stream: &UnixStream) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let (mut line, mut descriptor) = (Vec::new(), None);
    while line.last() != Some(&b'\n') {
        stream.readable().await?;
        let read = stream.try_io(Interest::READABLE, || receive(stream, &mut line));
        match read {
            Ok(received) => descriptor = descriptor.or(received),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok((line, descriptor))
}

/// Appends the received bytes to `line`, and returns the descriptor that came with them.
fn receive(stream: &UnixStream, line: &mut Vec<u8>) -> io::Result<Option<OwnedFd>> {
    let mut bytes = [0; LINE_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(
        stream,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut control,
        flags,
    )?;
    if received.bytes == 0 || line.len() + received.bytes > LINE_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    line.extend_from_slice(&bytes[..received.bytes]);
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok(descriptors.flatten().next())
}

/// How long one caller may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the listener waits after it has failed to accept a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// The most bytes of a caller's line.
const LINE_MAX: usize = 4096;
