//! Shapes: I/Os with the same names, such as device and process, have the same shape, and differ in numbers
//! only. A question looks at the names once for each shape.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::block::Block;
use crate::ios::{NAMES, Recorded, column, set_numbers};

/// The shapes of the rows of a block: rows of a shape share their names.
pub(crate) struct Shapes {
    /// The shape of each row that is asked for.
    of_rows: Vec<u32>,
    /// How many there are.
    count: usize,
}

impl Shapes {
    /// The shapes of these rows of a block.
    pub(crate) fn of(block: &Block, rows: &[usize]) -> Shapes {
        let mut shapes = Shapes {
            of_rows: vec![0; rows.len()],
            count: 1,
        };
        for column in NAMES {
            if let Some(texts) = block.texts(column).filter(|texts| texts.distinct() > 1) {
                shapes.refine(texts.distinct(), rows.iter().map(|row| texts.id(*row)));
            }
        }
        if block.has(column::FUA) {
            let is_fua = |row: &usize| u32::from(block.int(column::FUA, *row) == Some(1));
            shapes.refine(2, rows.iter().map(is_fua));
        }
        // A zio is known by the work of its store.
        if block.has(column::STORE) {
            let is_zio = |row: &usize| u32::from(block.int(column::STORE, *row).is_some());
            shapes.refine(2, rows.iter().map(is_zio));
        }
        shapes
    }

    /// Splits each shape by the ids of its rows, which are all below `distinct`.
    fn refine(&mut self, distinct: usize, ids: impl Iterator<Item = u32>) {
        let pairs = self.count * distinct;
        let each = self.of_rows.iter_mut().zip(ids);
        if pairs > TABLE_MAX {
            let mut known: HashMap<(u32, u32), u32, RandomState> = HashMap::default();
            for (shape, id) in each {
                let next = known.len() as u32;
                *shape = *known.entry((*shape, id)).or_insert(next);
            }
            self.count = known.len();
            return;
        }
        let mut known = vec![u32::MAX; pairs];
        let mut count = 0;
        for (shape, id) in each {
            let place = &mut known[*shape as usize * distinct + id as usize];
            if *place == u32::MAX {
                *place = count;
                count += 1;
            }
            *shape = *place;
        }
        self.count = count as usize;
    }

    /// Calls for the I/O of each row, with its shape.
    pub(crate) fn each(&self, block: &Block, rows: &[usize], mut of: impl FnMut(u32, &Recorded)) {
        let mut samples: Vec<Option<Recorded>> = vec![None; self.count];
        for (row, shape) in rows.iter().zip(&self.of_rows) {
            let sample = &mut samples[*shape as usize];
            match sample {
                Some(one) => set_numbers(block, *row, &mut one.io),
                None => *sample = Some(Recorded::of_row(block, *row)),
            }
            if let Some(one) = sample {
                of(*shape, one);
            }
        }
    }

    /// Calls for the first I/O of each shape, with the number of all of them and the bytes that they moved.
    pub(crate) fn counts(
        &self,
        block: &Block,
        rows: &[usize],
        mut of: impl FnMut(&Recorded, u64, u64),
    ) {
        let mut sums = vec![(0, 0, 0); self.count];
        for (row, shape) in rows.iter().zip(&self.of_rows) {
            let (first, count, bytes) = &mut sums[*shape as usize];
            if *count == 0 {
                *first = *row;
            }
            *count += 1;
            let length = block.int(column::BYTES, *row).unwrap_or_default() as u64;
            *bytes = u64::saturating_add(*bytes, length);
        }
        for (first, count, bytes) in sums {
            let first = Recorded::of_row(block, first);
            let bytes = if first.io.has_moved() { bytes } else { 0 };
            of(&first, count, bytes);
        }
    }
}

/// A table with a place for each pair of a shape and an id takes at most 256 KiB.
const TABLE_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::Shapes;

    /// Whether two rows have the same shape must depend on their ids alone, with and without the table.
    #[test]
    fn rows_share_a_shape_if_they_share_all_ids() {
        for distinct in [3, 1 << 17] {
            let ids = [[0, 2, 0, 0, 1, 2], [1, 1, 1, 0, 1, 1]];
            let mut shapes = Shapes {
                of_rows: vec![0; 6],
                count: 1,
            };
            for ids in ids {
                shapes.refine(distinct, ids.into_iter());
            }
            assert_eq!((shapes.of_rows, shapes.count), (vec![0, 1, 0, 2, 3, 1], 4));
        }
    }
}
