//! The kernel's disks, watched through its events.

use anyhow::bail;
use dashpot_engine::Duration;
use dashpot_probe::Device;

use super::interval::DeviceInterval;
use super::question::Question;
use crate::report::in_flight::Mention;

/// Devices of the kernel being watched.
pub(crate) struct KernelWatch {}

impl KernelWatch {
    pub(super) fn new(
        _devices: &[Device],
        _question: &Question,
        _interval: Duration,
        _count: Option<u64>,
    ) -> anyhow::Result<KernelWatch> {
        bail!("the kernel's disks cannot be watched yet")
    }

    pub(super) fn next(&mut self) -> anyhow::Result<Option<Vec<DeviceInterval>>> {
        Ok(None)
    }

    pub(super) fn mention(&self) -> Mention {
        Mention::All
    }

    pub(super) fn lost(&self) -> u64 {
        0
    }
}
