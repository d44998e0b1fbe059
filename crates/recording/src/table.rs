//! The tables of a recording: their columns, and how a Parquet file packs the columns.
//!
//! All columns are signed 64-bit integers or UTF-8, because some engines refuse unsigned integers or times in
//! nanoseconds. Unsigned numbers are stored as signed numbers with the same bits.

use std::sync::Arc;

use dashpot_observe::Fact;
use parquet::basic::{ConvertedType, Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::properties::DeltaBinaryPackedEncoderOptions;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

/// The format that this version writes. In format 1, `latency_ns` was the time from the beginning to the end;
/// format 2 had no classes, txgs and inodes; format 3 had no layer `kernel`; until format 4, the process of an
/// I/O was its thread.
pub(crate) const VERSION: u64 = 5;
/// The oldest format that this version reads.
pub(crate) const OLDEST: u64 = 3;

/// The maximum number of rows in a row group.
pub(crate) const GROUP_ROWS: usize = 1 << 15;

/// Defines the columns of a table, and for each column a constant with its index; and if each column has a value,
/// the function that fills a row.
macro_rules! columns {
    ($table:ident, $fill:ident($of:ident: $type:ty): $($(#[$doc:meta])* $name:ident = $column:expr, $value:expr;)+) => {
        columns! { $table: $($(#[$doc])* $name = $column;)+ }

        pub(crate) fn $fill(row: &mut Row<'_>, $of: $type) {
            $(row.put($value);)+
        }
    };
    ($table:ident: $($(#[$doc:meta])* $name:ident = $column:expr;)+) => {
        #[allow(clippy::upper_case_acronyms, non_camel_case_types)]
        enum ColumnIndex { $($name),+ }
        $($(#[$doc])* #[allow(unreachable_pub)] pub const $name: usize = ColumnIndex::$name as usize;)+
        pub(crate) const $table: &[Column] = &[$($column),+];
    };
}

pub(crate) use columns;

/// A table. All files of a table have the same columns, but for those that older formats lack.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// The table's name, which is also the name of its folder.
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub name: &'static str,
    /// The type of its cells.
    pub cell: Cell,
    /// Whether cells may be null, because not every source knows the fact.
    pub is_optional: bool,
    /// Whether the footer has the column's lowest and highest value in each row group.
    pub(crate) has_bounds: bool,
    /// Whether a row group stores each distinct value of the column once.
    pub(crate) is_named: bool,
    /// The first format that has the column.
    since: u64,
}

/// The type of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// A signed integer.
    Int,
    /// UTF-8.
    Text,
}

impl Column {
    /// A column of numbers that differ from row to row.
    pub(crate) const fn number(name: &'static str) -> Column {
        Column {
            name,
            cell: Cell::Int,
            is_optional: false,
            has_bounds: false,
            is_named: false,
            since: OLDEST,
        }
    }

    /// A column of numbers with few distinct values.
    pub(crate) const fn code(name: &'static str) -> Column {
        let mut column = Column::number(name);
        column.is_named = true;
        column
    }

    /// A column of words with few distinct values.
    pub(crate) const fn word(name: &'static str) -> Column {
        let mut column = Column::code(name);
        column.cell = Cell::Text;
        column
    }

    pub(crate) const fn of(fact: Fact) -> Column {
        let column = if fact.is_word() {
            Column::word(fact.column())
        } else {
            Column::code(fact.column())
        };
        column.optional()
    }

    /// The same column, but the footer has its lowest and its highest value in each row group.
    pub(crate) const fn bounded(mut self) -> Column {
        self.has_bounds = true;
        self
    }

    /// The same column, but its cells may be null.
    pub(crate) const fn optional(mut self) -> Column {
        self.is_optional = true;
        self
    }

    /// The same column, but only from this format on. It must come after all columns of older formats.
    pub(crate) const fn since(mut self, format: u64) -> Column {
        self.since = format;
        self
    }

    fn parquet_type(&self) -> Result<TypePtr, ParquetError> {
        let repetition = if self.is_optional {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let column = match self.cell {
            Cell::Int => Type::primitive_type_builder(self.name, PhysicalType::INT64),
            Cell::Text => Type::primitive_type_builder(self.name, PhysicalType::BYTE_ARRAY)
                .with_converted_type(ConvertedType::UTF8)
                .with_logical_type(Some(LogicalType::String)),
        };
        column.with_repetition(repetition).build().map(Arc::new)
    }
}

impl Table {
    /// How many of the columns, from the first on, a file of this format has.
    pub(crate) fn columns_in(&self, format: u64) -> usize {
        self.columns
            .partition_point(|column| column.since <= format)
    }

    /// The table's schema in Parquet's form, with this many columns.
    pub(crate) fn schema(&self, columns: usize) -> Result<TypePtr, ParquetError> {
        let columns = self.columns.iter().take(columns).map(Column::parquet_type);
        let schema = Type::group_type_builder(self.name)
            .with_fields(columns.collect::<Result<Vec<_>, _>>()?)
            .build()?;
        Ok(Arc::new(schema))
    }

    /// How a file is packed. A column with few distinct values stores each of them once. Any other column
    /// stores the differences between consecutive values. A row group has one page per column. A miniblock
    /// has 32 differences, the least that the format allows, so that a large difference widens only the few
    /// others in its miniblock.
    pub(crate) fn properties(&self) -> Result<WriterProperties, ParquetError> {
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("dashpot {}", env!("CARGO_PKG_VERSION")))
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BINARY_PACKED)
            .set_delta_binary_packed_encoder_options(DeltaBinaryPackedEncoderOptions::try_new(
                128, 4,
            )?)
            .set_data_page_row_count_limit(GROUP_ROWS)
            .set_write_batch_size(GROUP_ROWS);
        for column in self.columns.iter().filter(|column| column.has_bounds) {
            let path = ColumnPath::from(column.name);
            properties = properties.set_column_statistics_enabled(path, EnabledStatistics::Chunk);
        }
        Ok(properties.build())
    }
}
