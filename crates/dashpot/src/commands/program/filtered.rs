//! The process that is about to become the program: it installs the filter of its calls.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use anyhow::{Context, bail};
use dashpot_sys::seccomp::{Listener, NotInstalled, SystemCall};

use super::descriptors::send;

/// Installs the filter, and waits until dashpot, which listens at `socket`, receives the calls.
pub(in crate::commands) fn install(socket: &OsStr) -> anyhow::Result<()> {
    let mut stream = UnixStream::connect(socket).context("cannot reach dashpot")?;
    let listener = match Listener::install(&SystemCall::SYNCS) {
        Ok(listener) => listener,
        Err(error) => bail!("the calls of a program cannot be held here: {}", why(error)),
    };
    send(&stream, listener.as_fd()).context("cannot reach dashpot")?;
    let mut go = [0];
    let going = stream.read_exact(&mut go);
    going.context("dashpot does not receive the calls of the program")
}

/// Why there is no filter, and the remedy.
fn why(error: NotInstalled) -> String {
    match error {
        NotInstalled::HasListener => "a program that receives them already runs around dashpot \
             (another dashpot, or a container's agent): start dashpot outside of it"
            .to_owned(),
        NotInstalled::Missing => {
            "the kernel has no seccomp user notification, or a sandbox hides it: \
             use Linux 5.5 or later, or allow seccomp(2) in the sandbox's profile"
                .to_owned()
        }
        NotInstalled::Forbidden => {
            "a sandbox forbids it: allow seccomp(2) in its profile".to_owned()
        }
        NotInstalled::UnknownMachine => {
            "their numbers are known for x86-64 and ARM64 alone: use such a machine".to_owned()
        }
        NotInstalled::Failed(error) => error.to_string(),
    }
}
