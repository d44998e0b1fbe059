//! Gives a device of the kernel's NBD client to another daemon when its own daemon is gone.
//!
//! A program that has the device open goes on as if its I/O had only been slow. So the other daemon must
//! serve the same bytes: an empty disk would destroy a mounted file system.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dashpot_api::{Client, LayerWord, MechanismWord};
use serde::Serialize;

use crate::exported::Exported;
use crate::kernel_log::Left;
use crate::place::{LockedDirectory, Record, Served, records};
use crate::process::Process;
use crate::state::{is_of, is_used, waits_now};
use crate::{guard, nbd_device};

/// A device that was waiting for a daemon, and that this daemon now serves.
pub(crate) struct TakenOver {
    pub(crate) node: String,
    /// How much longer the kernel would have kept the device's waiting I/O.
    pub(crate) left: Left,
}

/// If a device of this disk or volume is in use and its daemon is gone, takes the device over. Fails if a
/// program that has the device open would notice a difference.
pub(crate) fn take_over(
    exported: &Exported,
    client: &Client,
    hand_over: impl Fn(&str, UnixStream) -> anyhow::Result<()>,
) -> anyhow::Result<Option<TakenOver>> {
    let served = &exported.served;
    for (place, record) in LockedDirectory::meant(|record| record.key() == exported.key())? {
        let is_its_daemon = record.api == client.address();
        let is_its_store = served.store_id.is_some() && record.served.store_id == served.store_id;
        if !(is_its_daemon || is_its_store) || !waits_now(&place, &record) || !is_used(&record) {
            continue;
        }
        let node = record.node.clone();
        if let Some(difference) = difference(exported.layer, &record.served, served) {
            bail!(
                "{node} was {} of a daemon that is gone, and is still in use; this daemon cannot take it over, because {difference}: 'dashpot detach --stale' ends it, and fails its I/O",
                record.words()
            );
        }
        let left = Left::of(&node);
        hand_over(&node, connect(&place, &record)?)?;
        place.write(&Record {
            daemon: Process::of(client.status(0)?.pid),
            api: client.address(),
            ..record
        })?;
        guard::start(&node)?;
        return Ok(Some(TakenOver { node, left }));
    }
    Ok(None)
}

/// How the device would differ for a program that has it open, in words; `None` if it would not differ.
fn difference(layer: LayerWord, former: &Served, served: &Served) -> Option<&'static str> {
    match layer {
        _ if former.store_id.is_some() && former.store_id == served.store_id => {}
        LayerWord::Disk if former.store_id.is_none() => {
            return Some(
                "its bytes ended with that daemon, as the bytes of ram, null and lossy stores do",
            );
        }
        LayerWord::Volume if former.store_id.is_none() => {
            return Some(
                "some of its bytes may have ended with that daemon: only a volume with write = \"through\" and all \
                 disks on file or dev stores keeps them",
            );
        }
        LayerWord::Disk => return Some("it has another store now"),
        LayerWord::Volume => {
            return Some("its blocks are at another place, or its disks have other stores now");
        }
    }
    (former != served).then_some("its size, its blocks or its access have changed")
}

/// Gives the device a new connection, and returns the daemon's end of it. Tries again for a moment, because
/// the kernel may not have noticed yet that the former connection has ended.
fn connect(place: &LockedDirectory, record: &Record) -> anyhow::Result<UnixStream> {
    let begun = Instant::now();
    loop {
        let (daemons, kernels) = UnixStream::pair().context("cannot make a pair of sockets")?;
        let backend = place.file(&record.disk);
        match nbd_device::reconnect(&record.node, &backend, kernels.into(), &daemons) {
            Ok(()) => return Ok(daemons),
            Err(error) if begun.elapsed() >= NOTICING => return Err(error),
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

/// A device that waits for a daemon.
#[derive(Debug, Serialize)]
pub struct Waiting {
    /// The path of the device.
    pub node: String,
    /// The name of the disk or the volume.
    pub disk: String,
    /// Whether that is a disk or a volume.
    #[serde(skip)]
    pub layer: LayerWord,
    /// How long the kernel still keeps its I/O.
    pub left: Left,
}

/// The devices that wait for a daemon at this address of the API. Finding these devices needs no privilege.
pub fn waiting_for(api: &str) -> Vec<Waiting> {
    let is_waiting = |(path, record): &(PathBuf, Record)| {
        record.api == api
            && record.mechanism == MechanismWord::Nbd
            && record.daemon.is_some_and(|daemon| !daemon.is_alive())
            && is_of(record, path)
    };
    let waiting = records().into_iter().filter(is_waiting);
    waiting
        .map(|(_, record)| Waiting {
            left: Left::of(&record.node),
            node: record.node,
            disk: record.disk,
            layer: record.layer,
        })
        .collect()
}

/// How long the kernel may take to notice that a connection has ended.
const NOTICING: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
