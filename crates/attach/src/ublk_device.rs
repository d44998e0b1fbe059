//! A device of the kernel's ublk driver.
//!
//! With each device, the driver stores a number that the maker of the device chooses. `attach` makes this
//! number from the name of the attachment's directory, and so recognises its devices.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::Context;
use dashpot_export::frontend::ublk::handshake::{DATA_MAX, DEPTH, geometry};
use dashpot_sys::ublk::Control;

use crate::exported::Exported;
use crate::sysfs::{self, Before};

/// Makes a device that no process serves yet. Returns its future node, and the descriptor through which a
/// process serves it. `directory` is the directory of the attachment.
pub(crate) fn add(directory: &Path, exported: &Exported) -> anyhow::Result<(String, OwnedFd)> {
    let Exported { served, block, .. } = exported;
    let mark = mark(directory).context("the directory of the attachment has a strange name")?;
    let mut control = control()?;
    let added = control.add(DEPTH, DATA_MAX, mark);
    let number = added
        .context("the kernel's ublk driver makes no device")?
        .number;
    let opened = control
        .set_geometry(
            number,
            &geometry(served.size, (served.sector, *block), served.read_only),
        )
        .context("the kernel's ublk driver refuses the disk's size or sectors")
        .and_then(|()| {
            let character = format!("/dev/ublkc{number}");
            let options = File::options().read(true).write(true).open(&character);
            options.with_context(|| format!("{character} cannot be opened"))
        });
    match opened {
        Ok(character) => Ok((format!("{PREFIX}{number}"), character.into())),
        Err(error) => {
            // If this fails, too, `detach --stale` finds the device.
            let _ = control.delete(number);
            Err(error)
        }
    }
}

/// Makes the block device, which the process with the id `server` serves. The kernel then reads the partition
/// table; until it has done so, this function keeps calling `waits`.
pub(crate) fn start(node: &str, server: u32, waits: impl FnMut()) -> anyhow::Result<()> {
    let started = control()?.start(number(node)?, server, waits);
    started.with_context(|| format!("{node}: the kernel's ublk driver does not start it"))
}

/// Changes the settings of a new device. First gives the former values to `note`.
pub(crate) fn configure(
    node: &str,
    note: impl FnOnce(Before) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    sysfs::change(node, &SETTINGS, note)
}

/// Removes a device. Waits for the device's I/O in flight.
pub(crate) fn free(node: &str) -> anyhow::Result<()> {
    let deleted = control()?.delete(number(node)?);
    deleted.with_context(|| format!("{node} cannot be removed"))
}

/// Whether a node is a device of the attachment with this directory.
pub(crate) fn is_of(node: &str, directory: &Path) -> bool {
    let Ok(number) = number(node) else {
        return false;
    };
    // A device that is removed keeps its number until the daemon has closed it.
    let is_there = Path::new(CHARACTERS)
        .join(format!("ublkc{number}"))
        .exists();
    match control() {
        Ok(mut control) if is_there => {
            let info = control.info(number).ok();
            info.is_some_and(|info| Some(info.mark) == mark(directory))
        }
        // If the driver does not answer, keep the attachment's record, because the device cannot be removed
        // now.
        _ => is_there,
    }
}

/// The nodes of all devices of the driver, whether they have started or not.
pub(crate) fn nodes() -> Vec<String> {
    let entries = fs::read_dir(CHARACTERS).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let numbers = names.filter_map(|name| Some(name.strip_prefix("ublkc")?.to_owned()));
    numbers.map(|number| format!("{PREFIX}{number}")).collect()
}

fn control() -> anyhow::Result<Control> {
    Control::open().context("the kernel's ublk driver does not answer: modprobe ublk_drv, as root")
}

/// The number in the name of a node.
fn number(node: &str) -> anyhow::Result<u32> {
    let number = node.strip_prefix(PREFIX).and_then(|at| at.parse().ok());
    number.with_context(|| format!("{node} is not a device of the kernel's ublk driver"))
}

/// The mark that the driver stores with a device: the letters `dash`, and the eight random hexadecimal digits
/// that name the attachment's directory.
fn mark(directory: &Path) -> Option<u64> {
    let name = directory.file_name()?.to_str()?;
    let name = u32::from_str_radix(name, 16).ok()?;
    Some(u64::from(OWN) << 32 | u64::from(name))
}

const PREFIX: &str = "/dev/ublkb";
/// The directory of the driver's character devices.
const CHARACTERS: &str = "/sys/class/ublk-char";
/// The first half of every mark that dashpot makes.
const OWN: u32 = u32::from_be_bytes(*b"dash");
/// The settings of the node's queue: no scheduler changes the order of I/Os.
const SETTINGS: [(&str, &str); 1] = [("queue/scheduler", "none")];

#[cfg(test)]
mod tests {
    use super::{mark, number};
    use std::path::Path;

    #[test]
    fn the_mark_is_the_name_of_the_directory() {
        let directory = Path::new("/run/dashpot-attached/0badcafe");
        assert_eq!(mark(directory), Some(0x6461_7368_0bad_cafe));
        assert_eq!(mark(Path::new("/run/dashpot-attached/lock")), None);
    }

    #[test]
    fn a_node_has_a_number() {
        assert_eq!(number("/dev/ublkb12").unwrap(), 12);
        assert!(number("/dev/nbd1").is_err() && number("/dev/ublkb").is_err());
    }
}
