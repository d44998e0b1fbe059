//! The pages of a column, checked before the decoder sees them.
//!
//! The decoder of the Parquet crate trusts a page's own count of values, and allocates memory for that many
//! values. This module therefore refuses a page that claims to have more values than its row group has rows,
//! or more than its bytes can hold.

use std::io::Cursor;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use crate::table::Cell;

/// The bytes of a column, and their offset in the file.
pub(crate) struct Chunk {
    pub(crate) start: u64,
    pub(crate) bytes: Bytes,
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl Chunk {
    fn from(&self, start: u64) -> Result<Bytes> {
        let at = start.checked_sub(self.start).map(usize::try_from);
        match at {
            Some(Ok(at)) if at <= self.bytes.len() => Ok(self.bytes.slice(at..)),
            _ => Err(ParquetError::EOF(format!("no byte {start}"))),
        }
    }
}

impl ChunkReader for Chunk {
    type T = Cursor<Bytes>;

    fn get_read(&self, start: u64) -> Result<Cursor<Bytes>> {
        self.from(start).map(Cursor::new)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        if length <= bytes.len() {
            Ok(bytes.slice(..length))
        } else {
            Err(ParquetError::EOF(format!("no {length} bytes at {start}")))
        }
    }
}

/// The pages of a column of a row group.
pub(crate) struct CheckedPages<P> {
    pub(crate) pages: P,
    pub(crate) cell: Cell,
    /// How many rows of the row group no page has covered yet.
    pub(crate) rows_left: usize,
}

impl<P: PageReader> CheckedPages<P> {
    fn check(&mut self, page: &Page) -> Result<()> {
        let values = page.num_values() as usize;
        let encoding = page.encoding();
        let is_known = match page {
            Page::DictionaryPage { .. } => {
                let least_bytes = match self.cell {
                    Cell::Int => 8,
                    Cell::Text => 4,
                };
                if values > page.buffer().len() / least_bytes {
                    return Err(refusal(format!(
                        "a dictionary of {values} values in too few bytes"
                    )));
                }
                matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY)
            }
            Page::DataPage { .. } => {
                let Some(left) = self.rows_left.checked_sub(values) else {
                    return Err(refusal(format!(
                        "a page of {values} values in too few rows"
                    )));
                };
                self.rows_left = left;
                matches!(
                    encoding,
                    Encoding::PLAIN
                        | Encoding::PLAIN_DICTIONARY
                        | Encoding::RLE_DICTIONARY
                        | Encoding::DELTA_BINARY_PACKED
                )
            }
            Page::DataPageV2 { .. } => false,
        };
        if is_known {
            Ok(())
        } else {
            Err(refusal(format!(
                "a page of an unexpected kind ({encoding})"
            )))
        }
    }
}

fn refusal(what: String) -> ParquetError {
    ParquetError::General(what)
}

impl<P: PageReader> Iterator for CheckedPages<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for CheckedPages<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}
