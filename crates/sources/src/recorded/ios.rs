//! The I/Os of a recording, row group by row group. I/Os that were in flight when a file was sealed have not
//! finished, and are left out.

use dashpot_observe::{FinishedIo, Predicates, Seen, Span, Wanted};
use dashpot_recording::{Blocks, Query};

use super::period::Recorded;
use super::threads::tell_threads;
use crate::source::Source;

/// Reads the I/Os of a recording from the beginning of a period to its end.
pub(super) struct RecordedIos<'a> {
    recorded: &'a Recorded,
    blocks: Blocks,
    wanted: Wanted,
    predicates: Predicates,
    left: usize,
    /// How many I/Os the recorder lost; 0 once the report has received this number.
    lost: u64,
    /// How many sync calls were on unknown devices; 0 once the report has received this number.
    unplaced: Option<u64>,
    has_ended: bool,
}

impl<'a> RecordedIos<'a> {
    pub(super) fn begin(
        recorded: &'a Recorded,
        wanted: Wanted,
        predicates: &Predicates,
    ) -> anyhow::Result<RecordedIos<'a>> {
        let query = Query {
            latency_ns: predicates.latencies(),
            ..recorded.period.query()
        };
        Ok(RecordedIos {
            recorded,
            blocks: recorded.blocks(query),
            wanted,
            predicates: predicates.clone(),
            left: usize::try_from(wanted.count.unwrap_or(u64::MAX)).unwrap_or(usize::MAX),
            lost: recorded.lost(recorded.period),
            unplaced: recorded.unplaced(recorded.period),
            has_ended: false,
        })
    }

    /// The next I/Os that the question asks for; none at the end.
    fn read(&mut self) -> anyhow::Result<Vec<FinishedIo>> {
        loop {
            let Some(block) = self.blocks.next_block()? else {
                self.has_ended = true;
                return Ok(Vec::new());
            };
            tell_threads(block);
            let mut ios = Vec::new();
            let takes = |io: &FinishedIo| {
                let is_asked = self.wanted.takes(io) && self.predicates.select(io);
                is_asked && self.recorded.is_named(io)
            };
            block.each(|_, one| {
                if !one.is_in_flight && takes(&one.io) {
                    ios.push(one.io.clone());
                }
            });
            ios.truncate(self.left);
            self.left -= ios.len();
            self.has_ended = self.left == 0;
            if !ios.is_empty() || self.has_ended {
                return Ok(ios);
            }
        }
    }
}

impl Source for RecordedIos<'_> {
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        if self.has_ended {
            return Ok(None);
        }
        let ios = self.read()?;
        Ok(Some(Seen {
            span: Span {
                is_last: self.has_ended,
                ..Span::default()
            },
            at_ns: ios.last().map_or(0, |io| io.at_ns),
            ios,
            lost: std::mem::take(&mut self.lost),
            unplaced: self.unplaced.as_mut().map(std::mem::take),
            ..Seen::default()
        }))
    }
}
