//! Reads a file: its footer and, from a row group, the columns that a caller asks for.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Once};

use bytes::Bytes;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::Int64Type;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::Statistics;
use rustix::fs::OFlags;

use crate::block::{Block, Loaded, Scratch};
use crate::error::{Flaw, RecordingError};
use crate::pages::{CheckedPages, Chunk};
use crate::seal::{self, FOOTER_MAX};
use crate::table::{GROUP_ROWS, Table};
use crate::unpack::{WantedRows, unpack};

/// A file of a table. The file's footer is in memory, but its rows are not.
pub(crate) struct TableFile {
    bytes: Source,
    table: &'static Table,
    /// How many of the table's columns the file has, from the first on.
    columns: usize,
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

    /// The bytes of a range. The caller has checked that the range is within the file.
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
    pub(crate) fn open(path: &Path, table: &'static Table) -> Result<TableFile, RecordingError> {
        // Without NONBLOCK, opening a FIFO would wait for a writer.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = file.map_err(RecordingError::io(path))?;
        let about = file.metadata().map_err(RecordingError::io(path))?;
        if !about.is_file() {
            return Err(Flaw::damaged("it is not a regular file").of(path));
        }
        TableFile::parse(Source::File(file), table, true).map_err(|flaw| flaw.of(path))
    }

    /// Reads a footer. If `is_verified` is false, no checksums are compared, so that files that a fuzzer has
    /// changed reach the decoder.
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
        // A file of another program has no checksums, and is refused here.
        let (format, checksums) = seal::checksums_of(&meta, table)?;
        let columns = table.columns_in(format);
        if is_verified && !seal::is_signed(&footer) {
            return Err(Flaw::damaged("its footer has changed"));
        }
        check_schema(&meta, table, columns)?;
        for group in meta.row_groups() {
            check_group(group, length)?;
        }
        Ok(TableFile {
            bytes,
            table,
            columns,
            meta,
            checksums,
            is_verified,
        })
    }

    /// The name of the host that made the file.
    pub(crate) fn host(&self) -> Option<String> {
        seal::host_of(&self.meta)
    }

    /// The number of row groups.
    pub(crate) fn groups(&self) -> usize {
        self.meta.num_row_groups()
    }

    /// The number of rows of a row group.
    pub(crate) fn rows(&self, group: usize) -> usize {
        self.meta.row_group(group).num_rows() as usize
    }

    /// The lowest and the highest value of a column in a row group, if the file records them.
    pub(crate) fn bounds(&self, group: usize, column: usize) -> Option<(i64, i64)> {
        match self.meta.row_group(group).column(column).statistics()? {
            Statistics::Int64(bounds) => Some((*bounds.min_opt()?, *bounds.max_opt()?)),
            _ => None,
        }
    }

    /// Adds columns of a row group to a block. The caller has called [`Block::begin`] with the row group's
    /// number of rows.
    pub(crate) fn load(
        &self,
        group: usize,
        columns: &[usize],
        block: &mut Block,
    ) -> Result<(), Flaw> {
        self.load_columns(group, columns, None, block)
    }

    /// Adds columns to a block. The caller will read only these rows, which are in ascending order.
    pub(crate) fn load_rows(
        &self,
        group: usize,
        columns: &[usize],
        rows: &[usize],
        block: &mut Block,
    ) -> Result<(), Flaw> {
        let are_few = rows.len() * FEW < block.rows;
        self.load_columns(group, columns, are_few.then_some(rows), block)
    }

    fn load_columns(
        &self,
        group: usize,
        columns: &[usize],
        rows: Option<&[usize]>,
        block: &mut Block,
    ) -> Result<(), Flaw> {
        for &column in columns {
            // A column that the file lacks has no value in any row.
            if let Some((loaded, scratch)) = block.fill(column)
                && column < self.columns
            {
                unpanicked(|| self.column(group, column, rows, loaded, scratch))?;
            }
        }
        Ok(())
    }

    /// Calls a function for each row of the requested row groups, with all columns in `block`.
    pub(crate) fn each_row(
        &self,
        block: &mut Block,
        is_asked: impl Fn(usize) -> bool,
        mut row_of: impl FnMut(&Block, usize),
    ) -> Result<(), Flaw> {
        let columns: Vec<usize> = (0..self.table.columns.len()).collect();
        self.each_group(&columns, block, is_asked, |block| {
            (0..block.rows).for_each(|row| row_of(block, row));
        })
    }

    /// Calls a function for each of the requested row groups, with these columns in `block`. The other columns
    /// are not decoded, but their checksums are compared, so that a damaged file is found whichever columns
    /// the caller needs.
    pub(crate) fn each_group(
        &self,
        columns: &[usize],
        block: &mut Block,
        is_asked: impl Fn(usize) -> bool,
        mut of: impl FnMut(&Block),
    ) -> Result<(), Flaw> {
        let all = 0..self.columns;
        let others: Vec<usize> = all.filter(|column| !columns.contains(column)).collect();
        for group in (0..self.groups()).filter(|group| is_asked(*group)) {
            for column in &others {
                self.bytes_of(group, *column)?;
            }
            block.begin(self.rows(group));
            self.load(group, columns, block)?;
            of(block);
        }
        Ok(())
    }

    /// The compressed size of each column over all row groups, in bytes, and the total number of rows.
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

    /// The bytes of a column of a row group; an error if their checksum is wrong.
    fn bytes_of(&self, group: usize, column: usize) -> Result<Chunk, Flaw> {
        let chunk = self.meta.row_group(group).column(column);
        let place = seal::place(chunk, u64::MAX)
            .ok_or_else(|| Flaw::damaged("a column is outside of the file"))?;
        let start = place.start as u64;
        let bytes = self.bytes.read(start, place.len())?;
        let name = self.table.columns[column].name;
        let index = group * self.columns + column;
        let sum = seal::checksum_of(&self.checksums, index);
        if self.is_verified && sum != Some(seal::checksum(&bytes).as_str()) {
            return Err(Flaw::damaged(format!("'{name}' has changed")));
        }
        Ok(Chunk { start, bytes })
    }

    fn column(
        &self,
        group: usize,
        column: usize,
        asked: Option<&[usize]>,
        loaded: &mut Loaded,
        scratch: &mut Scratch,
    ) -> Result<(), Flaw> {
        let rows = self.rows(group);
        let chunk = self.meta.row_group(group).column(column);
        let chunk_reader = Arc::new(self.bytes_of(group, column)?);
        let pages = SerializedPageReader::new(chunk_reader, chunk, rows, None)?;
        let cell = self.table.columns[column].cell;
        let mut pages = CheckedPages {
            pages,
            cell,
            rows_left: rows,
        };
        let column = &self.table.columns[column];
        if column.is_named {
            let asked = WantedRows { rows, some: asked };
            return unpack(&mut pages, asked, column, loaded, scratch);
        }
        let description = chunk.column_descr_ptr();
        let mut reader = ColumnReaderImpl::<Int64Type>::new(description, Box::new(pages));
        values(&mut reader, rows, loaded, &mut scratch.definitions)
    }
}

/// Reads the values of all rows.
fn values(
    reader: &mut ColumnReaderImpl<Int64Type>,
    rows: usize,
    loaded: &mut Loaded,
    definitions: &mut Vec<i16>,
) -> Result<(), Flaw> {
    definitions.clear();
    let mut got = 0;
    while got < rows {
        let (records, _, _) =
            reader.read_records(rows - got, Some(definitions), None, &mut loaded.ints)?;
        if records == 0 {
            return Err(Flaw::damaged(format!("a column has {got} of {rows} rows")));
        }
        got += records;
    }
    let count = if definitions.is_empty() {
        rows
    } else {
        loaded.set_levels(definitions.iter().map(|level| *level == 1))
    };
    if count == loaded.ints.len() {
        loaded.spread();
    } else {
        return Err(Flaw::damaged("a column lacks values"));
    }
    Ok(())
}

/// The footer, including the last bytes of the file.
fn footer(bytes: &Source, length: u64) -> Result<Bytes, Flaw> {
    let start = length.checked_sub(TAIL as u64).ok_or(Flaw::Foreign)?;
    let tail = bytes.read(start, TAIL)?;
    // A file that was cut off has no magic number at its end, but still has the magic number at its
    // beginning.
    let Some(footer) = seal::footer_length(&tail) else {
        return Err(if bytes.read(0, 4)?.as_ref() == seal::MAGIC {
            Flaw::damaged("its end is missing")
        } else {
            Flaw::Foreign
        });
    };
    match length.checked_sub((footer + TAIL) as u64) {
        Some(start) if footer <= FOOTER_MAX => bytes.read(start, footer + TAIL),
        _ => Err(Flaw::damaged(format!("its footer claims {footer} bytes"))),
    }
}

fn check_schema(meta: &ParquetMetaData, table: &Table, columns: usize) -> Result<(), Flaw> {
    let expected = table.schema(columns)?;
    let schema = meta.file_metadata().schema_descr();
    if schema.root_schema().get_fields() == expected.get_fields() {
        Ok(())
    } else {
        Err(Flaw::damaged("its columns are not those of its format"))
    }
}

/// Checks the facts in a file's footer that the decoder and the loader take on trust. The decoder has already
/// compared the number of the group's columns with the schema.
fn check_group(group: &RowGroupMetaData, length: u64) -> Result<(), Flaw> {
    let rows = group.num_rows();
    if !(0..=GROUP_ROWS as i64).contains(&rows) {
        return Err(Flaw::damaged(format!("a row group claims {rows} rows")));
    }
    for column in group.columns() {
        if seal::place(column, length).is_none() || column.num_values() != rows {
            return Err(Flaw::damaged(
                "a column is outside of the file, or has a wrong number of values",
            ));
        }
    }
    Ok(())
}

/// Runs the decoder and turns a panic into an error. Anybody may have made the file, and bad bytes can
/// violate the decoder's assertions. Such a panic prints no message: the error says what the user needs.
fn unpanicked<T>(decode: impl FnOnce() -> Result<T, Flaw>) -> Result<T, Flaw> {
    SILENCING.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !DECODES.get() {
                usual(panic);
            }
        }));
    });
    let before = DECODES.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    DECODES.set(before);
    decoded.unwrap_or_else(|_| Err(Flaw::damaged("its bytes are not Parquet")))
}

/// Whether the hook that prints the messages of panics leaves out those of the decoder.
static SILENCING: Once = Once::new();

thread_local! {
    /// Whether the decoder runs in this thread.
    static DECODES: Cell<bool> = const { Cell::new(false) };
}

/// If fewer than one row in this many is needed, the reader decodes only the needed rows, one by one.
const FEW: usize = 4;
/// The size in bytes of what follows the footer, namely the footer's length and `PAR1`.
const TAIL: usize = 8;

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Flaw, unpanicked};

    const NAME: &str = "read::tests::a_panic_of_the_decoder_prints_nothing";

    /// The test runs itself again, so that it can read its own standard error.
    #[test]
    fn a_panic_of_the_decoder_prints_nothing() {
        if std::env::var_os("DASHPOT_TEST_PANICS").is_some() {
            let decoded = unpanicked(|| -> Result<(), Flaw> { panic!("a loud decoder") });
            assert!(decoded.is_err());
            return;
        }
        let again = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", NAME, "--nocapture"])
            .env("DASHPOT_TEST_PANICS", "1")
            .output()
            .expect("a run");
        let said = String::from_utf8_lossy(&again.stderr);
        assert!(again.status.success() && !said.contains("loud"), "{said}");
        assert!(String::from_utf8_lossy(&again.stdout).contains("1 passed"));
    }
}
