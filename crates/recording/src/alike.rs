//! Shapes: I/Os of one shape have the same names, such as device and process, and differ only in their
//! numbers. A query checks the names only once for each shape.

use std::collections::HashMap;

use dashpot_observe::Fact;
use foldhash::fast::RandomState;

use crate::block::Block;
use crate::ios::{IOS, Recorded, column, set_numbers};
use crate::table::Cell;

/// The shapes of the rows of a block. Rows of one shape have the same names. The struct keeps its memory for
/// the next block.
#[derive(Default)]
pub(crate) struct Shapes {
    /// The shape of each row that the caller asks for.
    of_rows: Vec<u32>,
    /// The number of shapes.
    count: usize,
    /// For each code, the number of its shape. A code is the provisional number of a shape. Only
    /// [`Shapes::number`], which numbers the shapes, uses this list.
    known: Vec<u32>,
}

impl Shapes {
    /// Finds the shapes of these rows of a block, numbered in the order of their first rows.
    pub(crate) fn find(&mut self, block: &Block, rows: &[usize]) {
        self.find_codes(block, rows);
        self.number();
    }

    /// Finds the shapes of these rows of a block, but does not number them: each row gets a code below
    /// `count`, and many codes may have no row.
    fn find_codes(&mut self, block: &Block, rows: &[usize]) {
        self.of_rows.clear();
        self.count = 1;
        let is_all = rows.len() == block.rows;
        let columns = IOS.columns.iter().enumerate();
        for (column, _) in columns.filter(|(_, column)| column.cell == Cell::Text) {
            let Some(texts) = block.texts(column).filter(|texts| texts.distinct() > 1) else {
                continue;
            };
            match texts.ids() {
                Some(ids) if is_all => self.refine(texts.distinct(), ids.iter().copied()),
                Some(ids) => self.refine(texts.distinct(), rows.iter().map(|row| ids[*row])),
                None => self.refine(texts.distinct(), rows.iter().map(|row| texts.id(*row))),
            }
        }
        if block.has_two(column::FUA) {
            let is_fua = |row: &usize| u32::from(block.int(column::FUA, *row) == Some(1));
            self.refine(2, rows.iter().map(is_fua));
        }
        let flags = Fact::ALL.iter();
        for flag in flags.filter(|fact| fact.is_name() && !fact.is_word()) {
            let column = column::of(*flag);
            if block.has_two(column) || block.has_nulls(column) {
                let state = |row: &usize| match block.int(column, *row) {
                    None => 0,
                    Some(0) => 1,
                    Some(_) => 2,
                };
                self.refine(3, rows.iter().map(state));
            }
        }
        // Nulls in these columns show the kind of the I/O, so the rows of one shape must have the same nulls.
        // Only zios have a wait for a throttle. A zio without a time in the store is a program's call that
        // dashpot held but did not carry out. A thread that an older dashpot recorded has no id of its own.
        for column in [column::THROTTLE, column::STORE, column::PID, column::TID] {
            if block.has_nulls(column) {
                let is_known = |row: &usize| u32::from(block.int(column, *row).is_some());
                self.refine(2, rows.iter().map(is_known));
            }
        }
        self.of_rows.resize(rows.len(), 0);
    }

    /// Splits each shape into a shape for each id, so that rows of one shape have the same id. All ids are
    /// below `distinct`. Many of the new shapes may have no row, until [`Shapes::number`] numbers
    /// those that have one.
    fn refine(&mut self, distinct: usize, ids: impl Iterator<Item = u32>) {
        if self.of_rows.is_empty() {
            self.of_rows.extend(ids);
            self.count = distinct;
            return;
        }
        if self.count * distinct > CODES_MAX {
            self.number();
        }
        let each = self.of_rows.iter_mut().zip(ids);
        let pairs = self.count * distinct;
        if pairs > CODES_MAX {
            let mut known: HashMap<(u32, u32), u32, RandomState> = HashMap::default();
            for (shape, id) in each {
                let next = known.len() as u32;
                *shape = *known.entry((*shape, id)).or_insert(next);
            }
            self.count = known.len();
            return;
        }
        let distinct = distinct as u32;
        for (shape, id) in each {
            *shape = *shape * distinct + id;
        }
        self.count = pairs;
    }

    /// Replaces codes by numbers from 0 on, in the order of their first rows.
    fn number(&mut self) {
        self.known.clear();
        self.known.resize(self.count, u32::MAX);
        let mut count = 0;
        for shape in &mut self.of_rows {
            let place = &mut self.known[*shape as usize];
            if *place == u32::MAX {
                *place = count;
                count += 1;
            }
            *shape = *place;
        }
        self.count = count as usize;
    }

    /// Calls a function for each row, with the row's shape and its I/O.
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

    /// Calls a function for each row, with the row's shape, the first I/O of that shape, and the bytes and
    /// the time at the device of the row's own I/O.
    pub(crate) fn times(
        &self,
        block: &Block,
        rows: &[usize],
        mut of: impl FnMut(u32, &Recorded, u64, u64),
    ) {
        let firsts = self.firsts(block, rows);
        let (lengths, latencies) = (block.ints(column::BYTES), block.ints(column::LATENCY));
        for (row, shape) in rows.iter().zip(&self.of_rows) {
            let first = &firsts[*shape as usize];
            let bytes = if first.io.has_moved() {
                lengths[*row]
            } else {
                0
            };
            of(*shape, first, bytes as u64, latencies[*row] as u64);
        }
    }

    /// The first I/O of each shape.
    fn firsts(&self, block: &Block, rows: &[usize]) -> Vec<Recorded> {
        let mut firsts = Vec::with_capacity(self.count);
        for (row, shape) in rows.iter().zip(&self.of_rows) {
            if *shape as usize == firsts.len() {
                firsts.push(Recorded::of_row(block, *row));
            }
        }
        firsts
    }

    /// Finds the shapes of these rows. Calls a function for the first I/O of each shape, with the number of
    /// I/Os of the shape and the number of bytes that they moved together.
    pub(crate) fn counts(
        &mut self,
        block: &Block,
        rows: &[usize],
        mut of: impl FnMut(&Recorded, u64, u64),
    ) {
        self.find_codes(block, rows);
        let mut sums = vec![Sums::default(); self.count];
        let mut firsts = Vec::new();
        let lengths = block.ints(column::BYTES);
        let mut add = |row: usize, code: u32, length: i64| {
            let sums = &mut sums[code as usize];
            if sums.counts == [0, 0] {
                firsts.push((code, row));
            }
            sums.add(row % 2, length as u64);
        };
        let codes = self.of_rows.iter();
        if rows.len() == block.rows {
            let each = codes.zip(lengths).enumerate();
            each.for_each(|(row, (code, length))| add(row, *code, *length));
        } else {
            let each = codes.zip(rows);
            each.for_each(|(code, row)| add(*row, *code, lengths[*row]));
        }
        for (code, row) in firsts {
            let first = Recorded::of_row(block, row);
            let Sums { counts, bytes } = sums[code as usize];
            let moved = bytes[0].saturating_add(bytes[1]);
            let bytes = if first.io.has_moved() { moved } else { 0 };
            of(&first, counts[0] + counts[1], bytes);
        }
    }
}

/// The number and the bytes of the I/Os of a shape, in even and in odd rows. Rows that follow one another
/// often have one shape, and a CPU adds to two numbers by turns faster than to one.
#[derive(Clone, Copy, Default)]
struct Sums {
    counts: [u64; 2],
    bytes: [u64; 2],
}

impl Sums {
    fn add(&mut self, half: usize, bytes: u64) {
        self.counts[half] += 1;
        self.bytes[half] = self.bytes[half].saturating_add(bytes);
    }
}

/// The maximum number of codes for shapes that are not numbered yet. A table of this many codes takes 64 KiB.
const CODES_MAX: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::Shapes;
    use crate::block::Block;
    use crate::ios::{IOS, column};

    /// A stranger's file can list strings for a column whose rows are all null.
    #[test]
    fn strings_that_no_row_has_make_no_shapes() {
        let mut block = Block::new(&IOS);
        block.begin(3);
        if let Some((client, _)) = block.fill(column::CLIENT) {
            client.texts = vec!["a".into(), "b".into()];
        }
        if let Some((device, _)) = block.fill(column::DEVICE) {
            device.texts = vec!["c".into(), "d".into()];
            device.ids = vec![0, 1, 0];
        }
        for (rows, expected) in [(&[0, 1, 2][..], vec![0, 1, 0]), (&[1, 2], vec![0, 1])] {
            let mut shapes = Shapes::default();
            shapes.find(&block, rows);
            assert_eq!((shapes.of_rows, shapes.count), (expected, 2));
        }
    }

    /// Two rows must have the same shape if, and only if, all of their ids are equal, with and without the
    /// table of codes.
    #[test]
    fn rows_share_a_shape_if_they_share_all_ids() {
        for distinct in [3, 1 << 13, 1 << 17] {
            let ids = [[0, 2, 0, 0, 1, 2], [1, 1, 1, 0, 1, 1]];
            let mut shapes = Shapes {
                of_rows: vec![0; 6],
                count: 1,
                known: Vec::new(),
            };
            for ids in ids {
                shapes.refine(distinct, ids.into_iter());
            }
            shapes.number();
            assert_eq!((shapes.of_rows, shapes.count), (vec![0, 1, 0, 2, 3, 1], 4));
        }
    }
}
