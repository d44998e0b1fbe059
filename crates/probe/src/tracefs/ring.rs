//! Reads the buffers of all CPUs as one stream, in order of time.
//!
//! Each CPU's buffer is in order, but an I/O may be issued on one CPU and completed on another. The reader
//! therefore always takes the earliest record of all CPUs. It reads the clock before it reads the buffers.
//! Records that are later than this time wait for the next reading, because an earlier record may meanwhile
//! have arrived in a buffer that the reader has already read. The kernel acts on an event only after it has
//! put the event into a buffer, so the reader never sees a consequence before its cause.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::decoder::Decoder;
use super::instance::refused;
use super::page::{Cursor, Layout, PageError};
use crate::error::TraceError;
use crate::record::Entry;

/// The buffers of all CPUs.
#[derive(Debug)]
pub(crate) struct Ring {
    cpus: Vec<Cpu>,
    reader: Reader,
    /// CPUs with a record, the earliest record first.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
}

/// The decoders and the layout for every CPU's pages.
#[derive(Debug)]
struct Reader {
    layout: Layout,
    decoders: Vec<(u16, Decoder)>,
}

/// The buffer of one CPU, and the reader's place in one of its pages.
#[derive(Debug)]
struct Cpu {
    path: PathBuf,
    pages: File,
    statistics: File,
    page: Vec<u8>,
    length: usize,
    cursor: Cursor,
    head: Option<Entry>,
    /// Whether events were lost since the last event in `head`, and the stream does not say so yet.
    missed: bool,
    lost: u64,
}

/// An item of the stream of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// An event.
    Entry(&'a Entry),
    /// Events of a CPU were lost after the CPU's last event in the stream and before this time. Other CPUs'
    /// events from that period may still follow.
    Lost(u64),
}

impl Ring {
    /// Opens the buffers in these directories, one for each CPU. Each decoder comes with a number, and reads
    /// the records that begin with this number.
    pub(crate) fn open(
        cpus: &[PathBuf],
        layout: Layout,
        decoders: Vec<(u16, Decoder)>,
    ) -> Result<Ring, TraceError> {
        let cpus = cpus.iter().map(|path| Cpu::open(path, layout.size));
        let cpus = cpus.collect::<Result<Vec<_>, _>>()?;
        Ok(Ring {
            heads: BinaryHeap::with_capacity(cpus.len()),
            cpus,
            reader: Reader { layout, decoders },
        })
    }

    /// Passes on every event up to a time. The caller must read this time from the clock before the call.
    pub(crate) fn drain(
        &mut self,
        until_ns: u64,
        mut take: impl FnMut(Item<'_>),
    ) -> Result<(), TraceError> {
        self.heads.clear();
        for (number, cpu) in self.cpus.iter_mut().enumerate() {
            if cpu.head.is_none() {
                cpu.advance(&self.reader, &mut take)?;
            }
            self.heads
                .extend(cpu.head_ns().map(|at_ns| Reverse((at_ns, number))));
        }
        while let Some(mut first) = self.heads.peek_mut() {
            let Reverse((at_ns, number)) = *first;
            if at_ns > until_ns {
                break;
            }
            let cpu = &mut self.cpus[number];
            if let Some(head) = &cpu.head {
                take(Item::Entry(head));
            }
            cpu.advance(&self.reader, &mut take)?;
            match cpu.head_ns() {
                Some(at_ns) => *first = Reverse((at_ns, number)),
                None => drop(PeekMut::pop(first)),
            }
        }
        Ok(())
    }

    /// How many events the kernel had no room for, since the last call of this method.
    pub(crate) fn lost(&mut self) -> Result<u64, TraceError> {
        self.cpus.iter_mut().map(Cpu::lost).sum()
    }
}

impl Cpu {
    fn open(path: &Path, page_size: usize) -> Result<Cpu, TraceError> {
        let open = |name: &str| {
            let path = path.join(name);
            OpenOptions::new()
                .read(true)
                .custom_flags(OFlags::NONBLOCK.bits() as i32)
                .open(&path)
                .map_err(|error| refused(&path, error))
        };
        Ok(Cpu {
            path: path.to_owned(),
            pages: open("trace_pipe_raw")?,
            statistics: open("stats")?,
            page: vec![0; page_size],
            length: 0,
            cursor: Cursor::default(),
            head: None,
            missed: false,
            lost: 0,
        })
    }

    /// Goes to the next record, if there is one yet, and reports losses on the way.
    fn advance(
        &mut self,
        reader: &Reader,
        take: &mut impl FnMut(Item<'_>),
    ) -> Result<(), TraceError> {
        self.head = self.next(reader)?;
        if let Some(at_ns) = self.head_ns().filter(|_| self.missed) {
            take(Item::Lost(at_ns));
            self.missed = false;
        }
        Ok(())
    }

    fn head_ns(&self) -> Option<u64> {
        self.head.as_ref().map(Entry::at_ns)
    }

    fn next(&mut self, reader: &Reader) -> Result<Option<Entry>, TraceError> {
        loop {
            let page = &self.page[..self.length];
            while let Some(event) = self.cursor.next(page).map_err(misread)? {
                let record = reader.read(event.at_ns, event.record);
                if record.is_some() {
                    return Ok(record);
                }
            }
            if !self.turn(&reader.layout)? {
                return Ok(None);
            }
        }
    }

    /// Goes to the next page. Returns false if there is none yet.
    fn turn(&mut self, layout: &Layout) -> Result<bool, TraceError> {
        self.cursor = Cursor::default();
        self.length = match self.pages.read(&mut self.page) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(refused(&self.path.join("trace_pipe_raw"), error)),
        };
        if self.length == 0 {
            return Ok(false);
        }
        self.cursor = Cursor::new(layout, &self.page[..self.length]).map_err(misread)?;
        self.missed |= self.cursor.missed;
        Ok(true)
    }

    /// The number of lost events, by the kernel's own counts. A page shows where events were lost, but not
    /// always how many.
    fn lost(&mut self) -> Result<u64, TraceError> {
        let mut text = [0; STATISTICS];
        let length = self.statistics.read_at(&mut text, 0);
        let length = length.map_err(|error| refused(&self.path.join("stats"), error))?;
        let before = self.lost;
        self.lost = count_lost(&text[..length]);
        Ok(self.lost.saturating_sub(before))
    }
}

/// The size of the buffer for the kernel's statistics of a CPU, in bytes. The whole text fits in it.
const STATISTICS: usize = 1024;

impl Reader {
    /// Reads a record; `None` if the record belongs to another event.
    fn read(&self, at_ns: u64, record: &[u8]) -> Option<Entry> {
        // On every kernel, a record begins with the number that identifies its event.
        let id = u16::from_ne_bytes(*record.first_chunk()?);
        let (_, decoder) = self.decoders.iter().find(|(number, _)| *number == id)?;
        decoder.read(at_ns, record)
    }
}

/// How many events of a CPU the kernel overwrote, or had no room for.
fn count_lost(statistics: &[u8]) -> u64 {
    statistics
        .split(|&byte| byte == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok()?.split_once(": "))
        .filter(|(name, _)| matches!(*name, "overrun" | "commit overrun" | "dropped events"))
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

fn misread(error: PageError) -> TraceError {
    TraceError::Format {
        what: "ring buffer".to_owned(),
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
