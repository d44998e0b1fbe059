//! Simulates the volatile cache of a disk, which loses writes in a power cut.

use std::collections::{BTreeMap, VecDeque};

use dashpot_engine::{Random, ZioId};

/// The volatile cache of a disk.
#[derive(Clone)]
pub(crate) struct Cache {
    /// The bytes that survive every power cut.
    pub(crate) kept: Vec<u8>,
    /// Writes that no sync has covered, the oldest first.
    writes: VecDeque<(usize, Vec<u8>)>,
    /// How many writes have left `writes`, because a sync covered them or a power cut decided their fate.
    covered: usize,
    /// The syncs that the disk works on, each with the number of all writes before it.
    syncs: BTreeMap<ZioId, usize>,
}

impl Cache {
    pub(crate) fn new(size: usize) -> Cache {
        Cache {
            kept: vec![0; size],
            writes: VecDeque::new(),
            covered: 0,
            syncs: BTreeMap::new(),
        }
    }

    pub(crate) fn wrote(&mut self, at: usize, bytes: &[u8]) {
        self.writes.push_back((at, bytes.to_vec()));
    }

    pub(crate) fn sync_began(&mut self, id: ZioId) {
        self.syncs.insert(id, self.covered + self.writes.len());
    }

    pub(crate) fn synced(&mut self, id: ZioId) {
        let covers = self.syncs.remove(&id).unwrap();
        while self.covered < covers {
            self.keep_oldest();
        }
    }

    fn keep_oldest(&mut self) {
        let (at, bytes) = self.writes.pop_front().unwrap();
        self.kept[at..at + bytes.len()].copy_from_slice(&bytes);
        self.covered += 1;
    }

    pub(crate) fn lose_power(&mut self, random: &mut Random) {
        self.lose_writes(random);
        self.syncs.clear();
    }

    /// Loses some of the writes that no sync has covered, and keeps the others for good. After that, syncs in
    /// flight have nothing left to cover.
    pub(crate) fn lose_writes(&mut self, random: &mut Random) {
        while !self.writes.is_empty() {
            if random.below(2) == 0 {
                self.writes.pop_front();
                self.covered += 1;
            } else {
                self.keep_oldest();
            }
        }
    }
}
