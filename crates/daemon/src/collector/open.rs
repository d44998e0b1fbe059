//! The counts of the current second.

use dashpot_engine::Op;
use dashpot_export::DeviceId;

use super::clients::ClientIndex;
use super::tally::Counting;

/// A kind of zio: the zios with the same device, client, size class and operation. They are all counted
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) device: DeviceId,
    pub(super) client: ClientIndex,
    /// The exponent of the greatest power of two that is not above the length; `None` for length 0.
    pub(super) size: Option<u8>,
    pub(super) op: Op,
}

impl Cell {
    /// The slot at which the search for this cell begins.
    #[inline]
    fn slot(self) -> usize {
        let size = u64::from(self.size.map_or(u8::MAX, |power| power));
        let all = [
            self.device.0.into(),
            self.client.into(),
            size,
            self.op as u64,
        ];
        let packed = all.into_iter().fold(0, |packed, part| packed << 8 | part);
        // Multiplying by the golden ratio spreads neighbouring values (Fibonacci hashing).
        (packed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOTS.ilog2())) as usize
    }
}

/// The counts of each kind, for at most [`COUNTING`] kinds.
#[derive(Debug)]
pub(super) struct Open {
    /// The index of each cell in the list `counting`. A search starts at the cell's own slot, and ends at the
    /// first free slot.
    slots: Vec<u16>,
    cells: Vec<Cell>,
    /// The counts, by the index of the cell. Entries without a cell are kept, so that later cells can use
    /// their memory.
    counting: Vec<Counting>,
    /// The index of the cell that was counted last, because the next zio is often of the same kind.
    last: usize,
}

impl Default for Open {
    fn default() -> Open {
        Open {
            slots: vec![FREE; SLOTS],
            cells: Vec::new(),
            counting: Vec::new(),
            last: 0,
        }
    }
}

impl Open {
    /// The counts of a kind, if it is counted already.
    #[inline]
    pub(super) fn counting(&mut self, cell: Cell) -> Option<&mut Counting> {
        if self.cells.get(self.last) != Some(&cell) {
            self.last = usize::from(self.slots[self.find(cell)]);
            self.cells.get(self.last)?;
        }
        self.counting.get_mut(self.last)
    }

    /// Begins to count a new kind.
    pub(super) fn begin(&mut self, cell: Cell) -> &mut Counting {
        let slot = self.find(cell);
        self.last = self.cells.len();
        self.slots[slot] = self.last as u16;
        self.cells.push(cell);
        if self.counting.len() < self.cells.len() {
            self.counting.push(Counting::default());
        }
        &mut self.counting[self.last]
    }

    /// The slot of a cell, or the free slot where the cell belongs. The search ends, because there are more
    /// slots than cells.
    #[inline]
    fn find(&self, cell: Cell) -> usize {
        let mut slot = cell.slot();
        while let Some(found) = self.cells.get(usize::from(self.slots[slot]))
            && *found != cell
        {
            slot = (slot + 1) % SLOTS;
        }
        slot
    }

    pub(super) fn is_full(&self) -> bool {
        self.cells.len() == COUNTING
    }

    /// Whether there are any counts of a client.
    pub(super) fn has_client(&self, device: DeviceId, client: ClientIndex) -> bool {
        let of_client = |cell: &Cell| (cell.device, cell.client) == (device, client);
        self.cells.iter().any(of_client)
    }

    /// Ends the second, and gives all counts to `take`.
    pub(super) fn close(&mut self, mut take: impl FnMut(Cell, &Counting)) {
        if self.cells.is_empty() {
            return;
        }
        for (cell, counting) in self.cells.drain(..).zip(&mut self.counting) {
            take(cell, counting);
            *counting = Counting::default();
        }
        self.slots.fill(FREE);
    }
}

/// The most kinds in one second. This many cells take 52 MiB.
const COUNTING: usize = 1_024;
/// Twice the maximum number of cells, so that searches are short.
const SLOTS: usize = 2 * COUNTING;
/// Marks a free slot.
const FREE: u16 = u16::MAX;
