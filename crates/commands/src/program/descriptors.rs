//! Passes descriptors from one process to another.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use dashpot_sys::seccomp::Listener;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Sends a descriptor, with one byte of data, because the kernel sends no descriptor without data.
pub(super) fn send(stream: &UnixStream, descriptor: BorrowedFd<'_>, byte: u8) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let byte = [byte];
    let bytes = [IoSlice::new(&byte)];
    sendmsg(stream, &bytes, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The socket that this process has received from its parent as standard input.
pub(super) fn inherited() -> io::Result<UnixStream> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

/// Waits for a descriptor and its byte. Fails if the peer ends without sending a descriptor.
pub(super) fn receive(stream: &UnixStream) -> io::Result<(OwnedFd, u8)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(
        stream,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        flags,
    )?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let first = descriptors.flatten().next();
    let [byte] = byte;
    first
        .map(|first| (first, byte))
        .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Sends a listener.
pub(super) fn send_listener(stream: &UnixStream, listener: &Listener) -> io::Result<()> {
    send(stream, listener.as_fd(), u8::from(listener.holds_signals()))
}

/// Waits for a listener. Fails if the peer ends without sending one.
pub(super) fn receive_listener(stream: &UnixStream) -> io::Result<Listener> {
    let (listener, holds_signals) = receive(stream)?;
    Ok(Listener::from_fd(listener, holds_signals != 0))
}

/// The byte that tells a waiting process to go on.
pub(super) const GO: u8 = b'g';
