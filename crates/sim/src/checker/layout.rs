//! The places of volumes' sectors on the disks, which the checker learns from writes.
//!
//! The checker assumes nothing about how a layout spreads blocks. Under the static layout, a place on a disk
//! belongs forever to the volume's sector that was written there first. Under the dynamic layout, a place
//! belongs to the sector that was written there last, and a sector's place is where it was last written. All
//! sides of a mirror have a sector at the same place.

use std::collections::BTreeMap;

use dashpot_rules::PoolSpec;

use super::sectors::{Content, Sparse};
use crate::scenario::{Scenario, Target};

#[derive(Debug)]
pub(crate) struct Layout {
    /// For each sector of each disk: the volume's sector to which this place belongs.
    owners: Vec<Sparse<Option<Sector>>>,
    /// For each sector of a volume: its disk (one side of the mirror) and its place there.
    homes: BTreeMap<Sector, (usize, u64)>,
    /// For each disk: all sides of its member.
    sides: Vec<Vec<usize>>,
    /// For each disk: whether its pool has the dynamic layout.
    dynamic: Vec<bool>,
    /// For each write, by its number: its disk or volume, and its first sector.
    writes: Vec<Sector>,
}

/// A sector of a disk or volume.
pub(crate) type Sector = (Target, u64);

impl Layout {
    pub(crate) fn new(scenario: &Scenario) -> Layout {
        let members = || scenario.pools.iter().flat_map(|pool| &pool.members);
        let sides = |disk: usize| {
            let member = members().find(|sides| sides.contains(&disk));
            member.cloned().unwrap_or_else(|| vec![disk])
        };
        let dynamic = |pool: &&PoolSpec| pool.layout == dashpot_engine::pool::Layout::Dynamic;
        let dynamic = scenario.pools.iter().filter(dynamic);
        let dynamic: Vec<usize> = dynamic.flat_map(PoolSpec::disks).collect();
        Layout {
            dynamic: (0..scenario.disks.len())
                .map(|disk| dynamic.contains(&disk))
                .collect(),
            owners: vec![Sparse::default(); scenario.disks.len()],
            homes: BTreeMap::new(),
            sides: (0..scenario.disks.len()).map(sides).collect(),
            writes: Vec::new(),
        }
    }

    /// Each disk, with the first side of the mirror to which it belongs.
    pub(crate) fn mirrored(&self) -> impl Iterator<Item = (usize, usize)> {
        let sides = self.sides.iter().enumerate();
        sides.filter_map(|(disk, sides)| Some((disk, *sides.first()?)))
    }

    /// Numbers a new write, which begins at this sector.
    pub(crate) fn new_write(&mut self, target: Target, first: u64) -> u64 {
        self.writes.push((target, first));
        self.writes.len() as u64
    }

    /// Checks a write to a disk of a pool: every sector must be at its place.
    pub(crate) fn check(
        &mut self,
        disk: usize,
        first: u64,
        contents: &[Content],
    ) -> Result<(), String> {
        for (sector, content) in (first..).zip(contents) {
            let Some((write, place)) = content.origin() else {
                continue;
            };
            let Some((target, start)) = self.writes.get(write as usize - 1) else {
                return Err(format!(
                    "disk {disk} has got {content}, but there is no such write"
                ));
            };
            let owner = (*target, start + place);
            if self.dynamic[disk] {
                self.settle(disk, sector, owner);
            }
            let known = *self.owners[disk].get_mut(sector).get_or_insert(owner);
            let (home, at) = *self.homes.entry(owner).or_insert((disk, sector));
            if known != owner || at != sector || !self.sides[home].contains(&disk) {
                return Err(format!(
                    "sector {sector} of disk {disk} has got {owner:?}, which is at sector {at} of \
                     disk {home}; it belongs to {known:?}"
                ));
            }
        }
        Ok(())
    }

    /// Gives a place to a new owner.
    fn settle(&mut self, disk: usize, sector: u64, owner: Sector) {
        let side = |home: &(usize, u64)| self.sides[home.0].contains(&disk) && home.1 == sector;
        if !self.homes.get(&owner).is_some_and(side) {
            self.homes.insert(owner, (disk, sector));
        }
        if *self.owners[disk].get(sector) != Some(owner) {
            self.vacate(disk, sector);
            *self.owners[disk].get_mut(sector) = Some(owner);
        }
    }

    /// Notes that a disk of a pool has trimmed sectors. Returns whether the checker may treat the trim as
    /// durable. Under the dynamic layout it may, because the places then have no owner. If a power cut brings
    /// old data back there, that is no fault, even if the same block has since been given the place again.
    pub(crate) fn trimmed(&mut self, disk: usize, first: u64, sectors: u64) -> bool {
        if self.dynamic[disk] {
            (first..first + sectors).for_each(|sector| self.vacate(disk, sector));
        }
        self.dynamic[disk]
    }

    /// Takes a place away from its owner.
    fn vacate(&mut self, disk: usize, sector: u64) {
        let Some(owner) = self.owners[disk].get_mut(sector).take() else {
            return;
        };
        let home = self.homes.get(&owner);
        if home.is_some_and(|(side, at)| self.sides[*side].contains(&disk) && *at == sector) {
            self.homes.remove(&owner);
        }
    }

    /// The disks that hold a sector, each with the sector's place on it, if the place is known. A sector that
    /// was never written to a disk reads as zeroes.
    pub(crate) fn places(&self, target: Target, sector: u64) -> Vec<(usize, Option<u64>)> {
        if let Target::Disk(disk) = target {
            return vec![(disk, Some(sector))];
        }
        match self.homes.get(&(target, sector)) {
            None => vec![(0, None)],
            Some((disk, at)) => {
                let sides = self.sides[*disk].iter();
                sides.map(|side| (*side, Some(*at))).collect()
            }
        }
    }
}
