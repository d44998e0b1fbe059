//! Fixtures for tests: the descriptions of four kernels, and naive writers of records and of pages.

use super::format::Format;
use super::page::Layout;

/// Kernels whose descriptions are in `fixtures/`.
pub(crate) const KERNELS: [&str; 4] = [
    include_str!("../../fixtures/linux-3.17-i386.txt"),
    include_str!("../../fixtures/linux-5.11-x86_64.txt"),
    include_str!("../../fixtures/linux-6.18-x86_64.txt"),
    include_str!("../../fixtures/linux-6.12-x86_64.txt"),
];

/// A kernel's description of an event, if it has that event.
pub(crate) fn format(kernel: &str, name: &str) -> Option<Format> {
    let title = format!("name: {name}\n");
    let text = &kernel[kernel.find(&title)? + title.len()..];
    let end = text.find("name: ").unwrap_or(text.len());
    Some(Format::parse(&text[..end]).expect("a format"))
}

/// A kernel's description of its pages.
pub(crate) fn layout(kernel: &str) -> Layout {
    let end = kernel.find("name: ").expect("events");
    Layout::parse(&kernel[..end]).expect("a page")
}

/// Writes a record with these fields, but leaves out the fields that the format does not have.
pub(crate) fn record(format: &Format, fields: &[(&'static str, Vec<u8>)]) -> Vec<u8> {
    let mut record = vec![0xaa; 64];
    record[..2].copy_from_slice(&format.id.to_ne_bytes());
    for (name, bytes) in fields {
        let Ok(field) = format.field(name) else {
            continue;
        };
        let length = field.size.min(bytes.len());
        let place = &mut record[field.offset..][..field.size];
        place.fill(0);
        place[..length].copy_from_slice(&bytes[..length]);
    }
    record
}

/// Writes a page of a 64-bit kernel.
pub(crate) struct PageWriter {
    data: Vec<u8>,
    start_ns: u64,
}

impl PageWriter {
    pub(crate) fn new(start_ns: u64) -> PageWriter {
        PageWriter {
            data: Vec::new(),
            start_ns,
        }
    }

    pub(crate) fn length(&self) -> usize {
        self.data.len()
    }

    pub(crate) fn word(&mut self, word: u32) {
        self.data.extend(word.to_ne_bytes());
    }

    /// Writes an event's first word.
    pub(crate) fn head(&mut self, kind: u32, delta: u64) {
        let delta = u32::try_from(delta).expect("a short time");
        assert!(delta < 1 << 27 && kind < 32);
        self.word(if cfg!(target_endian = "big") {
            (kind << 27) | delta
        } else {
            (delta << 5) | kind
        });
    }

    /// Writes a time that takes two words.
    pub(crate) fn time(&mut self, kind: u32, time: u64) {
        self.head(kind, time & ((1 << 27) - 1));
        self.word(u32::try_from(time >> 27).expect("59 bits"));
    }

    /// Writes an event whose record fills whole words.
    pub(crate) fn event(&mut self, delta: u64, record: &[u8]) {
        let words = u32::try_from(record.len() / 4).expect("a short record");
        if (1..=28).contains(&words) {
            self.head(words, delta);
        } else {
            self.head(0, delta);
            self.word(words * 4 + 4);
        }
        self.data.extend(record);
    }

    /// Writes an event that was discarded.
    pub(crate) fn discarded(&mut self, delta: u64, words: u32) {
        self.head(29, delta);
        self.word(words * 4);
        self.data
            .resize(self.data.len() + words as usize * 4 - 4, 0xdd);
    }

    /// The finished page, as a reader gets it.
    pub(crate) fn page(&self, missed: bool) -> Vec<u8> {
        let flags: u64 = if missed { 3 << 30 } else { 0 };
        let mut page = self.start_ns.to_ne_bytes().to_vec();
        page.extend((self.data.len() as u64 | flags).to_ne_bytes());
        page.extend(&self.data);
        page.resize(4096, 0);
        page
    }
}
