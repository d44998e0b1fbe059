//! Rows that wait to be written to a file, column by column.

use std::collections::HashMap;

use crate::table::{Cell, Table};

/// One row group: a table's rows that wait to be written. Once its columns have grown, a batch allocates
/// memory only for new names.
pub(crate) struct Batch {
    pub(crate) table: &'static Table,
    pub(crate) columns: Vec<Values>,
    rows: usize,
}

/// The values of a column. A null has a level but no value.
#[derive(Default)]
pub(crate) struct Values {
    /// The values of a column of numbers.
    pub(crate) ints: Vec<i64>,
    /// In a column of strings: for each value, the index of its string in `texts`.
    pub(crate) ids: Vec<u32>,
    pub(crate) texts: Texts,
    /// For each row, 1 for a value or 0 for null; unused in columns without nulls.
    pub(crate) levels: Vec<i16>,
}

/// The distinct strings of a column.
#[derive(Default)]
pub(crate) struct Texts {
    ids: HashMap<Box<str>, u32, foldhash::fast::RandomState>,
    pub(crate) all: Vec<Box<str>>,
}

impl Batch {
    pub(crate) fn new(table: &'static Table) -> Batch {
        Batch {
            table,
            columns: table.columns.iter().map(|_| Values::default()).collect(),
            rows: 0,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Empties the batch, and keeps its memory.
    pub(crate) fn clear(&mut self) {
        for column in &mut self.columns {
            column.ints.clear();
            column.ids.clear();
            column.levels.clear();
            column.texts.ids.clear();
            column.texts.all.clear();
        }
        self.rows = 0;
    }

    /// Begins a row, which the caller fills from the first column to the last.
    pub(crate) fn row(&mut self) -> Row<'_> {
        self.rows += 1;
        Row {
            batch: self,
            next: 0,
        }
    }
}

/// A row that is being filled. The calls must come in the order of the columns; a debug build checks that
/// they do.
pub(crate) struct Row<'a> {
    batch: &'a mut Batch,
    next: usize,
}

impl Row<'_> {
    /// Fills the next column.
    pub(crate) fn put(&mut self, value: impl Value) {
        value.put(self);
    }

    fn next(&mut self, cell: Cell, is_optional: bool) -> &mut Values {
        let at = self.next;
        self.next += 1;
        debug_assert!(
            self.batch.table.columns[at].cell == cell
                && self.batch.table.columns[at].is_optional == is_optional,
            "{} is not filled in its turn",
            self.batch.table.columns[at].name
        );
        &mut self.batch.columns[at]
    }
}

/// A value of a column, whose type is that of the column's cells. In a column without nulls it is no `Option`.
pub(crate) trait Value {
    fn put(self, row: &mut Row<'_>);
}

impl Value for i64 {
    fn put(self, row: &mut Row<'_>) {
        row.next(Cell::Int, false).ints.push(self);
    }
}

impl Value for Option<i64> {
    fn put(self, row: &mut Row<'_>) {
        let values = row.next(Cell::Int, true);
        values.levels.push(self.is_some().into());
        values.ints.extend(self);
    }
}

impl Value for &str {
    fn put(self, row: &mut Row<'_>) {
        row.next(Cell::Text, false).push_text(self);
    }
}

impl Value for Option<&str> {
    fn put(self, row: &mut Row<'_>) {
        let values = row.next(Cell::Text, true);
        values.levels.push(self.is_some().into());
        if let Some(text) = self {
            values.push_text(text);
        }
    }
}

impl Values {
    /// Appends a text. A row often repeats the text of the previous row.
    fn push_text(&mut self, text: &str) {
        let last = self.ids.last().copied();
        let is_it = |id: &u32| *self.texts.all[*id as usize] == *text;
        let id = match last.filter(is_it) {
            Some(id) => id,
            None => self.texts.id(text),
        };
        self.ids.push(id);
    }
}

impl Texts {
    fn id(&mut self, text: &str) -> u32 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.all.len() as u32;
        self.all.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }
}
