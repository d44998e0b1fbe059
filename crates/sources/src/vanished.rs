//! Devices of the kernel that vanish during the watch.

use anyhow::bail;
use dashpot_observe::VanishedDevice;
use dashpot_probe::Device;

/// The watched devices that are gone.
#[derive(Default)]
pub(crate) struct Vanished {
    gone: Vec<VanishedDevice>,
    news: Vec<VanishedDevice>,
}

impl Vanished {
    /// Looks for devices that are gone.
    pub(crate) fn check_presence(&mut self, devices: &[Device]) {
        let gone = devices.iter().filter(|device| !device.is_there());
        let gone: Vec<VanishedDevice> = gone.map(vanished).collect();
        let is_new = |now: &&VanishedDevice| self.gone.iter().all(|before| before.name != now.name);
        self.news = gone.iter().filter(is_new).cloned().collect();
        self.gone = gone;
    }

    /// Fails if no device is left, and names the vanished devices.
    pub(crate) fn check(&self, devices: &[Device]) -> anyhow::Result<()> {
        if self.is_all(devices) {
            let gone: Vec<String> = self.gone.iter().map(described).collect();
            bail!(
                "nothing is left to watch, because {} vanished: name a device that is there; 'lsblk' \
                 lists them",
                gone.join(", ")
            );
        }
        Ok(())
    }

    /// The devices that were gone at the last check.
    pub(crate) fn gone(&self) -> Vec<String> {
        self.gone.iter().map(|device| device.name.clone()).collect()
    }

    /// The devices that have vanished between the last two checks. If all devices are gone and `is_last` is
    /// false, the next [`Self::check`] names them, so this function returns none.
    pub(crate) fn news(&self, devices: &[Device], is_last: bool) -> &[VanishedDevice] {
        match self.is_all(devices) && !is_last {
            true => &[],
            false => &self.news,
        }
    }

    fn is_all(&self, devices: &[Device]) -> bool {
        !devices.is_empty() && self.gone.len() == devices.len()
    }
}

fn vanished(device: &Device) -> VanishedDevice {
    VanishedDevice {
        name: device.name.clone(),
        is_replaced: device.is_replaced(),
    }
}

fn described(device: &VanishedDevice) -> String {
    match device.warning() {
        Some(warning) => format!("{} ({warning})", device.name),
        None => device.name.clone(),
    }
}
