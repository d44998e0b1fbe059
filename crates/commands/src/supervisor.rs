//! The protocols of systemd, which libnbd and container engines speak, too: a supervisor hands sockets to the
//! process that it starts (`LISTEN_FDS`), and the process tells the supervisor when it is ready
//! (`NOTIFY_SOCKET`).

use std::env::{var, var_os};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;

use anyhow::{Context, bail};
use dashpot_export::complain;
use dashpot_sys::duplicate_inherited;

/// The sockets that this process was given. Call this function before the process opens other descriptors.
pub(crate) fn handed_sockets() -> anyhow::Result<Vec<Arc<OwnedFd>>> {
    let (pid, count) = (var("LISTEN_PID").ok(), var("LISTEN_FDS").ok());
    let count = handed(std::process::id(), pid.as_deref(), count.as_deref())?;
    let take = |number: RawFd| {
        let socket = duplicate_inherited(number).map(Arc::new);
        socket.with_context(|| {
            format!("LISTEN_FDS={count}: descriptor {number} is not open; unset it")
        })
    };
    (FIRST_HANDED..FIRST_HANDED + count).map(take).collect()
}

/// How many sockets were handed to the process `own`. Sockets for another process do not count.
fn handed(own: u32, pid: Option<&str>, count: Option<&str>) -> anyhow::Result<RawFd> {
    let (Some(pid), Some(count)) = (pid, count) else {
        return Ok(0);
    };
    if pid.parse() != Ok(own) {
        return Ok(0);
    }
    match count.parse() {
        Ok(count @ 0..=HANDED_MOST) => Ok(count),
        _ => bail!(
            "LISTEN_FDS={count}: this is no number of sockets from 0 to {HANDED_MOST}; unset it"
        ),
    }
}

/// Tells the supervisor, if there is one, that clients can connect, or that the disks are observed.
pub fn say_ready() {
    say("READY=1");
}

/// Tells the supervisor, if there is one, that this process is ending.
pub(crate) fn say_stopping() {
    say("STOPPING=1");
}

fn say(message: &str) {
    let Some(name) = var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return;
    };
    if let Err(error) = send(&name, message) {
        let name = name.display();
        complain(format_args!(
            "dashpot: NOTIFY_SOCKET={name}: '{message}' cannot be sent there ({error}); unset it"
        ));
    }
}

/// Sends a message. A name that begins with @ is in the abstract namespace.
fn send(name: &OsStr, message: &str) -> io::Result<()> {
    let address = match name.as_bytes().split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(message.as_bytes(), &address)?;
    Ok(())
}

/// The number of the first descriptor that a supervisor hands over.
const FIRST_HANDED: RawFd = 3;
/// The maximum number of sockets that dashpot accepts, which is more than any supervisor hands over.
const HANDED_MOST: RawFd = 64;

#[cfg(test)]
mod tests {
    use super::{handed, send};
    use std::ffi::OsStr;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    #[test]
    fn sockets_are_for_the_process_that_is_named() {
        assert_eq!(handed(7, None, Some("1")).unwrap(), 0);
        assert_eq!(handed(7, Some("7"), None).unwrap(), 0);
        assert_eq!(handed(7, Some("8"), Some("1")).unwrap(), 0);
        assert_eq!(handed(7, Some("7"), Some("2")).unwrap(), 2);
        for wrong in ["", "-1", "65", "two"] {
            let refused = handed(7, Some("7"), Some(wrong)).unwrap_err().to_string();
            assert!(
                refused.contains(&format!("LISTEN_FDS={wrong}:")),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_message_reaches_a_path_and_an_abstract_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let word = directory.path().display().to_string();
        let at = SocketAddr::from_abstract_name(&word).unwrap();
        let receivers = [
            (
                UnixDatagram::bind(&path).unwrap(),
                path.display().to_string(),
            ),
            (UnixDatagram::bind_addr(&at).unwrap(), format!("@{word}")),
        ];
        for (receiver, name) in receivers {
            send(OsStr::new(&name), "READY=1").unwrap();
            let mut message = [0; 64];
            let length = receiver.recv(&mut message).unwrap();
            assert_eq!(&message[..length], b"READY=1");
        }
    }
}
