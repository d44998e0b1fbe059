//! A device of the kernel's NBD client, over one end of a pair of sockets.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dashpot_export::frontend::nbd::handshake::transmission_flags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::netlink::{NbdClient, NbdOrder};
use crate::place::Served;
use crate::sysfs::{self, Before, attribute};

/// The properties of a new device.
#[derive(Debug)]
pub(crate) struct WantedNbd<'a> {
    /// The path that the kernel keeps with the device. No file need exist at this path.
    pub(crate) backend: &'a Path,
    pub(crate) served: &'a Served,
    /// Whether reads of the device may now wait for a long time.
    pub(crate) may_hold_reads: bool,
}

/// Whether a node is free, which means that no process has made a device of it.
pub(crate) fn is_free(node: &str) -> bool {
    attribute(node, "pid").is_none()
}

/// The node of a free device. If no device is free, the kernel makes one more.
pub(crate) fn free_node() -> String {
    let node = |index: u32| format!("{PREFIX}{index}");
    let mut nodes = (0..).map(node);
    let free = nodes.find(|node| is_free(node));
    free.unwrap_or_else(|| node(0))
}

/// Makes a device from the kernel's end of a connection to the daemon. Returns false if another
/// program has taken the node.
pub(crate) fn make(node: &str, wanted: &WantedNbd<'_>, peer: OwnedFd) -> anyhow::Result<bool> {
    let backend = wanted.backend.to_string_lossy();
    let order = NbdOrder {
        index: index(node)?,
        backend: &backend,
        size: wanted.served.size,
        block: wanted.served.sector,
        flags: transmission_flags(wanted.served.read_only, false),
    };
    // When this function returns, only the kernel has the socket, so that the connection ends with the
    // device.
    match client()?.connect(&order, peer.as_fd()) {
        Ok(()) => Ok(true),
        Err(Errno::BUSY) => Ok(false),
        Err(error) => bail!("{node}: the kernel's NBD client refuses it: {error}"),
    }
}

/// Changes the settings of a new device. First gives the former values to `note`.
pub(crate) fn configure(
    node: &str,
    wanted: &WantedNbd<'_>,
    note: impl FnOnce(Before) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if backend_of(node).as_deref() != Some(wanted.backend) {
        bail!("{node}: this kernel keeps no names of devices (Linux 5.14 and later do)");
    }
    sysfs::change(node, &sysfs::QUEUE, note)?;
    if !wanted.may_hold_reads {
        // The kernel reads the partition table when the node is opened for the first time. Open the node now,
        // so that no rule that is armed later matches that read.
        File::open(node).with_context(|| format!("{node} cannot be opened"))?;
    }
    Ok(())
}

/// Gives a new connection to a device whose daemon is gone. `own` is the other end of `peer`.
pub(crate) fn reconnect(
    node: &str,
    backend: &Path,
    peer: OwnedFd,
    own: &UnixStream,
) -> anyhow::Result<()> {
    let reconnected = client()?.reconnect(index(node)?, &backend.to_string_lossy(), peer.as_fd());
    reconnected.with_context(|| format!("{node} takes no other connection"))?;
    drop(peer);
    // If the kernel has not taken `peer`, then `peer` is closed now, and a read of `own` finds the end.
    match recv(own, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((0, _)) => bail!("{node} still has a connection: see 'dashpot status', and try again"),
        _ => Ok(()),
    }
}

/// Disconnects a device. The kernel fails the device's I/O in flight. If a program has the node open, the
/// node keeps its name until that program closes it.
pub(crate) fn free(node: &str) -> anyhow::Result<()> {
    let index = index(node)?;
    let disconnected = client()?.disconnect(index);
    disconnected.with_context(|| format!("{node} cannot be disconnected"))
}

/// The path that the kernel keeps with a node; `None` if the node is not a device of the kernel's NBD client
/// or has no path.
pub(crate) fn backend_of(node: &str) -> Option<PathBuf> {
    let is_ours = node.starts_with(PREFIX);
    let backend = is_ours.then(|| attribute(node, "backend"))??;
    Some(PathBuf::from(backend))
}

fn client() -> anyhow::Result<NbdClient> {
    NbdClient::open().context("the kernel's NBD client does not answer: modprobe nbd, as root")
}

/// The number in the name of a node.
fn index(node: &str) -> anyhow::Result<u32> {
    let index = node.strip_prefix(PREFIX).and_then(|at| at.parse().ok());
    index.with_context(|| format!("{node} is not a device of the kernel's NBD client"))
}

const PREFIX: &str = "/dev/nbd";
