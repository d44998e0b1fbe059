//! Contents without bytes: what a sector holds is identified by the write that put it there.

/// The content of a sector of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Content(u64);

impl Content {
    /// Zeroes, as on a new disk.
    pub(crate) const ZERO: Content = Content(0);
    /// Undefined, as in memory that was never filled.
    pub(crate) const UNKNOWN: Content = Content(u64::MAX);

    /// The content of the sector at index `place` in the payload of a write. Writes are numbered from 1.
    pub(crate) fn of(write: u64, place: u64) -> Content {
        Content(write << PLACE_BITS | place)
    }

    /// The number of the write from which this content came, and its index in that write's payload; `None` if
    /// it came from no write.
    pub(crate) fn origin(self) -> Option<(u64, u64)> {
        let place = self.0 & ((1 << PLACE_BITS) - 1);
        (self != Content::ZERO && self != Content::UNKNOWN).then_some((self.0 >> PLACE_BITS, place))
    }
}

impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.origin() {
            Some((write, place)) => write!(f, "sector {place} of write {write}"),
            None if *self == Content::ZERO => f.write_str("zeroes"),
            None => f.write_str("nothing that was ever written"),
        }
    }
}

/// One record for each sector. Most sectors are never touched, so only the leaves of touched sectors are
/// allocated.
#[derive(Clone, Debug)]
pub(crate) struct Sparse<T> {
    leaves: Vec<Option<Box<[T]>>>,
    untouched: T,
}

impl<T: Clone + Default> Default for Sparse<T> {
    fn default() -> Sparse<T> {
        Sparse {
            leaves: Vec::new(),
            untouched: T::default(),
        }
    }
}

impl<T: Clone + Default> Sparse<T> {
    pub(crate) fn get(&self, sector: u64) -> &T {
        match self.leaves.get(sector as usize / LEAF) {
            Some(Some(leaf)) => &leaf[sector as usize % LEAF],
            _ => &self.untouched,
        }
    }

    pub(crate) fn get_mut(&mut self, sector: u64) -> &mut T {
        let at = sector as usize / LEAF;
        if self.leaves.len() <= at {
            self.leaves.resize_with(at + 1, || None);
        }
        let leaf = self.leaves[at].get_or_insert_with(|| vec![T::default(); LEAF].into());
        &mut leaf[sector as usize % LEAF]
    }

    /// All sectors of the leaves that were touched.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let leaves = (0..).zip(&self.leaves);
        let leaves = leaves.filter_map(|(at, leaf)| Some((at, leaf.as_ref()?)));
        leaves.flat_map(|(at, leaf): (u64, _)| (at * LEAF as u64..).zip(leaf.iter()))
    }
}

/// A write has fewer sectors than 2 to the power of this number.
const PLACE_BITS: u32 = 24;
/// How many sectors are allocated together.
const LEAF: usize = 128;
