//! The I/O of each of the last seconds, minutes and hours. A minute is the exact sum of its seconds, bucket
//! by bucket. Minutes are remembered longer than seconds, and hours longer than minutes.

use std::collections::VecDeque;
use std::sync::Arc;

use dashpot_engine::Op;
use dashpot_export::DeviceId;

use super::tally::Brief;

/// The I/O of one client with one operation on one device, in one second, minute or hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecondCell {
    pub device: DeviceId,
    pub client: Arc<str>,
    pub op: Op,
    pub tally: Brief,
}

impl SecondCell {
    /// The memory of the cell beside that of the cell itself.
    fn beside(&self) -> usize {
        self.client.len() + self.tally.disk.buckets.capacity() * size_of::<(usize, u64)>()
    }
}

#[derive(Debug)]
struct Step {
    number: u64,
    cells: SecondCells,
}

impl Step {
    fn size(&self) -> usize {
        let beside = self.cells.iter().map(SecondCell::beside);
        self.cells.capacity() * size_of::<SecondCell>() + beside.sum::<usize>()
    }
}

/// The I/O of a second, a minute or an hour. A reader shares these cells and converts them while the
/// collector continues to count. If the collector must add to cells that a reader shares, it adds to a copy.
pub(crate) type SecondCells = Arc<Vec<SecondCell>>;

/// The length of a memory's steps, and the bounds of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The length of a step in seconds.
    pub(crate) unit: u64,
    /// The most steps that are remembered.
    pub(crate) most: usize,
    /// The most bytes that the steps may take.
    pub(crate) bytes: usize,
}

/// The steps in which zios have ended, as far back as the memory goes.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) bounds: Bounds,
    /// The steps, in order of their numbers.
    steps: VecDeque<Step>,
    /// The memory that all remembered steps take, in bytes.
    size: usize,
    /// The memory has all I/O from this step on.
    since: u64,
}

/// The memories of seconds, minutes and hours.
#[derive(Debug)]
pub(crate) struct Seconds([Steps; 3]);

impl Default for Seconds {
    fn default() -> Seconds {
        Seconds(BOUNDS.map(Steps::new))
    }
}

impl Seconds {
    /// Adds a client's I/O to a second, and to its minute and its hour, unless these were forgotten.
    pub(super) fn add(&mut self, second: u64, added: SecondCell) {
        let [seconds, minutes, hours] = &mut self.0;
        hours.add(second, added.clone());
        minutes.add(second, added.clone());
        seconds.add(second, added);
    }

    /// The memories of seconds, minutes and hours, the finest first.
    pub(crate) fn levels(&self) -> &[Steps; 3] {
        &self.0
    }

    /// The memory of seconds has all I/O from this second on.
    pub(crate) fn since(&self) -> u64 {
        self.0[0].since()
    }

    /// The seconds with I/O, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &SecondCells)> {
        self.0[0].iter()
    }
}

impl Steps {
    fn new(bounds: Bounds) -> Steps {
        Steps {
            bounds,
            steps: VecDeque::new(),
            size: 0,
            since: 0,
        }
    }

    fn add(&mut self, second: u64, added: SecondCell) {
        let Some(step) = self.step(second / self.bounds.unit) else {
            return;
        };
        let same = |cell: &&mut SecondCell| {
            (cell.device, cell.op) == (added.device, added.op) && cell.client == added.client
        };
        // A copy of cells that a reader shares has no spare capacity.
        let before = step.size();
        let cells = Arc::make_mut(&mut step.cells);
        match cells.iter_mut().find(same) {
            Some(cell) => cell.tally.merge(&added.tally),
            None => cells.push(added),
        }
        let after = step.size();
        self.size = self.size + after - before;
        self.forget();
    }

    fn step(&mut self, number: u64) -> Option<&mut Step> {
        let at = self.steps.partition_point(|step| step.number < number);
        let is_there = self.steps.get(at).is_some_and(|step| step.number == number);
        if !is_there {
            if number < self.since {
                return None;
            }
            let cells = SecondCells::default();
            self.steps.insert(at, Step { number, cells });
        }
        self.steps.get_mut(at)
    }

    fn forget(&mut self) {
        let Bounds { most, bytes, .. } = self.bounds;
        while self.steps.len() > most || (self.size > bytes && self.steps.len() > 1) {
            let Some(oldest) = self.steps.pop_front() else {
                return;
            };
            self.since = oldest.number + 1;
            self.size -= oldest.size();
        }
    }

    /// The memory has all I/O from this second on.
    pub(crate) fn since(&self) -> u64 {
        self.since * self.bounds.unit
    }

    /// The steps with I/O, the oldest first, with the seconds at which they begin.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &SecondCells)> {
        let unit = self.bounds.unit;
        let steps = self.steps.iter();
        steps.map(move |step| (step.number * unit, &step.cells))
    }
}

/// An hour of seconds, a day of minutes, and 30 days of hours.
const BOUNDS: [Bounds; 3] = [
    Bounds {
        unit: 1,
        most: SECONDS,
        bytes: SIZE,
    },
    Bounds {
        unit: 60,
        most: 24 * 60,
        bytes: SIZE,
    },
    Bounds {
        unit: 3_600,
        most: 30 * 24,
        bytes: SIZE,
    },
];
/// The most seconds that are remembered.
pub(super) const SECONDS: usize = 3_600;
/// The most bytes that the seconds may take. The minutes have the same bound, and so do the hours.
const SIZE: usize = 32 << 20;

#[cfg(test)]
mod tests;
