//! The other half of `named.rs`: reads columns with few distinct values. Every count in a page is compared with what
//! the page can hold.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};

use crate::block::{Loaded, Scratch};
use crate::error::Flaw;
use crate::table::{Cell, Column};

/// Reads the pages of a column with this many rows.
pub(crate) fn unpack(
    pages: &mut impl PageReader,
    rows: usize,
    column: &Column,
    loaded: &mut Loaded,
    scratch: &mut Scratch,
) -> Result<(), Flaw> {
    let mut next = pages.get_next_page()?;
    let (plain, count) = match next {
        Some(Page::DictionaryPage {
            buf, num_values, ..
        }) => {
            next = pages.get_next_page()?;
            (buf, num_values)
        }
        _ => (Bytes::new(), 0),
    };
    let Some(page @ Page::DataPage { .. }) = next else {
        return Err(Flaw::damaged("a column has no page"));
    };
    let is_packed = count == 0 || page.encoding() == Encoding::RLE_DICTIONARY;
    let is_whole = page.num_values() as usize == rows && pages.get_next_page()?.is_none();
    if !is_packed || !is_whole {
        return Err(Flaw::damaged(format!(
            "a column has no page of {rows} rows"
        )));
    }
    let mut bytes = Reader(page.buffer());
    let values = match column.is_optional {
        true => bytes.levels(rows, &mut scratch.levels).map(|()| {
            let levels = scratch.levels.iter();
            loaded.set_levels(levels.map(|level| *level == 1))
        }),
        false => Some(rows),
    };
    let values = values.ok_or_else(|| Flaw::damaged("a column's nulls do not add up"))?;
    let ids = match column.cell {
        Cell::Int => &mut scratch.ids,
        Cell::Text => &mut loaded.ids,
    };
    bytes
        .ids_below(count, values, ids)
        .ok_or_else(|| Flaw::damaged("a column's values do not add up"))?;
    match column.cell {
        Cell::Int => {
            let names = ints(&plain, count)?;
            loaded.ints.extend(ids.iter().map(|id| names[*id as usize]));
        }
        Cell::Text => loaded.texts = texts(&plain, count)?,
    }
    loaded.spread();
    Ok(())
}

/// The distinct values of a column of numbers.
fn ints(plain: &[u8], count: u32) -> Result<Vec<i64>, Flaw> {
    let (whole, rest) = plain.as_chunks::<8>();
    match whole.len() == count as usize && rest.is_empty() {
        true => Ok(whole
            .iter()
            .map(|bytes| i64::from_le_bytes(*bytes))
            .collect()),
        false => Err(Flaw::damaged("a column has other numbers than it says")),
    }
}

/// The distinct values of a column of texts.
fn texts(plain: &[u8], count: u32) -> Result<Vec<Arc<str>>, Flaw> {
    let mut bytes = Reader(plain);
    let texts = (0..count).map(|_| {
        let length = u32::from_le_bytes(*bytes.take(4)?.first_chunk()?);
        let text = str::from_utf8(bytes.take(length as usize)?).ok()?;
        Some(text.into())
    });
    let texts: Option<Vec<Arc<str>>> = texts.collect();
    texts.ok_or_else(|| Flaw::damaged("a column has other texts than it says"))
}

/// The bytes of a page that are left.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// For each row, 1 for a value or 0 for null.
    fn levels(&mut self, rows: usize, levels: &mut Vec<u32>) -> Option<()> {
        let length = u32::from_le_bytes(*self.take(4)?.first_chunk()?);
        Reader(self.take(length as usize)?).runs(1, rows, levels)
    }

    /// The indices of this many values, all of them below a bound.
    fn ids_below(&mut self, bound: u32, count: usize, ids: &mut Vec<u32>) -> Option<()> {
        ids.clear();
        if bound == 0 && count == 0 {
            return Some(());
        }
        let width = *self.take(1)?.first()?;
        if width > 32 {
            return None;
        }
        self.runs(width.into(), count, ids)?;
        // The greatest one is found many at a time, unlike the first that is too great.
        let greatest = ids.iter().max();
        greatest.is_none_or(|id| *id < bound).then_some(())
    }

    /// Numbers of `width` bits, in runs and in groups of eight.
    fn runs(&mut self, width: usize, count: usize, numbers: &mut Vec<u32>) -> Option<()> {
        numbers.clear();
        while numbers.len() < count {
            let left = count - numbers.len();
            let head = self.varint()?;
            let length = (head >> 1) as usize;
            if head & 1 == 0 {
                let mut number = [0; 4];
                let bytes = self.take(width.div_ceil(8))?;
                number[..bytes.len()].copy_from_slice(bytes);
                numbers.resize(numbers.len() + length.min(left), u32::from_le_bytes(number));
            } else {
                let bytes = self.take(length.checked_mul(width)?)?;
                spread(bytes, width, left.min(length * 8), numbers);
            }
            if length == 0 {
                return None;
            }
        }
        Some(())
    }

    fn varint(&mut self) -> Option<u32> {
        let mut value = 0;
        for shift in (0..32).step_by(7) {
            let byte = *self.take(1)?.first()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

/// Appends packed numbers, eight at a time: eight numbers of `width` bits are `width` bytes.
fn spread(bytes: &[u8], width: usize, count: usize, numbers: &mut Vec<u32>) {
    let end = numbers.len() + count;
    if width == 0 {
        numbers.resize(end, 0);
        return;
    }
    let mask = u32::MAX >> (32 - width);
    for group in bytes.chunks(width) {
        // Most columns have few names.
        if width <= 8 {
            let mut eight = [0; 8];
            eight[..group.len()].copy_from_slice(group);
            let bits = u64::from_le_bytes(eight);
            let eight: [u32; 8] = std::array::from_fn(|at| (bits >> (at * width)) as u32 & mask);
            numbers.extend_from_slice(&eight);
        } else {
            let number = |at: usize| {
                let (byte, bit) = (at * width / 8, at * width % 8);
                let mut eight = [0; 8];
                let there = &group[byte.min(group.len())..group.len().min(byte + 8)];
                eight[..there.len()].copy_from_slice(there);
                (u64::from_le_bytes(eight) >> bit) as u32 & mask
            };
            numbers.extend((0..8).map(number));
        }
    }
    numbers.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::pack_runs;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_of_any_width_are_read_back(
            width in 1..=32_usize,
            runs in prop::collection::vec((any::<u32>(), 1..40_usize), 0..30),
        ) {
            let mask = u32::MAX >> (32 - width);
            let numbers: Vec<u32> =
                runs.iter().flat_map(|(number, run)| vec![number & mask; *run]).collect();
            let mut packed = Vec::new();
            pack_runs(&numbers, width as u32, |number| *number, &mut packed);
            let mut bytes = Reader(&packed);
            let mut read = vec![7];
            prop_assert_eq!(bytes.runs(width, numbers.len(), &mut read), Some(()));
            prop_assert_eq!(read, numbers);
            prop_assert!(bytes.0.is_empty());
        }

        #[test]
        fn random_bytes_are_refused_or_give_as_many_numbers_as_were_asked_for(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            width in 0..=32_usize,
            count in 0..200_usize,
        ) {
            let mut numbers = Vec::new();
            if Reader(&bytes).runs(width, count, &mut numbers).is_some() {
                prop_assert_eq!(numbers.len(), count);
            }
        }
    }
}
