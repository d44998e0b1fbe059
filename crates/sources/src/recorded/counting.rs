//! Counts the I/Os of an interval, one block of the recording at a time. For a question that needs only
//! names, such as those of devices and processes, this module counts all I/Os with the same names at once.
//! For a question about latencies, it reads the latency of each I/O. For any other question, or if it must
//! skip the I/Os of some seconds, it reads each I/O whole.

use dashpot_observe::{Alike, FinishedIo, Needs, Question, Tally};
use dashpot_recording::Selected;

use super::period::Recorded;
use super::threads::tell_threads;

/// The counts of an interval so far.
pub(super) struct Counting<'a> {
    recorded: &'a Recorded,
    question: &'a Question,
    has_counted: bool,
    pub(super) tally: Tally,
    /// The I/Os that a recorder found in flight when it sealed a file.
    pub(super) in_flight: Vec<FinishedIo>,
}

/// The facts that I/Os of a block with the same names have in common.
struct Shape {
    is_named: bool,
    alike: Alike,
}

impl<'a> Counting<'a> {
    /// Begins an interval. If `has_counted` is true, the single I/Os of seconds for which the recording has
    /// counts are skipped.
    pub(super) fn begin(
        recorded: &'a Recorded,
        question: &'a Question,
        has_counted: bool,
    ) -> Counting<'a> {
        Counting {
            recorded,
            question,
            has_counted,
            tally: Tally::of(question),
            in_flight: Vec::new(),
        }
    }

    /// Counts the I/Os of a block.
    pub(super) fn add(&mut self, block: &mut Selected) {
        tell_threads(block);
        let predicates = &self.question.predicates;
        let in_flight = block.in_flight().map(|one| one.io);
        let own = in_flight.filter(|io| self.recorded.is_named(io) && predicates.select(io));
        self.in_flight.extend(own);
        match self.question.needs() {
            Needs::Names if !self.has_counted => self.add_counts(block),
            Needs::Latencies if !self.has_counted => self.add_latencies(block),
            _ => self.add_each(block),
        }
    }

    fn add_counts(&mut self, block: &mut Selected) {
        block.counts(|first, count, bytes| {
            if !first.is_in_flight && self.recorded.is_named(&first.io) {
                self.tally.add_counts(&first.io, count, bytes);
            }
        });
    }

    fn add_latencies(&mut self, block: &mut Selected) {
        let mut shapes: Vec<Shape> = Vec::new();
        block.times(|shape, first, bytes, latency_ns| {
            let shape = self.shape(&mut shapes, shape, &first.io);
            if !first.is_in_flight && shape.is_named {
                self.tally
                    .add_latency(&first.io, &mut shape.alike, bytes, latency_ns);
            }
        });
    }

    fn add_each(&mut self, block: &mut Selected) {
        let mut shapes: Vec<Shape> = Vec::new();
        block.each(|shape, one| {
            let shape = self.shape(&mut shapes, shape, &one.io);
            let is_counted = || self.has_counted && self.recorded.counted.has(one.io.at_ns);
            if !one.is_in_flight && shape.is_named && !is_counted() {
                self.tally.add_alike(&one.io, &mut shape.alike);
            }
        });
    }

    /// The shape with this number. If the shape is new, `io` is its first I/O.
    fn shape<'s>(&self, shapes: &'s mut Vec<Shape>, number: u32, io: &FinishedIo) -> &'s mut Shape {
        let number = number as usize;
        while shapes.len() <= number {
            shapes.push(Shape {
                is_named: self.recorded.is_named(io),
                alike: Alike::default(),
            });
        }
        &mut shapes[number]
    }
}
