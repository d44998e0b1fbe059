//! The I/Os of a workload: reads and writes of one size over a region, with flushes in between.

use dashpot_engine::{Op, Random, Ratio};

use crate::calls::Request;
use crate::scenario::{Calls, Pattern, Target};

/// The source of a workload's I/Os.
#[derive(Debug)]
pub(crate) struct Source {
    target: Target,
    /// The first byte of the region.
    start: u64,
    /// The number of blocks in the region.
    blocks: u64,
    block: u32,
    reads: Ratio,
    pattern: Pattern,
    sync: bool,
    flush_every: u64,
    /// The next block of the sequence, if the pattern is sequential.
    cursor: u64,
    random: Random,
}

impl Source {
    /// Makes a source for a target of `size` bytes. Returns `None` if the calls' region extends beyond the
    /// target or is smaller than a block.
    pub(crate) fn new(calls: &Calls, size: u64, seed: u64) -> Option<Source> {
        let (start, length) = calls.region.unwrap_or((0, size));
        let inside = start.checked_add(length).is_some_and(|end| end <= size);
        let blocks = length.checked_div(u64::from(calls.block))?;
        (inside && blocks > 0).then(|| Source {
            target: calls.target,
            start,
            blocks,
            block: calls.block,
            reads: calls.reads,
            pattern: calls.pattern,
            sync: calls.sync,
            flush_every: calls.flush_every.unwrap_or(u64::MAX),
            cursor: 0,
            random: Random::new(seed),
        })
    }

    /// The next I/O of a thread. `unflushed` counts the thread's writes since its last flush.
    pub(crate) fn next(&mut self, unflushed: &mut u64) -> Request {
        if *unflushed >= self.flush_every {
            *unflushed = 0;
            return Request {
                op: Op::Flush,
                fua: false,
                target: self.target,
                offset: 0,
                length: 0,
            };
        }
        let reads = self.reads.numerator() > 0 && self.random.draw(self.reads);
        if !reads {
            *unflushed += 1;
        }
        Request {
            op: if reads { Op::Read } else { Op::Write },
            fua: self.sync && !reads,
            target: self.target,
            offset: self.start + self.next_block() * u64::from(self.block),
            length: self.block,
        }
    }

    fn next_block(&mut self) -> u64 {
        match self.pattern {
            Pattern::Random => self.random.below(self.blocks),
            Pattern::Sequential => {
                let block = self.cursor;
                self.cursor = if block + 1 == self.blocks {
                    0
                } else {
                    block + 1
                };
                block
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Source;
    use crate::scenario::{Calls, Pattern, Target};
    use dashpot_engine::{Op, Ratio};

    fn calls() -> Calls {
        Calls {
            target: Target::Disk(0),
            region: Some((4096, 3 * 512 + 100)),
            block: 512,
            reads: Ratio::new(0, 1).unwrap(),
            pattern: Pattern::Sequential,
            sync: true,
            flush_every: Some(2),
        }
    }

    #[test]
    fn a_sequence_goes_round_the_region_and_flushes_between_writes() {
        let mut source = Source::new(&calls(), 1 << 20, 1).unwrap();
        let mut unflushed = 0;
        let requests: Vec<(Op, u64, bool)> = (0..7)
            .map(|_| source.next(&mut unflushed))
            .map(|request| (request.op, request.offset, request.fua))
            .collect();
        let flush = (Op::Flush, 0, false);
        let write = |offset| (Op::Write, offset, true);
        let expected = [
            write(4096),
            write(4608),
            flush,
            write(5120),
            write(4096),
            flush,
            write(4608),
        ];
        assert_eq!(requests, expected);
    }

    #[test]
    fn a_mix_stays_in_its_region_and_keeps_its_ratio() {
        let mix = Calls {
            reads: Ratio::new(1, 4).unwrap(),
            pattern: Pattern::Random,
            flush_every: None,
            ..calls()
        };
        let mut source = Source::new(&mix, 1 << 20, 1).unwrap();
        let requests: Vec<_> = (0..100_000).map(|_| source.next(&mut 0)).collect();
        let reads = requests.iter().filter(|r| r.op == Op::Read).count();
        assert!((24_000..26_000).contains(&reads), "{reads}");
        for block in [4096, 4608, 5120] {
            let hits = requests.iter().filter(|r| r.offset == block).count();
            assert!((32_000..35_000).contains(&hits), "{block}: {hits}");
        }
    }

    #[test]
    fn a_region_without_a_block_in_the_target_is_refused() {
        for (region, size) in [((0, 511), 4096), ((4000, 512), 4096), ((u64::MAX, 512), 1)] {
            let region = Some(region);
            let calls = Calls { region, ..calls() };
            assert!(Source::new(&calls, size, 1).is_none());
        }
        let block = Calls {
            block: 0,
            ..calls()
        };
        assert!(Source::new(&block, 4096, 1).is_none());
    }
}
