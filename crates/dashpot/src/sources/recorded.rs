//! The I/Os of a recording, row group by row group. Those that were in flight when a file was sealed have not
//! finished, and are left out.

use std::path::Path;

use dashpot_observe::{FinishedIo, IoWaits, Predicates, Seen, Span, Wanted};
use dashpot_recording::{Blocks, Event, Query, Recording};

use super::source::Source;

/// A recording that is read from its beginning to its end.
pub(crate) struct RecordedSource {
    blocks: Blocks,
    wanted: Wanted,
    predicates: Predicates,
    /// The devices that are asked for; without names, all.
    names: Vec<String>,
    left: usize,
    /// What a look ahead has read.
    ahead: Option<Vec<FinishedIo>>,
    /// I/Os that the recorder lost, until they are told.
    lost: u64,
    has_ended: bool,
}

/// What a recording has, by its first I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// I/Os of the kernel.
    Kernel,
    /// Zios.
    Zios,
}

impl RecordedSource {
    /// Opens a recording.
    pub(crate) fn open(
        path: &Path,
        wanted: Wanted,
        predicates: &Predicates,
        names: &[String],
    ) -> anyhow::Result<RecordedSource> {
        let recording = Recording::open(path)?;
        let marks = recording.marks()?;
        let lost = marks.iter().filter(|mark| mark.event == Event::Lost);
        let query = Query {
            min_ns: wanted.min_ns,
            ..Query::default()
        };
        Ok(RecordedSource {
            blocks: recording.blocks(query)?,
            wanted,
            predicates: predicates.clone(),
            names: names.to_vec(),
            left: usize::try_from(wanted.count.unwrap_or(u64::MAX)).unwrap_or(usize::MAX),
            ahead: None,
            lost: lost.filter_map(|mark| u64::try_from(mark.n?).ok()).sum(),
            has_ended: false,
        })
    }

    /// What its first I/Os are, and the names of their devices.
    pub(crate) fn look_ahead(&mut self) -> anyhow::Result<(Told, Vec<String>)> {
        let ios = self.read()?;
        let is_kernels = |io: &FinishedIo| matches!(io.waits, IoWaits::Kernel { .. });
        let told = match ios.first().is_some_and(is_kernels) {
            true => Told::Kernel,
            false => Told::Zios,
        };
        let mut names: Vec<String> = ios.iter().map(|io| io.device.to_string()).collect();
        names.sort();
        names.dedup();
        self.ahead = Some(ios);
        Ok((told, names))
    }

    /// The next I/Os that are asked for; none at the end.
    fn read(&mut self) -> anyhow::Result<Vec<FinishedIo>> {
        loop {
            let Some(block) = self.blocks.next() else {
                self.has_ended = true;
                return Ok(Vec::new());
            };
            let recorded = block?.ios().into_iter();
            let finished = recorded.filter(|one| !one.is_in_flight).map(|one| one.io);
            let mut ios: Vec<FinishedIo> = finished.filter(|io| self.takes(io)).collect();
            ios.truncate(self.left);
            self.left -= ios.len();
            self.has_ended = self.left == 0;
            if !ios.is_empty() || self.has_ended {
                return Ok(ios);
            }
        }
    }

    fn takes(&self, io: &FinishedIo) -> bool {
        let is_named = self.names.is_empty() || self.names.iter().any(|name| **name == *io.device);
        is_named && self.wanted.takes(io) && self.predicates.select(io)
    }
}

impl Source for RecordedSource {
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        let ios = match self.ahead.take() {
            Some(ios) => ios,
            None if self.has_ended => return Ok(None),
            None => self.read()?,
        };
        Ok(Some(Seen {
            span: Span {
                is_last: self.has_ended,
                ..Span::default()
            },
            at_ns: ios.last().map_or(0, |io| io.at_ns),
            ios,
            lost: std::mem::take(&mut self.lost),
            ..Seen::default()
        }))
    }
}
