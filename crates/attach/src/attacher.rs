//! The attacher: the process that makes the block devices of `run --attach` and `serve --attach`, and removes
//! them when these commands end. It keeps running as root, while the daemon becomes the user who typed
//! `sudo`.
//!
//! The attacher is a second process that runs the same program. It reads an order as a line of JSON, answers with a
//! line of JSON, and waits for one more line, which tells it to detach. If its input ends without that line,
//! the daemon was killed, and the devices stay for the next daemon.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use dashpot_api::Client;
use dashpot_cli::With;
use dashpot_export::complain;
use dashpot_rules::parse_api;
use dashpot_sources::Stop;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::attach::{AttachRequest, attach_disk, give_to};
use crate::detach::detach_own;
use crate::mount::mount_for_run;

/// The name under which dashpot starts the attacher.
pub const ATTACHES: &str = "dashpot-attaches";

/// A request to attach disks, which a daemon sends to the attacher.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// The address of the daemon's API.
    pub api: String,
    /// The names of the disks and volumes.
    pub disks: Vec<String>,
    /// Whether each device gets a link in `/dev/dashpot`.
    pub linked: bool,
    /// Where the file system of the first disk is mounted.
    pub mount: Option<PathBuf>,
    /// The user and the group that will own the devices.
    pub owner: Option<(u32, u32)>,
}

/// The result of an order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Done {
    /// The devices that were made, in the order of the disks.
    Devices(Vec<Device>),
    /// The reason that no device was made.
    Failed(String),
}

/// A device that the attacher has made for an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Device {
    /// The name of the disk or the volume.
    pub disk: String,
    /// The path of the device.
    pub node: String,
}

/// Becomes the attacher, if dashpot was started for that.
pub fn become_attacher() -> Option<ExitCode> {
    let name = std::env::args_os().next()?;
    if name != ATTACHES {
        return None;
    }
    Some(match serve_order() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("dashpot: {error:#}"));
            ExitCode::FAILURE
        }
    })
}

fn serve_order() -> anyhow::Result<()> {
    // Only the daemon tells this process when to end, so this process ignores signals.
    let _ignored = Stop::new()?;
    let mut input = BufReader::new(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    let mut order = String::new();
    if input.read_line(&mut order)? == 0 {
        return Ok(());
    }
    let order: Order = serde_json::from_str(&order)?;
    let api = parse_api(&order.api).map_err(anyhow::Error::msg)?;
    let client = Client::find(Some(&api))?;
    let mut devices = Vec::new();
    let is_stopped = || has_more(&input);
    let attached = attach_each(&client, &order, &mut devices, &is_stopped);
    if attached.is_err() {
        detach_all(&client, &devices);
        devices.clear();
    }
    let done = match attached {
        Ok(()) => Done::Devices(devices.clone()),
        Err(error) => Done::Failed(format!("{error:#}")),
    };
    let mut answer = serde_json::to_vec(&done)?;
    answer.push(b'\n');
    io::stdout().write_all(&answer)?;
    if attached_until_told(&mut input)? {
        detach_all(&client, &devices);
    }
    Ok(())
}

/// Waits for the line that tells the attacher to detach. Returns false if the daemon was killed.
fn attached_until_told(input: &mut BufReader<File>) -> io::Result<bool> {
    Ok(input.read_line(&mut String::new())? > 0)
}

/// Whether the wait is over: the line that tells the attacher to detach has come, or the daemon was killed.
fn has_more(input: &BufReader<File>) -> bool {
    let mut watched = [PollFd::new(input.get_ref(), PollFlags::IN)];
    !input.buffer().is_empty() || poll(&mut watched, Some(&AT_ONCE)).is_ok_and(|ready| ready > 0)
}

fn attach_each(
    client: &Client,
    order: &Order,
    devices: &mut Vec<Device>,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    let mut mount_at = order.mount.as_deref();
    for disk in &order.disks {
        let wish = AttachRequest {
            disk,
            with: With::Auto,
            linked: order.linked,
        };
        let node = attach_disk(client, &wish, is_stopped)?.node;
        devices.push(Device {
            disk: disk.clone(),
            node: node.clone(),
        });
        if let Some(owner) = order.owner {
            give_to(&node, owner)?;
        }
        let Some(at) = mount_at.take() else {
            continue;
        };
        let is_new = mount_for_run(client, &node, at, is_stopped)?;
        if let Some((uid, gid)) = order.owner.filter(|_| is_new) {
            let given = chown(at, Some(uid), Some(gid));
            given.with_context(|| format!("{} cannot be given to its user", at.display()))?;
        }
    }
    Ok(())
}

fn detach_all(client: &Client, devices: &[Device]) {
    for Device { node, .. } in devices {
        if let Err(error) = detach_own(client, node) {
            complain(format_args!(
                "dashpot: {node}: {error:#}; its disk is gone: when the device is free, 'dashpot detach \
                 --stale' removes it"
            ));
        }
    }
}

const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
