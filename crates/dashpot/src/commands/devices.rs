//! The block devices of `run --attach`: they live as long as its command.

use std::path::PathBuf;

use dashpot_api::Client;
use dashpot_export::complain;
use dashpot_rules::Address;
use tokio::task::spawn_blocking;

use super::attach::{attach_disk, detach_own, mount_for_run};
use super::instance::Export;
use super::variables::{DEVICE, variable};
use crate::cli::{RunArgs, With};

/// The devices, in the order of the disks.
#[derive(Debug, Default)]
pub(super) struct Devices(Vec<Device>);

#[derive(Debug)]
struct Device {
    disk: String,
    node: String,
}

impl Devices {
    /// Attaches the disks, if that is wanted: all of them, or none.
    pub(super) async fn attach(
        args: &RunArgs,
        api: &Address,
        exports: &[Export],
    ) -> anyhow::Result<Devices> {
        if !args.attach && args.mount.is_none() {
            return Ok(Devices::default());
        }
        let disks: Vec<String> = exports.iter().map(|export| export.name.clone()).collect();
        let (at, api) = (args.mount.clone(), api.clone());
        spawn_blocking(move || attach_all(&api, disks, at)).await?
    }

    /// What the command finds them by.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let first = self.0.first();
        let first = first.map(|device| (DEVICE.to_owned(), device.node.clone()));
        let named = |device: &Device| (variable(DEVICE, &device.disk), device.node.clone());
        first.into_iter().chain(self.0.iter().map(named)).collect()
    }

    /// Detaches them, and says which are still in use.
    pub(super) async fn detach(self, api: &Address) {
        let api = api.clone();
        // A thread that has panicked has said so.
        let _ = spawn_blocking(move || detach_all(&api, &self)).await;
    }
}

fn attach_all(
    api: &Address,
    disks: Vec<String>,
    mount_at: Option<PathBuf>,
) -> anyhow::Result<Devices> {
    let client = Client::at(api.clone(), None)?;
    let mut devices = Devices::default();
    let attached = attach_each(&client, disks, mount_at, &mut devices);
    if attached.is_err() {
        detach_all(api, &devices);
    }
    attached.map(|()| devices)
}

fn attach_each(
    client: &Client,
    disks: Vec<String>,
    mut mount_at: Option<PathBuf>,
    devices: &mut Devices,
) -> anyhow::Result<()> {
    for disk in disks {
        let node = attach_disk(client, &disk, With::Auto, || false)?.node;
        devices.0.push(Device {
            disk,
            node: node.clone(),
        });
        if let Some(at) = mount_at.take() {
            mount_for_run(&node, &at, None)?;
        }
    }
    Ok(())
}

fn detach_all(api: &Address, devices: &Devices) {
    let client = Client::at(api.clone(), None);
    for device in &devices.0 {
        let node = &device.node;
        let detached = client.as_ref().map(|client| detach_own(client, node));
        if let Ok(Err(error)) = detached {
            complain(format_args!(
                "dashpot: {node}: {error:#}; its disk is gone: when it is free, 'dashpot detach --stale' removes it"
            ));
        }
    }
}
