//! The process that is about to become the program. It first installs the filter for its own calls.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::net::UnixStream;

use anyhow::{Context, bail};
use dashpot_doctor::{Missing, why_not};
use dashpot_export::notified_calls;
use dashpot_rules::parse_types;
use dashpot_sys::seccomp::{Listener, make_first_call};

use super::descriptors::send_listener;

/// Installs the filter for calls of these types, and waits until dashpot, which listens at `socket`, is ready
/// to receive the calls.
pub(crate) fn install(socket: &OsStr, types: &OsStr) -> anyhow::Result<()> {
    let types = parse_types(&types.to_string_lossy())?;
    let mut stream = UnixStream::connect(socket).context("cannot reach dashpot")?;
    let listener = match Listener::install(&notified_calls(types)) {
        Ok(listener) => listener,
        Err(error) => {
            let Missing { why, change } = why_not(error);
            bail!("the calls of a program cannot be held here: {why}: {change}")
        }
    };
    send_listener(&stream, &listener).context("cannot reach dashpot")?;
    listener.leave();
    // The keeper receives this call, and learns from it how the kernel numbers the calls of this program.
    make_first_call();
    let mut go = [0];
    let going = stream.read_exact(&mut go);
    going.context("dashpot does not receive the calls of the program")
}
