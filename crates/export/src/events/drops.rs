//! Counts of dropped events, by device and second.

use std::collections::VecDeque;

use super::record::DeviceId;

/// The events that a shard has dropped since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// For each device and second, how many of the device's events were dropped, if any. A zio belongs to the
    /// second in which it ended, on the shards' clock. The list has only the latest seconds, the oldest
    /// first.
    seconds: VecDeque<Dropped>,
    /// For each device, how many of its events were dropped in earlier seconds, which `seconds` no longer
    /// has.
    before: Vec<(DeviceId, u64)>,
}

/// Events of one device that were dropped in one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dropped {
    second: u64,
    device: DeviceId,
    events: u64,
}

impl Drops {
    pub(super) fn add(&mut self, device: DeviceId, second: u64) {
        let mut of_second = self.seconds.iter_mut().rev();
        let same = of_second
            .by_ref()
            .take_while(|dropped| dropped.second == second)
            .find(|dropped| dropped.device == device);
        if let Some(dropped) = same {
            dropped.events += 1;
            return;
        }
        if self.seconds.len() == KEPT
            && let Some(oldest) = self.seconds.pop_front()
        {
            self.forget_second(oldest);
        }
        self.seconds.push_back(Dropped {
            second,
            device,
            events: 1,
        });
    }

    fn forget_second(&mut self, oldest: Dropped) {
        match self
            .before
            .iter_mut()
            .find(|(device, _)| *device == oldest.device)
        {
            Some((_, events)) => *events += oldest.events,
            None => self.before.push((oldest.device, oldest.events)),
        }
    }

    /// How many events of a device, or of all devices, were dropped since the start.
    pub fn total(&self, device: Option<DeviceId>) -> u64 {
        let of_device = |(at, _): &(DeviceId, u64)| device.is_none_or(|device| *at == device);
        let latest = self
            .seconds
            .iter()
            .map(|dropped| (dropped.device, dropped.events));
        let before = self.before.iter().copied();
        latest
            .chain(before)
            .filter(of_device)
            .map(|(_, events)| events)
            .sum()
    }

    /// For each second, its number and how many events of a device, or of all devices, were dropped in it.
    /// The oldest second comes first. A second appears once for each device whose events were dropped in it.
    pub fn seconds(&self, device: Option<DeviceId>) -> impl Iterator<Item = (u64, u64)> {
        let of_device =
            move |dropped: &&Dropped| device.is_none_or(|device| dropped.device == device);
        let told = self.seconds.iter().filter(of_device);
        told.map(|dropped| (dropped.second, dropped.events))
    }
}

/// The largest number of entries in `seconds`. They cover an hour if only one device's events are dropped.
pub(super) const KEPT: usize = 3_600;
