//! Columns with few distinct values, as Parquet packs them: one page with the values, and one page with the
//! rows' indices into the values, as runs.
//!
//! The Parquet crate's writer looks each value up in its own dictionary. The batch already knows the
//! indices of strings, and most numbers equal the number of the previous row, so packing the values here
//! halves the cost of recording an I/O.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::batch::Values;
use crate::table::{Cell, Column};

/// The distinct values of a column in the file's format, how many there are, and the index of each row's
/// value.
struct Named<'a> {
    plain: Vec<u8>,
    count: u32,
    ids: Cow<'a, [u32]>,
}

/// Packs a column, and returns its bytes and its entry in the footer.
pub(crate) fn pack(
    column: &Column,
    description: ColumnDescPtr,
    values: &Values,
    rows: usize,
) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
    let named = match column.cell {
        Cell::Int => Named::ints(&values.ints),
        Cell::Text => Named::texts(values),
    };
    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let data = ids_page(&named, &values.levels, rows);
    let has_names = named.count > 0;
    if has_names {
        write(&mut pages, names_page(named))?;
    }
    let data_offset = write(&mut pages, data)?;
    let bytes = Bytes::from(sink.into_inner()?);
    let length = bytes.len();
    let metadata = ColumnChunkMetaData::builder(description)
        .set_compression(Compression::UNCOMPRESSED)
        .set_encodings(vec![
            Encoding::PLAIN,
            Encoding::RLE,
            Encoding::RLE_DICTIONARY,
        ])
        .set_num_values(rows as i64)
        .set_total_compressed_size(length as i64)
        .set_total_uncompressed_size(length as i64)
        .set_data_page_offset(data_offset)
        .set_dictionary_page_offset(has_names.then_some(0))
        .build()?;
    let close = ColumnCloseResult {
        bytes_written: length as u64,
        rows_written: rows as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok((bytes, close))
}

impl Named<'_> {
    fn ints(ints: &[i64]) -> Named<'static> {
        let mut known: HashMap<i64, u32, foldhash::fast::RandomState> = HashMap::default();
        let (mut plain, mut ids) = (Vec::new(), Vec::with_capacity(ints.len()));
        let mut last = None;
        for int in ints {
            let id = match last {
                Some((before, id)) if before == *int => id,
                _ => {
                    let next = known.len() as u32;
                    *known.entry(*int).or_insert_with(|| {
                        plain.extend(int.to_le_bytes());
                        next
                    })
                }
            };
            last = Some((*int, id));
            ids.push(id);
        }
        Named {
            plain,
            count: known.len() as u32,
            ids: Cow::Owned(ids),
        }
    }

    fn texts(values: &Values) -> Named<'_> {
        let mut plain = Vec::new();
        for text in &values.texts.all {
            plain.extend((text.len() as u32).to_le_bytes());
            plain.extend(text.as_bytes());
        }
        Named {
            plain,
            count: values.texts.all.len() as u32,
            ids: Cow::Borrowed(&values.ids),
        }
    }
}

/// Writes a page, and returns the offset at which it begins.
fn write(pages: &mut dyn PageWriter, page: Page) -> Result<i64, ParquetError> {
    let length = page.buffer().len();
    let written = pages.write_page(CompressedPage::new(page, length))?;
    Ok(written.offset as i64)
}

fn names_page(named: Named<'_>) -> Page {
    Page::DictionaryPage {
        buf: named.plain.into(),
        num_values: named.count,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    }
}

/// The page of the indices. If all rows are null, there are no indices, and no page of values.
fn ids_page(named: &Named<'_>, all_levels: &[i16], rows: usize) -> Page {
    let mut packed = Vec::new();
    if !all_levels.is_empty() {
        let mut levels = Vec::new();
        pack_runs(all_levels, 1, |level| *level as u32, &mut levels);
        packed.extend((levels.len() as u32).to_le_bytes());
        packed.append(&mut levels);
    }
    if let Some(highest) = named.count.checked_sub(1) {
        let width = (u32::BITS - highest.leading_zeros()).max(1);
        packed.push(width as u8);
        pack_runs(&named.ids, width, |id| *id, &mut packed);
    }
    Page::DataPage {
        buf: packed.into(),
        num_values: rows as u32,
        encoding: match named.count {
            0 => Encoding::PLAIN,
            _ => Encoding::RLE_DICTIONARY,
        },
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    }
}

/// The number of values in a group. A run has at least this many equal values; the values between two runs
/// are packed in groups.
const GROUP: usize = 8;

/// Packs values as runs of eight or more equal values, with groups of eight `width`-bit values between the
/// runs. This is Parquet's RLE/bit-packing hybrid.
pub(crate) fn pack_runs<T: PartialEq>(
    values: &[T],
    width: u32,
    number: impl Fn(&T) -> u32,
    out: &mut Vec<u8>,
) {
    let (mut start, mut at) = (0, 0);
    while at < values.len() {
        let run = 1 + values[at + 1..]
            .iter()
            .take_while(|value| **value == values[at])
            .count();
        // If the values before a run do not fill their last group, the first values of the run fill it.
        let filling = (at - start).next_multiple_of(GROUP) - (at - start);
        if run < GROUP + filling {
            at += run;
            continue;
        }
        pack_groups(&values[start..at + filling], width, &number, out);
        push_varint(((run - filling) as u32) << 1, out);
        let bytes = number(&values[at]).to_le_bytes();
        out.extend(&bytes[..width.div_ceil(8) as usize]);
        at += run;
        start = at;
    }
    pack_groups(&values[start..], width, &number, out);
}

/// Packs values in groups, and pads the last group with zeroes.
fn pack_groups<T>(values: &[T], width: u32, number: impl Fn(&T) -> u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(GROUP);
    push_varint((groups as u32) << 1 | 1, out);
    let end = out.len() + groups * width as usize;
    let (mut bits, mut filled) = (0_u64, 0);
    for value in values {
        bits |= u64::from(number(value)) << filled;
        filled += width;
        while filled >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(bits as u8);
    }
    out.resize(end, 0);
}

fn push_varint(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
