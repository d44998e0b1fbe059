//! Rows of a row group in memory. The reader fills the same block again for the next row group, and keeps its
//! memory, because allocating memory for each column would take as long as decoding it.

use std::sync::Arc;

use crate::table::Table;

/// Rows of a row group, with the columns that were asked for.
pub(crate) struct Block {
    pub(crate) rows: usize,
    columns: Vec<Loaded>,
    pub(crate) scratch: Scratch,
}

/// Memory for decoded values before they are moved into a column.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) ids: Vec<u32>,
    pub(crate) levels: Vec<u32>,
    pub(crate) definitions: Vec<i16>,
}

/// A column in memory. A column without nulls has no levels, and a column of only nulls has neither levels
/// nor values.
#[derive(Default)]
pub(crate) struct Loaded {
    is_loaded: bool,
    /// Whether only the values of the requested rows were read.
    pub(crate) is_part: bool,
    pub(crate) ints: Vec<i64>,
    pub(crate) ids: Vec<u32>,
    pub(crate) texts: Vec<Arc<str>>,
    /// How many distinct numbers the column has; 0 if that is not known.
    pub(crate) distinct: usize,
    /// Whether each row has a value.
    pub(crate) levels: Vec<bool>,
}

impl Block {
    pub(crate) fn new(table: &Table) -> Block {
        Block {
            rows: 0,
            columns: table.columns.iter().map(|_| Loaded::default()).collect(),
            scratch: Scratch::default(),
        }
    }

    /// Forgets the block's columns. From now on, the block has this many rows.
    pub(crate) fn begin(&mut self, rows: usize) {
        self.rows = rows;
        for column in &mut self.columns {
            column.is_loaded = false;
        }
    }

    /// Forgets the columns that have only some of the rows.
    pub(crate) fn forget_parts(&mut self) {
        for column in &mut self.columns {
            column.is_loaded &= !column.is_part;
        }
    }

    /// An empty column to be filled, and memory for decoding it; `None` if the block already has that column.
    pub(crate) fn fill(&mut self, column: usize) -> Option<(&mut Loaded, &mut Scratch)> {
        let column = &mut self.columns[column];
        if column.is_loaded {
            return None;
        }
        (column.is_loaded, column.is_part) = (true, false);
        column.ints.clear();
        column.ids.clear();
        column.texts.clear();
        column.distinct = 0;
        column.levels.clear();
        Some((column, &mut self.scratch))
    }

    /// Whether the block has this column, and the column has, or may have, more than one distinct number.
    pub(crate) fn has_two(&self, column: usize) -> bool {
        self.column(column)
            .is_some_and(|column| column.distinct != 1)
    }

    /// Whether the block has this column, and the column has both nulls and values.
    pub(crate) fn has_nulls(&self, column: usize) -> bool {
        self.column(column)
            .is_some_and(|column| !column.levels.is_empty())
    }

    /// The number in a row; `None` if it is null or the block does not have the column.
    pub(crate) fn int(&self, column: usize, row: usize) -> Option<i64> {
        let column = self.column(column)?;
        let value = column.ints.get(row)?;
        column.is_value(row).then_some(*value)
    }

    /// The numbers of all rows of a column without nulls; empty if the block does not have the column.
    pub(crate) fn ints(&self, column: usize) -> &[i64] {
        self.column(column).map_or(&[], |column| &column.ints)
    }

    /// The text in a row; `None` if it is null or the block does not have the column.
    pub(crate) fn text(&self, column: usize, row: usize) -> Option<&str> {
        self.name(column, row).map(AsRef::as_ref)
    }

    /// The text in a row, as an [`Arc`] that the rows of a block share.
    pub(crate) fn name(&self, column: usize, row: usize) -> Option<&Arc<str>> {
        let id = self.text_id(column, row)?;
        self.column(column)?.texts.get(id as usize)
    }

    /// The index of a string among the distinct strings of its column in this block.
    pub(crate) fn text_id(&self, column: usize, row: usize) -> Option<u32> {
        let column = self.column(column)?;
        let id = column.ids.get(row)?;
        column.is_value(row).then_some(*id)
    }

    /// A column of strings; `None` if the block does not have the column.
    pub(crate) fn texts(&self, column: usize) -> Option<Texts<'_>> {
        self.column(column).map(Texts)
    }

    fn column(&self, column: usize) -> Option<&Loaded> {
        self.columns.get(column).filter(|column| column.is_loaded)
    }
}

/// The strings of a column, by index.
pub(crate) struct Texts<'a>(&'a Loaded);

impl<'a> Texts<'a> {
    /// The index of each row's string, if no row is null.
    pub(crate) fn ids(&self) -> Option<&'a [u32]> {
        (!self.has_nulls()).then_some(&self.0.ids)
    }

    /// Whether any row is null. A file can list strings although all rows are null.
    fn has_nulls(&self) -> bool {
        self.0.ids.is_empty() || !self.0.levels.is_empty()
    }

    /// The index of a row's text, or the index that stands for null.
    pub(crate) fn id(&self, row: usize) -> u32 {
        let null = self.0.texts.len() as u32;
        let id = self.0.ids.get(row).copied();
        id.filter(|_| self.0.is_value(row)).unwrap_or(null)
    }

    /// How many different indices there can be, including the index for null.
    pub(crate) fn distinct(&self) -> usize {
        let texts = self.0.texts.len();
        texts + usize::from(texts > 0 && self.has_nulls())
    }

    /// The index of a text, if the block has the text.
    pub(crate) fn id_of(&self, text: &str) -> Option<u32> {
        let place = self.0.texts.iter().position(|own| **own == *text);
        place.map(|place| place as u32)
    }

    /// All distinct strings.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'a str> {
        self.0.texts.iter().map(AsRef::as_ref)
    }
}

impl Loaded {
    fn is_value(&self, row: usize) -> bool {
        self.levels.get(row).copied().unwrap_or(true)
    }

    /// Notes which rows have a value. Returns the number of rows with a value.
    pub(crate) fn set_levels(&mut self, is_value: impl Iterator<Item = bool>) -> usize {
        self.levels.extend(is_value);
        let values = self.levels.iter().filter(|is_value| **is_value).count();
        if values == self.levels.len() || values == 0 {
            self.levels.clear();
        }
        values
    }

    /// Moves the values of a column to their rows. A null's place then has an arbitrary value.
    pub(crate) fn spread(&mut self) {
        spread(&mut self.ints, &self.levels);
        spread(&mut self.ids, &self.levels);
    }
}

/// Moves each value to its row, from the last row to the first.
fn spread<T: Copy + Default>(values: &mut Vec<T>, levels: &[bool]) {
    let mut next = values.len();
    if next == 0 || next >= levels.len() {
        return;
    }
    values.resize(levels.len(), T::default());
    for (row, is_value) in levels.iter().enumerate().rev() {
        if *is_value && next > 0 {
            next -= 1;
            values[row] = values[next];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn values_move_to_the_rows_that_have_one() {
        let mut values = vec![1, 2, 3];
        let levels = [false, true, false, true, true, false];
        spread(&mut values, &levels);
        let there: Vec<i32> = (0..6)
            .filter(|row| levels[*row])
            .map(|row| values[row])
            .collect();
        assert_eq!((values.len(), there), (6, vec![1, 2, 3]));
    }
}
