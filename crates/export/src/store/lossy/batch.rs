//! Batches of work that a lossy store asks of the medium below it. Adjacent parts become one write.

use std::ops::Range;
use std::sync::Arc;

use dashpot_engine::{Errno, Outcome};

use super::super::medium::Medium;

/// Work for the medium: reads first, then writes, then a sync.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The ranges whose bytes the cache needs, because the writes replace them.
    before: Vec<Range<u64>>,
    writes: Vec<MediumWrite>,
    pub(super) sync: bool,
    /// How many bytes the batch reads and writes.
    pub(super) moves: u64,
}

/// The result of a batch.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) outcome: Outcome,
    /// The bytes that the writes have replaced, one range after the other. `None` if they could not be read;
    /// then nothing was written.
    pub(crate) before: Option<Vec<u8>>,
}

/// A write to the medium: adjacent bytes.
#[derive(Debug)]
struct MediumWrite {
    at: Range<u64>,
    /// The bytes. Empty for zeroes.
    parts: Vec<(Arc<[u8]>, Range<usize>)>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.writes.is_empty() && !self.sync
    }

    /// How many bytes the batch writes.
    pub(super) fn writes(&self) -> u64 {
        self.writes
            .iter()
            .map(|write| write.at.end - write.at.start)
            .sum()
    }

    /// Reads these bytes before the writes.
    pub(super) fn read_before(&mut self, at: Range<u64>) {
        self.moves += at.end - at.start;
        match self.before.last_mut().filter(|last| last.end == at.start) {
            Some(last) => last.end = at.end,
            None => self.before.push(at),
        }
    }

    /// Writes a part of these bytes, or zeroes. Later writes of the batch come later on the medium, too.
    pub(super) fn write(&mut self, at: Range<u64>, bytes: Option<(&Arc<[u8]>, Range<usize>)>) {
        self.moves += at.end - at.start;
        let follows = |write: &&mut MediumWrite| {
            write.at.end == at.start
                && write.parts.is_empty() == bytes.is_none()
                && (bytes.is_none() || at.end - write.at.start <= WRITE_MAX)
        };
        let Some(write) = self.writes.last_mut().filter(follows) else {
            let parts = bytes.map(|(data, part)| (Arc::clone(data), part));
            let parts = parts.into_iter().collect();
            return self.writes.push(MediumWrite { at, parts });
        };
        write.at.end = at.end;
        let Some((data, part)) = bytes else {
            return;
        };
        match write.parts.last_mut() {
            Some((last, range)) if Arc::ptr_eq(last, data) && range.end == part.start => {
                range.end = part.end;
            }
            _ => write.parts.push((Arc::clone(data), part)),
        }
    }

    pub(crate) fn run(&self, medium: &mut impl Medium) -> Settled {
        let mut before = Vec::new();
        for range in &self.before {
            let start = before.len();
            before.resize(start + (range.end - range.start) as usize, 0);
            if let Err(errno) = medium.read(range.start, &mut before[start..]) {
                return Settled::failed(errno);
            }
        }
        let done = self
            .writes
            .iter()
            .try_for_each(|write| write.carry_out(medium));
        let sync = |()| if self.sync { medium.flush() } else { Ok(()) };
        Settled {
            outcome: done.and_then(sync),
            before: Some(before),
        }
    }
}

impl Settled {
    /// The result of a batch that a worker thread has done. `before` is empty if it could not be read.
    pub(crate) fn new(outcome: Outcome, before: Vec<u8>) -> Settled {
        let is_read = outcome.is_ok() || !before.is_empty();
        Settled {
            outcome,
            before: is_read.then_some(before),
        }
    }

    /// The result of a batch that has written nothing.
    fn failed(errno: Errno) -> Settled {
        Settled {
            outcome: Err(errno),
            before: None,
        }
    }

    /// The result of an empty batch.
    pub(super) fn nothing() -> Settled {
        Settled {
            outcome: Ok(()),
            before: Some(Vec::new()),
        }
    }
}

impl MediumWrite {
    fn carry_out(&self, medium: &mut impl Medium) -> Outcome {
        match &self.parts[..] {
            [] => medium.zero(self.at.start, self.at.end - self.at.start),
            parts if parts.len() > 1 && medium.waits() => {
                let slices = parts.iter().map(|(data, part)| &data[part.clone()]);
                medium.write(self.at.start, &slices.collect::<Vec<_>>().concat())
            }
            parts => parts
                .iter()
                .try_fold(self.at.start, |at, (data, part)| {
                    let done = medium.write(at, &data[part.clone()]);
                    done.map(|()| at + part.len() as u64)
                })
                .map(drop),
        }
    }
}

/// The longest write of bytes.
const WRITE_MAX: u64 = 1 << 20;
