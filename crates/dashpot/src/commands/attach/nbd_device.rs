//! A device of the kernel's NBD client, over one end of a pair of sockets.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dashpot_export::frontend::nbd::transmission_flags;
use rustix::io::Errno;

use super::netlink::{NbdClient, NbdOrder};
use super::sysfs::{self, Before, attribute};

/// A device. Dropping it frees the device, unless it was [kept](NbdDevice::keep).
#[derive(Debug)]
pub(super) struct NbdDevice {
    node: String,
    /// The changed settings, with their former values.
    before: Before,
    kept: bool,
}

/// The properties of a new device.
#[derive(Debug)]
pub(super) struct WantedNbd<'a> {
    /// The path that the kernel keeps with the device. There need not be a file.
    pub(super) backend: &'a Path,
    pub(super) size: u64,
    pub(super) sector: u32,
    pub(super) read_only: bool,
    /// Whether reads may wait now for something that is not over soon.
    pub(super) may_hold_reads: bool,
}

/// The node of a free device. Without a free one, the kernel makes one more.
pub(super) fn free_node() -> String {
    let node = |index: u32| format!("{PREFIX}{index}");
    let mut nodes = (0..).map(node);
    let free = nodes.find(|node| attribute(node, "pid").is_none());
    free.unwrap_or_else(|| node(0))
}

impl NbdDevice {
    /// Makes a device of the kernel's end of a connection to the daemon. `None` if another program has
    /// taken the node.
    pub(super) fn new(
        node: &str,
        wanted: &WantedNbd<'_>,
        peer: OwnedFd,
    ) -> anyhow::Result<Option<NbdDevice>> {
        let backend = wanted.backend.to_string_lossy();
        let order = NbdOrder {
            index: index(node)?,
            backend: &backend,
            size: wanted.size,
            block: wanted.sector,
            flags: transmission_flags(wanted.read_only, false),
        };
        match client()?.connect(&order, peer.as_fd()) {
            Ok(()) => {}
            Err(Errno::BUSY) => return Ok(None),
            Err(error) => bail!("{node}: the kernel's NBD client refuses it: {error}"),
        }
        // From here on only the kernel has it, so that the connection ends with the device.
        drop(peer);
        let mut device = NbdDevice {
            node: node.to_owned(),
            before: Vec::new(),
            kept: false,
        };
        if backend_of(node).as_deref() != Some(wanted.backend) {
            bail!("{node}: this kernel keeps no names of devices (Linux 5.14 and later do)");
        }
        sysfs::change(&device.node, &SETTINGS, &mut device.before)?;
        if !wanted.may_hold_reads {
            // The kernel reads the partition table when the node is opened for the first time. A rule that
            // is armed later should not meet that read.
            File::open(node).with_context(|| format!("{node} cannot be opened"))?;
        }
        Ok(Some(device))
    }

    /// The changed settings, with their former values.
    pub(super) fn before(&self) -> &[(String, String)] {
        &self.before
    }

    /// Leaves it in place.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for NbdDevice {
    fn drop(&mut self) {
        if !self.kept {
            // `detach --stale` finds whatever fails here.
            let _ = free(&self.node, &self.before);
        }
    }
}

/// Disconnects a device, and restores its settings. The kernel fails its I/O in flight. If a program has
/// it open, the node keeps its name until that program closes it.
pub(super) fn free(node: &str, before: &[(String, String)]) -> anyhow::Result<()> {
    let index = index(node)?;
    let disconnected = client()?.disconnect(index);
    disconnected.with_context(|| format!("{node} cannot be disconnected"))?;
    sysfs::restore(node, before);
    Ok(())
}

/// The path that the kernel keeps with a node, if it is a device of its NBD client that has one.
pub(super) fn backend_of(node: &str) -> Option<PathBuf> {
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
    index.with_context(|| format!("{node} is no device of the kernel's NBD client"))
}

const PREFIX: &str = "/dev/nbd";

/// No scheduler changes the order, the disk does not rotate, and 128 I/Os arrive as 128.
const SETTINGS: [(&str, &str); 3] = [
    ("queue/scheduler", "none"),
    ("queue/rotational", "0"),
    ("queue/nr_requests", "128"),
];
