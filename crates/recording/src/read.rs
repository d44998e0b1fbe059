//! A file that is read: its footer, and the columns of a row group that a caller asks for.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::Int64Type;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::Statistics;

use crate::error::{Flaw, RecordingError};
use crate::pages::{CheckedPages, Chunk};
use crate::seal::{self, FOOTER_MAX};
use crate::table::{Cell, GROUP_ROWS, Table};
use crate::unpack::{Unpacked, unpack};

/// A file of a table. Its footer is in memory; its rows are not.
pub(crate) struct TableFile {
    bytes: Source,
    table: &'static Table,
    meta: ParquetMetaData,
    checksums: String,
    is_verified: bool,
}

/// Where a file's bytes are.
pub(crate) enum Source {
    File(File),
    Memory(Bytes),
}

impl Source {
    fn len(&self) -> Result<u64, Flaw> {
        match self {
            Source::File(file) => file
                .metadata()
                .map(|meta| meta.len())
                .map_err(Flaw::damaged),
            Source::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// The bytes of a range that the caller has compared with the length.
    fn read(&self, start: u64, length: usize) -> Result<Bytes, Flaw> {
        match self {
            Source::File(file) => {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, start)
                    .map_err(Flaw::damaged)?;
                Ok(bytes.into())
            }
            Source::Memory(bytes) => Ok(bytes.slice(start as usize..start as usize + length)),
        }
    }
}

impl TableFile {
    /// Opens a file of this table.
    pub(crate) fn open(path: &Path, table: &'static Table) -> Result<TableFile, RecordingError> {
        let file = File::open(path).map_err(RecordingError::io(path))?;
        TableFile::parse(Source::File(file), table, true).map_err(|flaw| flaw.of(path))
    }

    /// Reads a footer. Without verification, checksums are not compared: then a fuzzer reaches the decoder.
    pub(crate) fn parse(
        bytes: Source,
        table: &'static Table,
        is_verified: bool,
    ) -> Result<TableFile, Flaw> {
        let length = bytes.len()?;
        let footer = footer(&bytes, length)?;
        let meta = unpanicked(|| {
            let thrift = &footer[..footer.len() - TAIL];
            Ok(ParquetMetaDataReader::decode_metadata(thrift)?)
        });
        let meta = meta?;
        // A file of another program has no checksum.
        let checksums = seal::checksums_of(&meta, table)?;
        if is_verified && !seal::is_signed(&footer) {
            return Err(Flaw::damaged("its footer has changed"));
        }
        check_schema(&meta, table)?;
        for group in meta.row_groups() {
            check_group(group, table, length)?;
        }
        Ok(TableFile {
            bytes,
            table,
            meta,
            checksums,
            is_verified,
        })
    }

    /// The name of the host that made it.
    pub(crate) fn host(&self) -> Option<String> {
        seal::host_of(&self.meta)
    }

    /// The number of row groups.
    pub(crate) fn groups(&self) -> usize {
        self.meta.num_row_groups()
    }

    /// The rows of a row group.
    pub(crate) fn rows(&self, group: usize) -> usize {
        self.meta.row_group(group).num_rows() as usize
    }

    /// The lowest and the highest value of a column in a row group, if the file says so.
    pub(crate) fn bounds(&self, group: usize, column: usize) -> Option<(i64, i64)> {
        match self.meta.row_group(group).column(column).statistics()? {
            Statistics::Int64(bounds) => Some((*bounds.min_opt()?, *bounds.max_opt()?)),
            _ => None,
        }
    }

    /// Adds columns of a row group to a block.
    pub(crate) fn load(
        &self,
        group: usize,
        columns: &[usize],
        block: &mut Block,
    ) -> Result<(), Flaw> {
        for &column in columns {
            if block.columns[column].is_none() {
                let loaded = unpanicked(|| self.column(group, column))?;
                block.columns[column] = Some(loaded);
            }
        }
        Ok(())
    }

    /// The bytes of each column in all row groups, and the rows of all.
    #[cfg(test)]
    pub(crate) fn column_bytes(&self) -> (Vec<u64>, usize) {
        let mut sizes = vec![0; self.table.columns.len()];
        for group in self.meta.row_groups() {
            for (sum, column) in sizes.iter_mut().zip(group.columns()) {
                *sum += column.compressed_size() as u64;
            }
        }
        (
            sizes,
            (0..self.groups()).map(|group| self.rows(group)).sum(),
        )
    }

    /// A block without columns.
    pub(crate) fn block(&self, group: usize) -> Block {
        Block {
            rows: self.rows(group),
            columns: self.table.columns.iter().map(|_| None).collect(),
        }
    }

    fn column(&self, group: usize, column: usize) -> Result<Loaded, Flaw> {
        let rows = self.rows(group);
        let chunk = self.meta.row_group(group).column(column);
        let place =
            seal::place(chunk, u64::MAX).ok_or_else(|| Flaw::damaged("a column is outside"))?;
        let start = place.start as u64;
        let bytes = self.bytes.read(start, place.len())?;
        let name = self.table.columns[column].name;
        let index = group * self.table.columns.len() + column;
        let sum = seal::checksum_of(&self.checksums, index);
        if self.is_verified && sum != Some(seal::checksum(&bytes).as_str()) {
            return Err(Flaw::damaged(format!("'{name}' has changed")));
        }
        let chunk_reader = Arc::new(Chunk { start, bytes });
        let pages = SerializedPageReader::new(chunk_reader, chunk, rows, None)?;
        let cell = self.table.columns[column].cell;
        let mut pages = CheckedPages {
            pages,
            cell,
            rows_left: rows,
        };
        let column = &self.table.columns[column];
        if column.is_named {
            let unpacked = unpack(&mut pages, rows, column.is_optional)?;
            return Loaded::named(unpacked, column.cell);
        }
        let description = chunk.column_descr_ptr();
        let mut reader = ColumnReaderImpl::<Int64Type>::new(description, Box::new(pages));
        let (values, levels) = values(&mut reader, rows)?;
        Ok(Loaded::ints(values, &levels))
    }
}

/// The values of all rows, and for each row 1 for a value or 0 for null.
fn values(
    reader: &mut ColumnReaderImpl<Int64Type>,
    rows: usize,
) -> Result<(Vec<i64>, Vec<i16>), Flaw> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut got = 0;
    while got < rows {
        let (records, _, _) =
            reader.read_records(rows - got, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(Flaw::damaged(format!("a column has {got} of {rows} rows")));
        }
        got += records;
    }
    let count = match levels.is_empty() {
        true => rows,
        false => levels.iter().filter(|level| **level == 1).count(),
    };
    match count == values.len() {
        true => Ok((values, levels)),
        false => Err(Flaw::damaged("a column lacks values")),
    }
}

/// The footer with its tail.
fn footer(bytes: &Source, length: u64) -> Result<Bytes, Flaw> {
    let start = length.checked_sub(TAIL as u64).ok_or(Flaw::Foreign)?;
    let tail = bytes.read(start, TAIL)?;
    // A file that was cut has no magic number at its end, but still has one at its beginning.
    let Some(footer) = seal::footer_length(&tail) else {
        return Err(match bytes.read(0, 4)?.as_ref() == seal::MAGIC {
            true => Flaw::damaged("its end is missing"),
            false => Flaw::Foreign,
        });
    };
    match length.checked_sub((footer + TAIL) as u64) {
        Some(start) if footer <= FOOTER_MAX => bytes.read(start, footer + TAIL),
        _ => Err(Flaw::damaged(format!("its footer claims {footer} bytes"))),
    }
}

fn check_schema(meta: &ParquetMetaData, table: &Table) -> Result<(), Flaw> {
    let expected = table.schema()?;
    let schema = meta.file_metadata().schema_descr();
    match schema.root_schema().get_fields() == expected.get_fields() {
        true => Ok(()),
        false => Err(Flaw::damaged("it has other columns than its format")),
    }
}

/// Checks what the decoder and the loader take on trust.
fn check_group(group: &RowGroupMetaData, table: &Table, length: u64) -> Result<(), Flaw> {
    let rows = group.num_rows();
    if !(0..=GROUP_ROWS as i64).contains(&rows) || group.num_columns() != table.columns.len() {
        return Err(Flaw::damaged(format!("a row group claims {rows} rows")));
    }
    for column in group.columns() {
        if seal::place(column, length).is_none() || column.num_values() != rows {
            return Err(Flaw::damaged("a column is outside"));
        }
    }
    Ok(())
}

/// Runs the decoder on bytes of a stranger. It has assertions that such bytes can reach.
fn unpanicked<T>(decode: impl FnOnce() -> Result<T, Flaw>) -> Result<T, Flaw> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(Flaw::damaged("its bytes are not Parquet")))
}

/// The length of the footer and `PAR1`.
const TAIL: usize = 8;

/// Rows of a row group, with the columns that were asked for.
pub struct Block {
    pub(crate) rows: usize,
    columns: Vec<Option<Loaded>>,
}

/// A column in memory. If nothing is null there are no levels, and if all is null there is nothing.
#[derive(Default)]
struct Loaded {
    ints: Vec<i64>,
    ids: Vec<u32>,
    texts: Vec<Arc<str>>,
    levels: Vec<bool>,
}

impl Block {
    /// A number; nothing if it is null or its column was not asked for.
    pub fn int(&self, column: usize, row: usize) -> Option<i64> {
        let column = self.columns.get(column)?.as_ref()?;
        let value = column.ints.get(row)?;
        column.is_value(row).then_some(*value)
    }

    /// A text; nothing if it is null or its column was not asked for.
    pub fn text(&self, column: usize, row: usize) -> Option<&str> {
        self.name(column, row).map(AsRef::as_ref)
    }

    /// The same text, which the rows of a block share.
    pub(crate) fn name(&self, column: usize, row: usize) -> Option<&Arc<str>> {
        let id = self.text_id(column, row)?;
        let column = self.columns.get(column)?.as_ref()?;
        column.texts.get(id as usize)
    }

    /// A column of texts; nothing if it was not asked for.
    pub(crate) fn texts(&self, column: usize) -> Option<Texts<'_>> {
        self.columns.get(column)?.as_ref().map(Texts)
    }

    /// The number of a text among the texts of its column in this block.
    pub fn text_id(&self, column: usize, row: usize) -> Option<u32> {
        let column = self.columns.get(column)?.as_ref()?;
        let id = column.ids.get(row)?;
        column.is_value(row).then_some(*id)
    }
}

/// The texts of a column, by numbers.
pub(crate) struct Texts<'a>(&'a Loaded);

impl Texts<'_> {
    /// The number of a row's text, or of null.
    pub(crate) fn id(&self, row: usize) -> u32 {
        let null = self.0.texts.len() as u32;
        let id = self.0.ids.get(row).copied();
        id.filter(|_| self.0.is_value(row)).unwrap_or(null)
    }

    /// How many different numbers there can be.
    pub(crate) fn distinct(&self) -> usize {
        let texts = self.0.texts.len();
        let has_nulls = texts > 0 && !self.0.levels.is_empty();
        texts + usize::from(has_nulls)
    }
}

impl Loaded {
    fn is_value(&self, row: usize) -> bool {
        self.levels.get(row).copied().unwrap_or(true)
    }

    fn ints(values: Vec<i64>, levels: &[i16]) -> Loaded {
        let (ints, levels) = spread(values, levels);
        Loaded {
            ints,
            levels,
            ..Loaded::default()
        }
    }

    fn named(mut unpacked: Unpacked, cell: Cell) -> Result<Loaded, Flaw> {
        let ids = std::mem::take(&mut unpacked.ids);
        let (ids, levels) = spread(ids, &unpacked.levels);
        let loaded = match cell {
            Cell::Int => {
                let names = unpacked.ints()?;
                let int = |id: &u32| names.get(*id as usize).copied().unwrap_or_default();
                Loaded {
                    ints: ids.iter().map(int).collect(),
                    ..Loaded::default()
                }
            }
            Cell::Text => Loaded {
                texts: unpacked.texts()?,
                ids,
                ..Loaded::default()
            },
        };
        Ok(Loaded { levels, ..loaded })
    }
}

/// One value per row, with anything in the place of a null.
fn spread<T: Copy + Default>(values: Vec<T>, levels: &[i16]) -> (Vec<T>, Vec<bool>) {
    if values.is_empty() || values.len() >= levels.len() {
        return (values, Vec::new());
    }
    let mut values = values.into_iter();
    let is_value = levels.iter().map(|level| *level == 1);
    let spread = is_value.clone().map(|is_value| {
        is_value
            .then(|| values.next())
            .flatten()
            .unwrap_or_default()
    });
    (spread.collect(), is_value.collect())
}
