//! Stands in for `ublk_device` in a dashpot that was built without ublk and so can make no ublk device.

use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::bail;

use crate::exported::Exported;
use crate::sysfs::Before;

pub(crate) fn add(_: &Path, _: &Exported) -> anyhow::Result<(String, OwnedFd)> {
    bail!(ABSENT)
}

pub(crate) fn start(_: &str, _: u32, _: impl FnMut()) -> anyhow::Result<()> {
    bail!(ABSENT)
}

pub(crate) fn configure(
    _: &str,
    _: impl FnOnce(Before) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    bail!(ABSENT)
}

pub(crate) fn free(node: &str) -> anyhow::Result<()> {
    bail!("{node}: {ABSENT}")
}

/// Whether the node is a device of the ublk driver. Only a build of dashpot with ublk can have made the
/// device, or can remove it.
pub(crate) fn is_of(node: &str, _: &Path) -> bool {
    node.starts_with("/dev/ublkb")
}

pub(crate) fn nodes() -> Vec<String> {
    Vec::new()
}

const ABSENT: &str = "this dashpot was built without ublk";
