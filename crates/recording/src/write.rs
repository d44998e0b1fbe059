//! A file that is being made. It is made in memory, because no reader may see an incomplete file.

use std::sync::Arc;

use parquet::column::writer::ColumnWriter;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;

use crate::batch::{Batch, Values};
use crate::named::pack;
use crate::seal::{self, Label};
use crate::table::{Table, VERSION};

/// The bytes of a file of a table, up to its footer.
pub(crate) struct Draft {
    writer: SerializedFileWriter<Vec<u8>>,
    format: u64,
}

impl Draft {
    pub(crate) fn new(table: &'static Table) -> Result<Draft, ParquetError> {
        Draft::of_format(VERSION, table)
    }

    /// A draft of this format, which has the columns of that format only.
    pub(crate) fn of_format(format: u64, table: &'static Table) -> Result<Draft, ParquetError> {
        let schema = table.schema(table.columns_in(format))?;
        let properties = Arc::new(table.properties()?);
        Ok(Draft {
            writer: SerializedFileWriter::new(Vec::new(), schema, properties)?,
            format,
        })
    }

    /// Adds a row group.
    pub(crate) fn add(&mut self, batch: &Batch) -> Result<(), ParquetError> {
        let schema = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        let columns = batch.table.columns.iter().zip(&batch.columns);
        for ((column, values), description) in columns.zip(schema) {
            if column.is_named {
                let (bytes, close) = pack(column, description, values, batch.rows())?;
                group.append_column(&bytes, close)?;
            } else if let Some(mut writer) = group.next_column()? {
                write_column(writer.untyped(), values)?;
                writer.close()?;
            }
        }
        group.close()?;
        Ok(())
    }

    /// The bytes of the whole file.
    pub(crate) fn seal(mut self, label: &Label) -> Result<Vec<u8>, ParquetError> {
        self.writer.flush()?;
        let checksums = seal::checksums(self.writer.inner(), self.writer.flushed_row_groups());
        for (key, value) in label.pairs(self.format, &checksums) {
            self.writer
                .append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        let mut bytes = self.writer.into_inner()?;
        seal::sign(&mut bytes);
        Ok(bytes)
    }
}

fn write_column(column: &mut ColumnWriter<'_>, values: &Values) -> Result<(), ParquetError> {
    let levels = (!values.levels.is_empty()).then_some(values.levels.as_slice());
    if let ColumnWriter::Int64ColumnWriter(column) = column {
        column.write_batch(&values.ints, levels, None)?;
    }
    Ok(())
}
