//! Reads the columns with few distinct values that `named.rs` packs. This module compares every count in a
//! page with the number of values that the page can hold.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};

use crate::block::{Loaded, Scratch};
use crate::error::Flaw;
use crate::table::{Cell, Column};

/// The rows that a caller asks for in a column.
#[derive(Clone, Copy)]
pub(crate) struct WantedRows<'a> {
    /// The number of rows.
    pub(crate) rows: usize,
    /// The rows that are needed, in ascending order; `None` for all rows.
    pub(crate) some: Option<&'a [usize]>,
}

/// Reads the pages of a column.
pub(crate) fn unpack(
    pages: &mut impl PageReader,
    asked: WantedRows<'_>,
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
    let rows = asked.rows;
    let is_packed = count == 0 || page.encoding() == Encoding::RLE_DICTIONARY;
    let is_whole = page.num_values() as usize == rows && pages.get_next_page()?.is_none();
    if !is_packed || !is_whole {
        return Err(Flaw::damaged(format!(
            "a column has no page of {rows} rows"
        )));
    }
    let mut bytes = Reader(page.buffer());
    let values = if column.is_optional {
        bytes.levels(rows, loaded, scratch)
    } else {
        Some(rows)
    };
    let values = values.ok_or_else(|| Flaw::damaged("a column's nulls do not add up"))?;
    let some = asked.some.filter(|_| values == rows);
    loaded.is_part = some.is_some();
    let ids = match column.cell {
        Cell::Int => &mut scratch.ids,
        Cell::Text => &mut loaded.ids,
    };
    match some {
        Some(some) => bytes.ids_of(some, count, rows, ids),
        None => bytes.ids_below(count, values, ids),
    }
    .ok_or_else(|| Flaw::damaged("a column's values do not add up"))?;
    match column.cell {
        Cell::Int => {
            loaded.distinct = count as usize + usize::from(values < rows);
            numbers(&ints(&plain, count)?, scratch, some, rows, loaded);
        }
        Cell::Text => loaded.texts = texts(&plain, count)?,
    }
    loaded.spread();
    Ok(())
}

/// Gives each needed row its number: the row's id in `scratch` is the number's index in `names`.
fn numbers(
    names: &[i64],
    scratch: &Scratch,
    some: Option<&[usize]>,
    rows: usize,
    loaded: &mut Loaded,
) {
    let ids = &scratch.ids;
    match some {
        Some(some) => {
            loaded.ints.resize(rows, 0);
            for row in some {
                loaded.ints[*row] = names[ids[*row] as usize];
            }
        }
        None => loaded.ints.extend(ids.iter().map(|id| names[*id as usize])),
    }
}

/// The distinct values of a column of numbers.
fn ints(plain: &[u8], count: u32) -> Result<Vec<i64>, Flaw> {
    let (whole, rest) = plain.as_chunks::<8>();
    if whole.len() == count as usize && rest.is_empty() {
        Ok(whole
            .iter()
            .map(|bytes| i64::from_le_bytes(*bytes))
            .collect())
    } else {
        Err(Flaw::damaged(
            "the numbers of a column do not match the header",
        ))
    }
}

/// The distinct values of a column of strings.
fn texts(plain: &[u8], count: u32) -> Result<Vec<Arc<str>>, Flaw> {
    let mut bytes = Reader(plain);
    let texts = (0..count).map(|_| {
        let length = u32::from_le_bytes(*bytes.take(4)?.first_chunk()?);
        let text = str::from_utf8(bytes.take(length as usize)?).ok()?;
        Some(text.into())
    });
    let texts: Option<Vec<Arc<str>>> = texts.collect();
    texts.ok_or_else(|| Flaw::damaged("the strings of a column do not match the header"))
}

/// A page's bytes that have not been read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Notes which rows have a value. Returns the number of rows with a value.
    fn levels(&mut self, rows: usize, loaded: &mut Loaded, scratch: &mut Scratch) -> Option<usize> {
        let length = u32::from_le_bytes(*self.take(4)?.first_chunk()?);
        let mut bytes = Reader(self.take(length as usize)?);
        // Nearly always, either all rows have a value or none does.
        if let Some(level) = bytes.one_run(rows) {
            return Some(if level == 0 { 0 } else { rows });
        }
        bytes.runs(1, rows, &mut scratch.levels)?;
        let levels = scratch.levels.iter();
        Some(loaded.set_levels(levels.map(|level| *level == 1)))
    }

    /// If the next `count` bits are one run of equal bits, returns that bit.
    fn one_run(&self, count: usize) -> Option<u8> {
        let mut bytes = Reader(self.0);
        let head = bytes.varint()?;
        let is_it = head & 1 == 0 && (head >> 1) as usize >= count;
        let level = *bytes.take(1)?.first()?;
        (is_it && level <= 1).then_some(level)
    }

    /// Reads the indices of `count` values. Returns `None` unless all of them are below `bound`.
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
        // The compiler makes this loop compare several ids at a time; a search or `Iterator::max` would
        // compare one at a time.
        let is_any_above = ids.iter().fold(false, |any, id| any | (*id >= bound));
        (!is_any_above).then_some(())
    }

    /// Decodes the indices of `some` rows into `ids`, which has a place for each row. The places of the other
    /// rows are not changed. Returns `None` if an index is not below `bound`.
    fn ids_of(
        &mut self,
        some: &[usize],
        bound: u32,
        rows: usize,
        ids: &mut Vec<u32>,
    ) -> Option<()> {
        ids.resize(rows, 0);
        let width = usize::from(*self.take(1)?.first()?);
        if width > 32 {
            return None;
        }
        let (mut begun, mut some) = (0, some);
        while begun < rows {
            let head = self.varint()?;
            let length = (head >> 1) as usize;
            let is_run = head & 1 == 0;
            let values = if is_run {
                length
            } else {
                length.checked_mul(8)?
            };
            let bytes = self.take(if is_run {
                width.div_ceil(8)
            } else {
                length.checked_mul(width)?
            })?;
            let own = some.partition_point(|row| row - begun < values);
            let (now, later) = some.split_at(own);
            for row in now {
                let first_bit = if is_run { 0 } else { (row - begun) * width };
                let id = number_at(bytes, first_bit, width);
                ids[*row] = id;
                if id >= bound {
                    return None;
                }
            }
            if length == 0 {
                return None;
            }
            (begun, some) = (begun.checked_add(values)?, later);
        }
        Some(())
    }

    /// Reads `width`-bit numbers, which come in runs and in groups of eight.
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

/// The `width`-bit number that starts at bit `first_bit`.
fn number_at(bytes: &[u8], first_bit: usize, width: usize) -> u32 {
    let (byte, bit) = (first_bit / 8, first_bit % 8);
    let there = &bytes[byte.min(bytes.len())..];
    let eight = match there.first_chunk::<8>() {
        Some(eight) => *eight,
        None => {
            let mut eight = [0; 8];
            eight[..there.len()].copy_from_slice(there);
            eight
        }
    };
    let mask = (1_u64 << width) - 1;
    ((u64::from_le_bytes(eight) >> bit) & mask) as u32
}

/// Appends packed numbers, eight at a time, because eight `width`-bit numbers fill exactly `width` bytes.
fn spread(bytes: &[u8], width: usize, count: usize, numbers: &mut Vec<u32>) {
    let start = numbers.len();
    numbers.resize(start + count.next_multiple_of(8), 0);
    let (groups, _) = numbers[start..].as_chunks_mut::<8>();
    // Most columns have few distinct values, so the widths of their indices are small. With a constant width,
    // the loop is several times as fast.
    match width {
        0 => {}
        1 => eights::<1>(bytes, groups),
        2 => eights::<2>(bytes, groups),
        3 => eights::<3>(bytes, groups),
        4 => eights::<4>(bytes, groups),
        5 => eights::<5>(bytes, groups),
        6 => eights::<6>(bytes, groups),
        7 => eights::<7>(bytes, groups),
        8 => eights::<8>(bytes, groups),
        _ => {
            for (eight, packed) in groups.iter_mut().zip(bytes.chunks_exact(width)) {
                for (at, number) in eight.iter_mut().enumerate() {
                    *number = number_at(packed, at * width, width);
                }
            }
        }
    }
    numbers.truncate(start + count);
}

/// Unpacks groups of eight numbers. A number has at most eight bits.
fn eights<const WIDTH: usize>(bytes: &[u8], groups: &mut [[u32; 8]]) {
    let (packed, _) = bytes.as_chunks::<WIDTH>();
    for (eight, packed) in groups.iter_mut().zip(packed) {
        let mut bytes = [0; 8];
        bytes[..WIDTH].copy_from_slice(packed);
        let bits = u64::from_le_bytes(bytes);
        *eight =
            std::array::from_fn(|at| (bits >> (at * WIDTH)) as u32 & (u32::MAX >> (32 - WIDTH)));
    }
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
        fn some_rows_have_the_indices_that_all_have(
            width in 1..=20_usize,
            runs in prop::collection::vec((any::<u32>(), 1..40_usize), 1..30),
            some in prop::collection::vec(any::<prop::sample::Index>(), 1..9),
        ) {
            let mask = u32::MAX >> (32 - width);
            let ids: Vec<u32> = runs.iter().flat_map(|(id, run)| vec![id & mask; *run]).collect();
            let mut packed = vec![width as u8];
            pack_runs(&ids, width as u32, |id| *id, &mut packed);
            let places: std::collections::BTreeSet<usize> =
                some.iter().map(|index| index.index(ids.len())).collect();
            let places: Vec<usize> = places.into_iter().collect();
            let of = |bound| {
                let mut read = Vec::new();
                let done = Reader(&packed).ids_of(&places, bound, ids.len(), &mut read);
                done.map(|()| places.iter().map(|place| read[*place]).collect::<Vec<u32>>())
            };
            let own: Vec<u32> = places.iter().map(|place| ids[*place]).collect();
            let greatest = own.iter().max().copied().unwrap_or_default();
            prop_assert_eq!(of(greatest), None);
            prop_assert_eq!(of(greatest + 1), Some(own));
        }

        // The fuzz target asks for all rows, so only this test gives random bytes to `ids_of`.
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
            let some: Vec<usize> = (0..count).step_by(3).collect();
            if Reader(&bytes).ids_of(&some, 9, count, &mut numbers).is_some() {
                prop_assert_eq!(numbers.len(), count);
                prop_assert!(some.iter().all(|row| numbers[*row] < 9));
            }
        }
    }
}
