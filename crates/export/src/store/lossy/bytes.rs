//! A set of bytes of a run.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

/// A set of bytes: ranges in order, with bytes between them that are not in the set.
#[derive(Clone, Debug, Default)]
pub(super) struct Bytes(SmallVec<[Range<usize>; 2]>);

impl Bytes {
    /// How many bytes of a range are not in the set.
    pub(super) fn free(&self, range: &Range<usize>) -> u64 {
        self.gaps(range).iter().map(|gap| gap.len() as u64).sum()
    }

    pub(super) fn claim(&mut self, range: &Range<usize>) {
        let touches = |one: &Range<usize>| one.start <= range.end && range.start <= one.end;
        let mut joined = range.clone();
        for one in self.0.iter().filter(|one| touches(one)) {
            joined = joined.start.min(one.start)..joined.end.max(one.end);
        }
        self.0.retain(|one| !touches(one));
        let at = self.0.partition_point(|one| one.end < joined.start);
        self.0.insert(at, joined);
    }

    /// The parts of a range that are not in the set.
    pub(super) fn gaps(&self, range: &Range<usize>) -> SmallVec<[Range<usize>; 1]> {
        let (mut gaps, mut from) = (smallvec![], range.start);
        for one in self.0.iter().filter(|one| one.end > range.start) {
            if one.start >= range.end {
                break;
            }
            if from < one.start {
                gaps.push(from..one.start);
            }
            from = one.end;
        }
        if from < range.end {
            gaps.push(from..range.end);
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;
    use dashpot_engine::Random;

    #[test]
    fn a_set_of_bytes_is_like_an_array_of_flags() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let (mut bytes, mut flags) = (Bytes::default(), [false; 40]);
            for _ in 0..12 {
                let from = random.below(39) as usize;
                let range = from..from + 1 + random.below(40 - from as u64) as usize;
                let gaps = bytes.gaps(&range);
                let free: Vec<usize> = range.clone().filter(|at| !flags[*at]).collect();
                assert_eq!(bytes.free(&range), free.len() as u64);
                assert!(gaps.windows(2).all(|two| two[0].end < two[1].start));
                assert!(gaps.into_iter().flatten().eq(free));
                bytes.claim(&range);
                flags[range].fill(true);
            }
        }
    }
}
