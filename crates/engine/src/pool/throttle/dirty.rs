//! The dirty data of the pool and of each txg (OpenZFS: `dp_dirty_total`, `dp_dirty_pertxg`).

use crate::pool::blocks::TXGS;

#[derive(Debug, Default)]
pub(crate) struct Dirty {
    total: u64,
    per_txg: [u64; TXGS],
}

impl Dirty {
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn of(&self, txg: u64) -> u64 {
        self.per_txg[txg as usize % TXGS]
    }

    pub(crate) fn add(&mut self, txg: u64, bytes: u64) {
        self.total += bytes;
        self.per_txg[txg as usize % TXGS] += bytes;
        self.check();
    }

    pub(crate) fn take(&mut self, txg: u64, bytes: u64) {
        debug_assert!(
            bytes <= self.of(txg),
            "txg {txg} has {} dirty bytes, and {bytes} were retired",
            self.of(txg)
        );
        self.total -= bytes;
        self.per_txg[txg as usize % TXGS] -= bytes;
        self.check();
    }

    fn check(&self) {
        debug_assert_eq!(self.total, self.per_txg.iter().sum::<u64>());
    }
}
