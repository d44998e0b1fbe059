//! Whose disks are watched: a daemon's, or the kernel's.

use anyhow::bail;
use dashpot_probe::{Device, DeviceError};

use crate::api::types::Disk;
use crate::cli::DeviceArgs;
use crate::client::{Client, ClientError};
use crate::spec::ApiAddress;

/// What a report looks at.
pub(crate) enum Target {
    /// Disks of a daemon, by name; all if none is named.
    Daemon(Client, Vec<String>),
    /// Block devices of the kernel; at least one.
    Kernel(Vec<Device>),
}

impl Target {
    /// A path, a number (`7,0`) and everything under `--kernel` is the kernel's; a name is that of
    /// a disk of the daemon, if it has one of that name, and else the kernel's.
    pub(crate) fn find(api: Option<&ApiAddress>, args: &DeviceArgs) -> anyhow::Result<Target> {
        if args.kernel && args.devices.is_empty() {
            return Ok(Target::Kernel(Device::all()?));
        }
        if args.kernel || args.devices.iter().any(|words| is_the_kernels(words)) {
            return Ok(Target::Kernel(find_all(&args.devices)?));
        }
        let client = Client::find(api)?;
        if args.devices.is_empty() {
            return Ok(Target::Daemon(client, Vec::new()));
        }
        let missing = match disks_of(&client) {
            Ok(known) => args.devices.iter().find(|name| !known.contains(name)),
            Err(ClientError::NoDaemon { .. }) if api.is_none() => args.devices.first(),
            Err(error) => return Err(error.into()),
        };
        match missing {
            None => Ok(Target::Daemon(client, args.devices.clone())),
            Some(name) => match find_all(&args.devices) {
                Ok(devices) => Ok(Target::Kernel(devices)),
                Err(_) => bail!("neither the daemon nor the kernel has a disk '{name}'"),
            },
        }
    }
}

fn is_the_kernels(words: &str) -> bool {
    words.contains(['/', ',']) && !words.starts_with(',')
}

fn find_all(words: &[String]) -> Result<Vec<Device>, DeviceError> {
    words.iter().map(|words| Device::find(words)).collect()
}

fn disks_of(client: &Client) -> Result<Vec<String>, ClientError> {
    let disks: Vec<Disk> = client.get("/v1/disks?oldest=0")?;
    Ok(disks.into_iter().map(|disk| disk.name).collect())
}
