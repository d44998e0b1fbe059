//! Devices of the kernel that vanish during the watch.

use anyhow::bail;
use dashpot_probe::Device;

/// The watched devices that are gone.
#[derive(Default)]
pub(super) struct Vanished {
    gone: Vec<String>,
    news: Vec<String>,
}

impl Vanished {
    /// Looks for devices that are gone.
    pub(super) fn check_presence(&mut self, devices: &[Device]) {
        let gone = devices.iter().filter(|device| !device.is_there());
        let gone: Vec<String> = gone.map(|device| device.name.clone()).collect();
        let is_new = |name: &&String| !self.gone.contains(name);
        self.news = gone.iter().filter(is_new).cloned().collect();
        self.gone = gone;
    }

    /// An error that names the vanished devices, if none is left.
    pub(super) fn check(&self, devices: &[Device]) -> anyhow::Result<()> {
        if self.is_all(devices) {
            bail!(
                "nothing is left to watch, for {} vanished: name a device that is there, 'lsblk' \
                 lists them",
                self.gone.join(", ")
            );
        }
        Ok(())
    }

    /// The devices that were gone at the last look.
    pub(super) fn gone(&self) -> &[String] {
        &self.gone
    }

    /// The devices that have gone between the last two looks. If `is_last` is false, [`Self::check`]
    /// will name them, so this omits them.
    pub(super) fn news(&self, devices: &[Device], is_last: bool) -> &[String] {
        match self.is_all(devices) && !is_last {
            true => &[],
            false => &self.news,
        }
    }

    fn is_all(&self, devices: &[Device]) -> bool {
        !devices.is_empty() && self.gone.len() == devices.len()
    }
}
