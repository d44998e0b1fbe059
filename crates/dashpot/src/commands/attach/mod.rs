//! `attach` and `detach`: a disk as a block device of this host.
//!
//! `attach` is the privileged step, and a short one. For a loop device it mounts a file, hands the
//! descriptor of the mount's connection to the daemon, and makes the device from the file. For a device
//! of the kernel's NBD client it makes a pair of sockets, one for the daemon and one for the kernel. The
//! daemon needs no privilege. If a step fails, `attach` undoes the earlier ones.

mod detach;
mod down;
mod file_system;
mod fuse_mount;
mod in_use;
mod loop_device;
mod mechanism;
pub(crate) mod memory;
mod nbd_device;
mod netlink;
mod place;
mod process;
mod stale;
mod sysfs;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dashpot_api::{Client, Disk, HandOver, MechanismWord, hand_over};
use dashpot_export::complain;
use dashpot_rules::format_size;
use serde::Serialize;

pub(crate) use self::detach::{detach, detach_own};
use self::fuse_mount::FuseMount;
use self::loop_device::{LoopDevice, Wanted};
use self::nbd_device::{NbdDevice, WantedNbd};
use self::place::{Place, Record};
use self::process::Process;
pub(crate) use self::sysfs::{Queue, queue_of};
use super::output::{print, print_json};
use crate::cli::{AttachArgs, FileSystem, MountArgs, With};
use crate::sources::Stop;

/// A disk that is now a block device.
#[derive(Debug, Serialize)]
pub(crate) struct Attached {
    pub(crate) disk: String,
    pub(crate) node: String,
    pub(crate) mechanism: MechanismWord,
    /// Why dashpot chose no other mechanism.
    pub(crate) why_not_others: Vec<String>,
}

/// Attaches a disk, and prints its node.
pub(crate) fn attach(client: &Client, args: &AttachArgs) -> anyhow::Result<()> {
    let stop = Stop::new()?;
    let attached = attach_disk(client, &args.disk, args.with, || stop.is_set())?;
    if args.json {
        return print_json(&attached);
    }
    attached.explain();
    print(&format!("{}\n", attached.node))
}

/// Attaches a disk, and mounts the file system on it.
pub(crate) fn mount(client: &Client, args: &MountArgs) -> anyhow::Result<()> {
    let stop = Stop::new()?;
    let attached = attach_disk(client, &args.disk, args.with, || stop.is_set())?;
    let node = &attached.node;
    let making = match (args.mkfs, args.fs) {
        (true, kind) => file_system::make(node, kind.unwrap_or_default()),
        (false, _) => Ok(()),
    };
    let mounted = making.and_then(|()| file_system::mount(node, &args.directory, args.fs));
    if let Err(error) = mounted {
        detach_own(client, node)?;
        return Err(error);
    }
    attached.explain();
    print(&format!("{node}\n"))
}

/// Mounts the file system of an attached node; makes one first on an empty disk.
pub(crate) fn mount_for_run(
    node: &str,
    at: &Path,
    kind: Option<FileSystem>,
) -> anyhow::Result<PathBuf> {
    if file_system::found_on(node).is_none() {
        file_system::make(node, kind.unwrap_or_default())?;
    }
    file_system::mount(node, at, kind)
}

impl Attached {
    /// Prints the mechanism, and why dashpot chose no other if it had the choice.
    pub(crate) fn explain(&self) {
        let (node, disk, way) = (&self.node, &self.disk, self.mechanism.name());
        if !self.why_not_others.is_empty() {
            let others = self.why_not_others.join("; ");
            complain(format_args!(
                "dashpot: {node} is {disk}, by {way} ({others})"
            ));
        }
    }
}

/// Attaches a disk. If `is_stopped` returns true, it gives up and undoes its steps.
pub(crate) fn attach_disk(
    client: &Client,
    disk: &str,
    with: With,
    is_stopped: impl Fn() -> bool,
) -> anyhow::Result<Attached> {
    let choice = mechanism::choose(with)?;
    stale::clean_quietly();
    let disk = client.disk(disk, 0)?;
    let sector = sector(&disk)?;
    for _ in 0..TRIES {
        let attempt = Attempt {
            client,
            disk: &disk,
            sector,
            mechanism: choice.mechanism,
            is_stopped: &is_stopped,
        };
        if let Some(node) = attempt.attach()? {
            return Ok(Attached {
                disk: disk.name,
                node,
                mechanism: choice.mechanism,
                why_not_others: choice.why_not_others,
            });
        }
    }
    bail!("other programs took every device that was free: try again")
}

/// The sector size of a disk's block device.
fn sector(disk: &Disk) -> anyhow::Result<u32> {
    let (name, size) = (&disk.name, disk.size_bytes);
    let sector = disk.block_bytes.max(SECTOR_MIN);
    if sector > SECTOR_MAX {
        let block = format_size(disk.block_bytes.into());
        bail!(
            "disk '{name}' has blocks of {block}, and a block device of Linux at most 4K: give it block=4K"
        );
    }
    if size == 0 || !size.is_multiple_of(sector.into()) {
        bail!(
            "disk '{name}' has {size} bytes, and a block device has whole sectors of {sector}: give it another size"
        );
    }
    Ok(sector)
}

/// Tries once to attach a disk to the node that is free now.
struct Attempt<'a> {
    client: &'a Client,
    disk: &'a Disk,
    sector: u32,
    mechanism: MechanismWord,
    is_stopped: &'a dyn Fn() -> bool,
}

impl Attempt<'_> {
    /// Returns the node; `None` if another program has taken it meanwhile.
    fn attach(&self) -> anyhow::Result<Option<String>> {
        let daemon = Process::of(self.client.status(0)?.pid);
        let place = Place::new()?;
        let made = match self.mechanism {
            MechanismWord::Loop => self.make_loop_device(&place)?,
            MechanismWord::Nbd => self.make_nbd_device(&place)?,
        };
        let Some(made) = made else {
            return Ok(None);
        };
        let record = Record {
            disk: self.disk.name.clone(),
            node: made.node.clone(),
            mechanism: self.mechanism,
            daemon,
            api: self.client.address(),
            before: made.device.before().to_vec(),
            mounted: None,
        };
        place.write(&record)?;
        self.check_stopped()?;
        made.device.keep();
        place.keep();
        Ok(Some(made.node))
    }

    fn make_loop_device(&self, place: &Place) -> anyhow::Result<Option<Made>> {
        let read_only = self.disk.read_only;
        let (mount, descriptor) = FuseMount::new(place.file(&self.disk.name), read_only)?;
        let node = loop_device::free_node().context("no loop device is free")?;
        self.check_stopped()?;
        // From here on only the daemon has the descriptor, so that the connection ends with the
        // daemon.
        self.hand_over(&node, descriptor)?;
        let wanted = Wanted {
            file: mount.path(),
            sector: self.sector,
            read_only,
        };
        let device = LoopDevice::new(&node, &wanted)?;
        Ok(device.map(|device| Made {
            node,
            device: Device::Loop(device, mount),
        }))
    }

    fn make_nbd_device(&self, place: &Place) -> anyhow::Result<Option<Made>> {
        let (daemons, kernels) = UnixStream::pair().context("cannot make a pair of sockets")?;
        let node = nbd_device::free_node();
        self.check_stopped()?;
        // As above. The daemon serves before the kernel asks for the first block.
        self.hand_over(&node, daemons.into())?;
        let wanted = WantedNbd {
            backend: &place.file(&self.disk.name),
            size: self.disk.size_bytes,
            sector: self.sector,
            read_only: self.disk.read_only,
            may_hold_reads: self.disk.rules > 0 || self.disk.suspended.is_some(),
        };
        let device = NbdDevice::new(&node, &wanted, kernels.into())?;
        Ok(device.map(|device| Made {
            node,
            device: Device::Nbd(device),
        }))
    }

    fn hand_over(&self, node: &str, descriptor: OwnedFd) -> anyhow::Result<()> {
        let what = HandOver {
            disk: self.disk.name.clone(),
            node: node.to_owned(),
            mechanism: self.mechanism,
        };
        hand_over(&self.client.handover_socket(), &what, descriptor.as_fd())
    }

    fn check_stopped(&self) -> anyhow::Result<()> {
        match (self.is_stopped)() {
            true => bail!("interrupted: nothing is attached"),
            false => Ok(()),
        }
    }
}

/// A device that has been made. Dropping it undoes it.
struct Made {
    node: String,
    device: Device,
}

/// A device by its mechanism, with what it stands on.
enum Device {
    Loop(LoopDevice, FuseMount),
    Nbd(NbdDevice),
}

impl Device {
    /// The changed settings, with their former values.
    fn before(&self) -> &[(String, String)] {
        match self {
            Device::Loop(device, _) => device.before(),
            Device::Nbd(device) => device.before(),
        }
    }

    /// Leaves it in place.
    fn keep(self) {
        match self {
            Device::Loop(device, mount) => {
                device.keep();
                mount.keep();
            }
            Device::Nbd(device) => device.keep(),
        }
    }
}

/// How many nodes it tries.
const TRIES: usize = 8;
/// The sector sizes that both kinds of devices can have.
const SECTOR_MIN: u32 = 512;
const SECTOR_MAX: u32 = 4096;
