//! `attach`: makes a block device of a disk or a volume.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dashpot_api::{Client, HandOver, MechanismWord, hand_over};
use dashpot_cli::{AttachArgs, With};
use dashpot_export::{complain, reclaim};
use dashpot_output::{is_broken_pipe, print, print_json};
use dashpot_sources::Stop;
use rustix::process::Pid;
use serde::Serialize;

use crate::block_device::BlockDevice;
use crate::detach::detach_own;
use crate::device_lock::DeviceLock;
use crate::exported::Exported;
use crate::fuse_mount::FuseMount;
use crate::kernel_log::Left;
use crate::loop_device::Wanted;
use crate::nbd_device::WantedNbd;
use crate::place::{LockedDirectory, Record, Served};
use crate::process::Process;
use crate::takeover::TakenOver;
use crate::tool::check_root;
use crate::{
    guard, link, loop_device, mechanism, nbd_device, place, stale, sysfs, takeover, ublk_device,
};

/// A disk or a volume that is now a block device.
#[derive(Debug, Serialize)]
pub(crate) struct Attached {
    pub(crate) disk: String,
    pub(crate) node: String,
    /// The link to the node; null if it has none.
    pub(crate) link: Option<PathBuf>,
    pub(crate) mechanism: MechanismWord,
    /// Why dashpot chose no other mechanism.
    pub(crate) why_not_others: Vec<String>,
    /// If this daemon took over a device that was waiting, how long the kernel would still have kept the
    /// device's I/O; null if the device is new.
    pub(crate) took_over: Option<Left>,
    /// The protections that the daemon lacks against waiting for memory.
    pub(crate) lacks: Vec<String>,
}

/// A disk or a volume to attach.
pub(crate) struct AttachRequest<'a> {
    pub(crate) disk: &'a str,
    pub(crate) with: With,
    /// Whether the disk's device gets a link in `/dev/dashpot`.
    pub(crate) linked: bool,
}

impl AttachRequest<'_> {
    pub(crate) fn of(disk: &str, with: With) -> AttachRequest<'_> {
        AttachRequest {
            disk,
            with,
            linked: true,
        }
    }
}

/// Attaches a disk, and prints its node.
pub fn attach(client: &Client, args: &AttachArgs) -> anyhow::Result<()> {
    check_root("attach")?;
    let stop = Stop::new()?;
    let attached = attach_disk(client, &AttachRequest::of(&args.disk, args.with), || {
        stop.is_set()
    })?;
    if !args.json {
        attached.explain();
    }
    let printed = if args.json {
        print_json(&attached)
    } else {
        print(&format!("{}\n", attached.node))
    };
    told(client, &attached, printed)
}

/// Undoes a new attachment if its node could not be printed, because the user then believes that `attach` has
/// failed.
pub(crate) fn told(
    client: &Client,
    attached: &Attached,
    printed: anyhow::Result<()>,
) -> anyhow::Result<()> {
    match printed {
        Err(error) if attached.took_over.is_none() && !is_broken_pipe(&error) => {
            detach_own(client, &attached.node)?;
            Err(error.context("cannot print the node, so nothing is attached"))
        }
        printed => printed,
    }
}

/// Makes a link to an attached node. `detach` removes the link together with the device, because afterwards
/// another device may get the node.
pub(crate) fn put_link(node: &str, link: &Path) -> anyhow::Result<()> {
    place::change(node, |record| record.link = Some(link.to_owned()))?;
    link::make(link, node)
}

/// Gives an attached node to a user and a group, until it is detached.
pub(crate) fn give_to(node: &str, (uid, gid): (u32, u32)) -> anyhow::Result<()> {
    let found = fs::metadata(node)?;
    place::change(node, |record| {
        record.owner_before = record.owner_before.or(Some((found.uid(), found.gid())));
    })?;
    chown(node, Some(uid), Some(gid)).with_context(|| format!("{node} cannot be given to its user"))
}

impl Attached {
    /// Prints which protections the daemon lacks. If a device was taken over, also prints how much time was left.
    /// If dashpot chose the mechanism, also prints the mechanism and why dashpot chose no other.
    pub(crate) fn explain(&self) {
        let (node, disk, way) = (&self.node, &self.disk, self.mechanism.name());
        if let Some(left) = self.took_over {
            let left = left.past();
            complain(format_args!("dashpot: took over {node}: {left}"));
        }
        self.say_lacks();
        if !self.why_not_others.is_empty() {
            let others = self.why_not_others.join("; ");
            complain(format_args!(
                "dashpot: {node} is {disk}, by {way} ({others})"
            ));
        }
    }

    /// Prints which protections the daemon lacks, if any.
    pub(crate) fn say_lacks(&self) {
        if !self.lacks.is_empty() {
            let lacks = self.lacks.join("; ");
            complain(format_args!(
                "dashpot: when memory is short, the daemon may wait for its own device: {lacks}"
            ));
        }
    }
}

/// Attaches a disk. If `is_stopped` returns true, gives up and undoes all steps.
pub(crate) fn attach_disk(
    client: &Client,
    wish: &AttachRequest<'_>,
    is_stopped: impl Fn() -> bool,
) -> anyhow::Result<Attached> {
    let choice = mechanism::choose(wish.with)?;
    let exported = Exported::find(client, wish.disk)?;
    let link = wish.linked.then(|| link::of(&exported.name));
    let attempt = Attempt {
        client,
        exported: &exported,
        mechanism: choice.mechanism,
        link: link.as_deref(),
        is_stopped: &is_stopped,
    };
    let (node, took_over) = match attempt.take_over()? {
        Some(TakenOver { node, left }) => (node, Some(left)),
        None => (attempt.attach()?, None),
    };
    Ok(Attached {
        node,
        link,
        mechanism: choice.mechanism,
        why_not_others: choice.why_not_others,
        took_over,
        // The disk is attached by now, so an error of the daemon is only reported.
        lacks: match client.status(0) {
            Ok(status) => status.reclaim.lacks,
            Err(error) => vec![format!("dashpot cannot tell what protects it: {error}")],
        },
        disk: exported.name,
    })
}

/// An attempt to make a block device of a disk or a volume.
struct Attempt<'a> {
    client: &'a Client,
    exported: &'a Exported,
    mechanism: MechanismWord,
    /// The link to make.
    link: Option<&'a Path>,
    is_stopped: &'a dyn Fn() -> bool,
}

impl Attempt<'_> {
    /// Takes over the device that waits for this disk or volume, if there is one.
    fn take_over(&self) -> anyhow::Result<Option<TakenOver>> {
        if self.mechanism != MechanismWord::Nbd {
            return Ok(None);
        }
        let hand_over = |node: &str, socket: UnixStream| self.hand_over(node, socket.into());
        takeover::take_over(self.exported, self.client, hand_over)
    }

    /// Makes a device, and returns its node.
    fn attach(&self) -> anyhow::Result<String> {
        stale::clean_quietly();
        if let Some(link) = self.link {
            link::check_free(link, &self.client.address())?;
        }
        for _ in 0..TRIES {
            if let Some(node) = self.attach_once()? {
                return Ok(node);
            }
        }
        bail!("other programs took every device that was free: try again")
    }

    /// Makes a device of a node that is free. `None` if another program has taken the node in the meantime.
    fn attach_once(&self) -> anyhow::Result<Option<String>> {
        let daemon = Process::of(self.client.status(0)?.pid);
        let place = LockedDirectory::new()?;
        let made = match self.mechanism {
            MechanismWord::Loop => self.make_loop_device(&place)?,
            MechanismWord::Nbd => self.make_nbd_device(&place)?,
            MechanismWord::Ublk => Some(self.make_ublk_device(&place)?),
        };
        let Some(made) = made else {
            return Ok(None);
        };
        let node = made.0.node().to_owned();
        let record = Record {
            disk: self.exported.name.clone(),
            layer: self.exported.layer,
            node: node.clone(),
            mechanism: self.mechanism,
            daemon,
            api: self.client.address(),
            served: self.exported.served.clone(),
            before: made.0.before.clone(),
            owner_before: None,
            mounted: None,
            options: None,
            link: self.link.map(Path::to_owned),
            sequence: sysfs::sequence(&node),
        };
        place.write(&record)?;
        if self.mechanism == MechanismWord::Nbd {
            guard::start(&node)?;
        }
        self.check_stopped()?;
        if let Some(link) = self.link {
            link::put(link, &node)?;
        }
        made.keep();
        place.keep();
        Ok(Some(node))
    }

    fn make_loop_device(&self, place: &LockedDirectory) -> anyhow::Result<Option<Made>> {
        let Served {
            sector, read_only, ..
        } = self.exported.served;
        let (mount, descriptor) = FuseMount::new(place.file(&self.exported.name), read_only)?;
        let _turn = DeviceLock::wait(self.is_stopped);
        let node = loop_device::free_node()?;
        self.check_stopped()?;
        // From here on only the daemon has the descriptor, so that the connection ends with the
        // daemon.
        self.hand_over(&node, descriptor)?;
        let wanted = Wanted {
            file: mount.path(),
            sector,
            read_only,
        };
        let mut waited = Waited::default();
        let made = loop_device::make(&node, &wanted, || waited.go_on(self, &node));
        let made = made.or_else(|error| self.check_stopped().and(Err(error)));
        if !made? {
            return Ok(None);
        }
        let mut device = BlockDevice::new(&node, self.mechanism);
        self.check_stopped()?;
        place::wait_until_restored(&node)?;
        loop_device::configure(&node, |before| device.note(before, place))?;
        Ok(Some(Made(device, Some(mount))))
    }

    fn make_nbd_device(&self, place: &LockedDirectory) -> anyhow::Result<Option<Made>> {
        let (daemons, kernels) = UnixStream::pair().context("cannot make a pair of sockets")?;
        let _turn = DeviceLock::wait(self.is_stopped);
        let node = nbd_device::free_node();
        self.check_stopped()?;
        // Only the daemon keeps this end of the connection. The daemon serves the connection before the
        // kernel asks for the first block.
        self.hand_over(&node, daemons.into())?;
        let wanted = WantedNbd {
            backend: &place.file(&self.exported.name),
            served: &self.exported.served,
            may_hold_reads: self.exported.may_hold_reads,
        };
        if !nbd_device::make(&node, &wanted, kernels.into())? {
            return Ok(None);
        }
        let mut device = BlockDevice::new(&node, self.mechanism);
        place::wait_until_restored(&node)?;
        nbd_device::configure(&node, &wanted, |before| device.note(before, place))?;
        Ok(Some(Made(device, None)))
    }

    fn make_ublk_device(&self, place: &LockedDirectory) -> anyhow::Result<Made> {
        let (node, descriptor) = ublk_device::add(place.path(), self.exported)?;
        let mut device = BlockDevice::new(&node, self.mechanism);
        self.check_stopped()?;
        // Only the daemon keeps the descriptor. The kernel makes the node only for a daemon that
        // serves it.
        self.hand_over(&node, descriptor)?;
        let mut waited = Waited::default();
        ublk_device::start(&node, self.client.status(0)?.pid, || {
            waited.go_on(self, &node);
        })?;
        self.check_stopped()?;
        ublk_device::configure(&node, |before| device.note(before, place))?;
        Ok(Made(device, None))
    }

    fn hand_over(&self, node: &str, descriptor: OwnedFd) -> anyhow::Result<()> {
        self.raise_limit();
        let what = HandOver {
            disk: self.exported.name.clone(),
            node: node.to_owned(),
            mechanism: self.mechanism,
        };
        hand_over(&self.client.handover_socket(), &what, descriptor.as_fd())
    }

    /// Raises the daemon's limit on locked memory, because the daemon locks its memory when it gets its first
    /// device. If this fails, the daemon reports what it lacks.
    fn raise_limit(&self) {
        let pid = self.client.status(0).map(|status| status.pid.cast_signed());
        if let Some(daemon) = pid.ok().and_then(Pid::from_raw) {
            let _ = reclaim::raise_limit(Some(daemon));
        }
    }

    fn check_stopped(&self) -> anyhow::Result<()> {
        if (self.is_stopped)() {
            bail!("interrupted: nothing is attached")
        } else {
            Ok(())
        }
    }
}

/// A device, and the mount of the file behind it if it is a loop device. Dropping this value frees the
/// device, and then unmounts the file.
struct Made(BlockDevice, Option<FuseMount>);

impl Made {
    /// Lets the device and the mount outlive this value.
    fn keep(self) {
        self.0.keep();
        if let Some(mount) = self.1 {
            mount.keep();
        }
    }
}

/// The wait for a device to start, while the disk holds the kernel's first I/O: reads of a ublk device,
/// and a flush of a loop device.
#[derive(Default)]
struct Waited {
    begun: Option<Instant>,
    has_said: bool,
    has_failed: bool,
}

impl Waited {
    /// Prints, only once, that the device waits. If the user gives up, makes the kernel's first I/O fail,
    /// because nothing else would end it.
    fn go_on(&mut self, attempt: &Attempt<'_>, node: &str) {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        if begun.elapsed() >= UNSAID && !std::mem::replace(&mut self.has_said, true) {
            complain(format_args!(
                "dashpot: {node}: waits for its first I/O, which {} holds; Ctrl-C gives up",
                attempt.exported.words()
            ));
        }
        if (attempt.is_stopped)() && !std::mem::replace(&mut self.has_failed, true) {
            // If this fails, the daemon is gone, and the kernel fails the I/O itself.
            let _ = attempt.client.fail_attachment(attempt.exported.key(), node);
        }
    }
}

/// How many nodes `attach` tries.
const TRIES: usize = 8;
/// How long a device waits before `attach` prints that it waits.
pub(crate) const UNSAID: Duration = Duration::from_secs(1);
