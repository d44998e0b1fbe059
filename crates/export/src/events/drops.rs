//! Dropped events, counted by disk and second.

use std::collections::VecDeque;

/// The events that a shard has dropped since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Drops by disk and by the second in which the zios ended, on the shards' clock. Holds the
    /// latest seconds, the oldest first.
    seconds: VecDeque<Dropped>,
    /// Drops by disk, of the seconds that are no longer kept.
    before: Vec<(u16, u64)>,
}

/// Events of one disk that were dropped in one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dropped {
    second: u64,
    disk: u16,
    events: u64,
}

impl Drops {
    pub(super) fn add(&mut self, disk: u16, second: u64) {
        let mut of_second = self.seconds.iter_mut().rev();
        let same = of_second
            .by_ref()
            .take_while(|dropped| dropped.second == second)
            .find(|dropped| dropped.disk == disk);
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
            disk,
            events: 1,
        });
    }

    fn forget_second(&mut self, oldest: Dropped) {
        match self
            .before
            .iter_mut()
            .find(|(disk, _)| *disk == oldest.disk)
        {
            Some((_, events)) => *events += oldest.events,
            None => self.before.push((oldest.disk, oldest.events)),
        }
    }

    /// How many events of a disk, or of all disks, were dropped since the start.
    pub fn total(&self, disk: Option<u16>) -> u64 {
        let of_disk = |(at, _): &(u16, u64)| disk.is_none_or(|disk| *at == disk);
        let latest = self
            .seconds
            .iter()
            .map(|dropped| (dropped.disk, dropped.events));
        let before = self.before.iter().copied();
        latest
            .chain(before)
            .filter(of_disk)
            .map(|(_, events)| events)
            .sum()
    }

    /// The dropped events of a disk, or of all disks, by second. The oldest come first; a second
    /// may come several times.
    pub fn seconds(&self, disk: Option<u16>) -> impl Iterator<Item = (u64, u64)> {
        let of_disk = move |dropped: &&Dropped| disk.is_none_or(|disk| dropped.disk == disk);
        let told = self.seconds.iter().filter(of_disk);
        told.map(|dropped| (dropped.second, dropped.events))
    }
}

/// How many pairs of disk and second are kept: enough for an hour of one disk.
pub(super) const KEPT: usize = 3_600;
