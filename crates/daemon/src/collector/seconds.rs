//! The I/O of each of the last seconds.

use std::collections::VecDeque;
use std::sync::Arc;

use dashpot_engine::Op;
use dashpot_export::DeviceId;

use super::tally::Brief;

/// The I/O of one client on one device in one second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondCell {
    pub device: DeviceId,
    pub client: Arc<str>,
    pub op: Op,
    pub tally: Brief,
}

impl SecondCell {
    fn size(&self) -> usize {
        let buckets = self.tally.disk.buckets.len();
        size_of::<SecondCell>() + buckets * size_of::<(usize, u64)>()
    }
}

#[derive(Debug)]
struct Second {
    number: u64,
    cells: SecondCells,
}

/// The I/O of a second. A reader shares it and converts it while the collector counts on. If the
/// collector then adds to this second, it works on a copy.
pub(crate) type SecondCells = Arc<Vec<SecondCell>>;

/// The seconds in which zios have ended, as far back as the memory goes.
#[derive(Debug, Default)]
pub(super) struct Seconds {
    /// By number.
    seconds: VecDeque<Second>,
    /// The bytes of all remembered seconds.
    size: usize,
    /// The first second that was not forgotten.
    since: u64,
}

impl Seconds {
    /// Adds the I/O of clients to a second, unless that second was forgotten.
    pub(super) fn add(&mut self, number: u64, added: SecondCell) {
        let Some(second) = self.second(number) else {
            return;
        };
        let same = |cell: &&mut SecondCell| {
            (cell.device, cell.op) == (added.device, added.op) && cell.client == added.client
        };
        let cells = Arc::make_mut(&mut second.cells);
        let (before, after) = match cells.iter_mut().find(same) {
            Some(cell) => {
                let before = cell.size();
                cell.tally.merge(&added.tally);
                (before, cell.size())
            }
            None => {
                let size = added.size();
                cells.push(added);
                (0, size)
            }
        };
        self.size = self.size + after - before;
        self.forget();
    }

    fn second(&mut self, number: u64) -> Option<&mut Second> {
        let at = self
            .seconds
            .partition_point(|second| second.number < number);
        let is_there = self
            .seconds
            .get(at)
            .is_some_and(|second| second.number == number);
        if !is_there {
            if at == 0 && self.seconds.len() == SECONDS {
                return None;
            }
            let cells = SecondCells::default();
            self.seconds.insert(at, Second { number, cells });
        }
        self.seconds.get_mut(at)
    }

    fn forget(&mut self) {
        while self.seconds.len() > SECONDS || (self.size > SIZE && self.seconds.len() > 1) {
            let Some(oldest) = self.seconds.pop_front() else {
                return;
            };
            self.since = oldest.number + 1;
            self.size -= oldest.cells.iter().map(SecondCell::size).sum::<usize>();
        }
    }

    /// The first complete second: no part of it was forgotten.
    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// The seconds with I/O, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &SecondCells)> {
        let seconds = self.seconds.iter();
        seconds.map(|second| (second.number, &second.cells))
    }
}

/// The most seconds that are remembered.
pub(super) const SECONDS: usize = 3_600;
/// The most bytes that they may take.
pub(super) const SIZE: usize = 32 << 20;
