//! Sends a descriptor to a daemon, over the daemon's handover socket.

use std::io::{self, BufRead, BufReader, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use dashpot_rules::Address;
use dashpot_sys::Trusted;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::error::ClientError;
use crate::types::{HandOver, HandedOver};

/// Sends a descriptor to the daemon that listens at `socket`, and waits until the daemon serves it.
pub fn hand_over(socket: &Path, what: &HandOver, descriptor: BorrowedFd<'_>) -> anyhow::Result<()> {
    let cannot = || format!("cannot hand over a descriptor at {}", socket.display());
    let stream = UnixStream::connect(socket).with_context(cannot)?;
    let listener = socket_peercred(&stream).with_context(cannot)?;
    if let Some(uid) = Trusted::stranger(socket, listener.uid.as_raw()) {
        let address = Address::Unix(socket.to_owned());
        return Err(ClientError::Stranger { address, uid }.into());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    send(&stream, &line, descriptor).with_context(cannot)?;
    let mut answer = String::new();
    BufReader::new(&stream)
        .read_line(&mut answer)
        .with_context(cannot)?;
    let answer: HandedOver = serde_json::from_str(&answer).with_context(cannot)?;
    match answer.refused {
        None => Ok(()),
        Some(error) => match error.remedy {
            Some(remedy) => bail!("{}: {remedy}", error.error),
            None => bail!("{}", error.error),
        },
    }
}

/// The descriptor travels with the first byte. A line is far shorter than a socket's buffer, so one call
/// sends it whole.
fn send(stream: &UnixStream, line: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let sent = sendmsg(
        stream,
        &[IoSlice::new(line)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    if sent == line.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

/// The longest wait for the daemon's answer.
const PATIENCE: Duration = Duration::from_secs(30);
