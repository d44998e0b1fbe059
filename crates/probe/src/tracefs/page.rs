//! A page of the kernel's ring buffer, as read from `trace_pipe_raw`.
//!
//! A page begins with the time of its first event and with the number of its bytes. The high bits of that
//! number say whether events before the page were lost. Each event begins with a word, of which 5 bits are
//! the event's type or length, and 27 bits are the time since the previous event. A reader always reaches the
//! end and never leaves the page, even if the bytes are invalid.

use super::format::{Field, FormatError, fields};

/// The layout of a page, which differs between 32-bit and 64-bit kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    timestamp: Field,
    commit: Field,
    data: usize,
    /// The page's size, in bytes.
    pub size: usize,
}

/// A reader's place in a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    at: usize,
    end: usize,
    time_ns: u64,
    /// Whether events were lost between the previous page and this page.
    pub missed: bool,
}

/// An event in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The time of the event, on the clock of the instance.
    pub at_ns: u64,
    /// The event's record, as its format describes it, and up to 3 bytes after the record.
    pub record: &'a [u8],
}

/// The reason that a page cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The page is shorter than a header, or shorter than its header says.
    #[error("{bytes} bytes hold no page")]
    Short {
        /// The number of bytes.
        bytes: usize,
    },
    /// An event is cut off by the end of the page.
    #[error("the event at byte {at} does not end within the page")]
    Event {
        /// The offset of the event.
        at: usize,
    },
}

/// The mask for the byte count, without the flags in the high bits.
const COMMIT: u64 = (1 << 27) - 1;
const MISSED: u64 = 1 << 31;

const WORD: usize = 4;
const DELTA_BITS: u32 = 27;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// How many bits of an absolute time a page stores, namely all but the highest five of 64.
const STAMP_BITS: u32 = 59;

impl Layout {
    /// Parses the text of `events/header_page`.
    pub fn parse(text: &str) -> Result<Layout, FormatError> {
        let fields = fields(text)?;
        let named = |name| {
            let field = fields.iter().find(|field| field.name == name);
            field.cloned().ok_or(FormatError::NoField(name))
        };
        let data = named("data")?;
        let layout = Layout {
            timestamp: named("timestamp")?,
            commit: named("commit")?,
            data: data.offset,
            size: data.offset.saturating_add(data.size),
        };
        let fits = |field: &Field| field.offset < layout.data && matches!(field.size, 4 | 8);
        let is_page = fits(&layout.timestamp) && fits(&layout.commit) && layout.size <= LARGEST;
        is_page.then_some(layout).ok_or(FormatError::NoPage)
    }
}

/// The largest page that is accepted. No kernel has larger pages.
const LARGEST: usize = 1 << 24;

impl Cursor {
    /// The place before the first event of a page.
    pub fn new(layout: &Layout, page: &[u8]) -> Result<Cursor, PageError> {
        let short = PageError::Short { bytes: page.len() };
        let commit = layout.commit.number(page).ok_or(short)?;
        let time_ns = layout.timestamp.number(page).ok_or(short)?;
        let end = layout.data.saturating_add((commit & COMMIT) as usize);
        if end > page.len() {
            return Err(short);
        }
        Ok(Cursor {
            at: layout.data,
            end,
            time_ns,
            missed: commit & MISSED != 0,
        })
    }

    /// The next event of the cursor's page; `None` at the end of the page.
    pub fn next<'a>(&mut self, page: &'a [u8]) -> Result<Option<Event<'a>>, PageError> {
        while self.at < self.end {
            let (kind, delta) = split(self.word(page, 0)?);
            match kind {
                PADDING if delta == 0 => self.at = self.end,
                PADDING => self.pass_discarded(page, delta)?,
                TIME_EXTEND => {
                    let extended = self.long_time(page, delta)?;
                    self.time_ns = self.time_ns.wrapping_add(extended);
                    self.at += 2 * WORD;
                }
                TIME_STAMP => {
                    self.time_ns = absolute(self.long_time(page, delta)?, self.time_ns);
                    self.at += 2 * WORD;
                }
                words => return self.event(page, words, delta).map(Some),
            }
        }
        Ok(None)
    }

    /// An event with a record of `words` words. If `words` is 0, the record's first word is the length of the
    /// record in bytes, including that word.
    fn event<'a>(
        &mut self,
        page: &'a [u8],
        words: u32,
        delta: u64,
    ) -> Result<Event<'a>, PageError> {
        let (skip, length) = match words {
            0 => (2 * WORD, self.length(page)?.checked_sub(WORD)),
            words => (WORD, Some(words as usize * WORD)),
        };
        let length = length.ok_or(self.cut())?;
        let record = self.bytes(page, skip, length)?;
        self.at += skip + length;
        self.time_ns = self.time_ns.wrapping_add(delta);
        Ok(Event {
            at_ns: self.time_ns,
            record,
        })
    }

    /// Skips an event that a filter discarded after the kernel had reserved a place for it. The time of the
    /// next event counts from the discarded event. But the kernel may have set the discarded event's time to
    /// 1, to distinguish the event from the padding at a page's end; that time must then be ignored.
    fn pass_discarded(&mut self, page: &[u8], delta: u64) -> Result<(), PageError> {
        let length = self.length(page)?;
        self.bytes(page, WORD, length)?;
        self.at += WORD + length;
        if delta != 1 {
            self.time_ns = self.time_ns.wrapping_add(delta);
        }
        Ok(())
    }

    fn length(&self, page: &[u8]) -> Result<usize, PageError> {
        self.word(page, WORD).map(|word| word as usize)
    }

    /// A time of more than 27 bits. Its higher bits are in the event's second word.
    fn long_time(&self, page: &[u8], low: u64) -> Result<u64, PageError> {
        let high = self.word(page, WORD)?;
        Ok((u64::from(high) << DELTA_BITS) | low)
    }

    fn word(&self, page: &[u8], skip: usize) -> Result<u32, PageError> {
        let bytes = self.bytes(page, skip, WORD)?;
        let word = bytes.try_into().map_err(|_| self.cut())?;
        Ok(u32::from_ne_bytes(word))
    }

    /// The `length` bytes that begin `skip` bytes after the event's beginning, if they are within the page.
    fn bytes<'a>(&self, page: &'a [u8], skip: usize, length: usize) -> Result<&'a [u8], PageError> {
        let written = page.get(..self.end).unwrap_or_default();
        let bytes = written.get(self.at + skip..);
        bytes
            .and_then(|bytes| bytes.get(..length))
            .ok_or(self.cut())
    }

    fn cut(&self) -> PageError {
        PageError::Event { at: self.at }
    }
}

/// The type (or length in words) and the time in an event's first word. Type and time are bit fields, which
/// the kernel's compiler lays out in the machine's byte order.
fn split(word: u32) -> (u32, u64) {
    let (kind, delta) = if cfg!(target_endian = "big") {
        (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1))
    } else {
        (word & 31, word >> 5)
    };
    (kind, u64::from(delta))
}

/// An absolute time, completed with the highest bits of the previous time. The result is never before the
/// previous time.
fn absolute(stamp: u64, before_ns: u64) -> u64 {
    let high = before_ns & !((1 << STAMP_BITS) - 1);
    let whole = (stamp & ((1 << STAMP_BITS) - 1)) | high;
    if high != 0 && whole < before_ns {
        return whole.wrapping_add(1 << STAMP_BITS);
    }
    whole
}

#[cfg(test)]
mod tests;
