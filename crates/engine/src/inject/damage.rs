//! What a rule does to the data of a zio.
//!
//! The engine decides which zio is damaged and how, and draws a seed. The driver changes the bytes. The places
//! follow from the seed, so a model knows them, too.

use core::ops::Range;

use super::id::RuleId;
use crate::random::Random;
use crate::zio::{Op, OpSet, Zio};

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The zio is acknowledged, and nothing is stored.
    Drop,
    /// A flush is acknowledged, and makes nothing durable. A write with FUA is stored like one without.
    Lie,
    /// Of the aligned units of this many bytes, only the first or only the last are stored.
    Torn(u32),
    /// One bit is wrong.
    Flip,
    /// The bytes of one aligned unit of this size are zero.
    Zero(u32),
    /// The bytes of one aligned unit of this size are random, and all of them wrong.
    Random(u32),
    /// The bytes come from another place of the disk, or go there.
    Misdirect,
    /// A program's call moves fewer bytes than it was asked to, and tells how many.
    Short,
}

/// The damage of one zio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataFault {
    /// The rule that damages the zio.
    pub rule: RuleId,
    pub damage: Damage,
    /// Decides the place, and the wrong bytes.
    pub seed: u64,
}

impl Damage {
    /// The operations that the damage can hit.
    pub const fn ops(self) -> OpSet {
        let (read, write) = (OpSet::of(Op::Read), OpSet::of(Op::Write));
        match self {
            Damage::Drop => write.union(OpSet::of(Op::Zero)).union(OpSet::of(Op::Trim)),
            Damage::Lie => OpSet::of(Op::Flush).union(OpSet::FUA),
            Damage::Torn(_) => write,
            Damage::Flip
            | Damage::Zero(_)
            | Damage::Random(_)
            | Damage::Misdirect
            | Damage::Short => read.union(write),
        }
    }

    /// Whether the damage can hit this zio. A write of one unit cannot be torn, and a call for one byte cannot be
    /// shortened.
    pub(crate) fn can_hit(self, zio: &Zio) -> bool {
        match self {
            // A zeroing or a trim with FUA is done as ever: its data is not in a cache that could be lost.
            Damage::Lie => matches!(zio.op, Op::Flush | Op::Write),
            Damage::Torn(unit) => units(zio.offset, zio.length, unit).count() > 1,
            Damage::Short => zio.length > 1,
            _ => zio.length > 0,
        }
    }
}

impl DataFault {
    /// Of the bytes of a torn write, those that are stored.
    pub fn stored(&self, offset: u64, length: u32, unit: u32) -> Range<u64> {
        let mut random = Random::new(self.seed);
        let all = units(offset, length, unit);
        let cut = (all.start + 1 + random.below(all.end - all.start - 1)) * u64::from(unit);
        let end = offset + u64::from(length);
        if random.below(2) == 0 {
            offset..cut
        } else {
            cut..end
        }
    }

    /// The unit of a zio that is damaged, as far as it belongs to the zio.
    pub fn spot(&self, offset: u64, length: u32, unit: u32) -> Range<u64> {
        let all = units(offset, length, unit);
        let at = (all.start + Random::new(self.seed).below(all.end - all.start)) * u64::from(unit);
        let end = offset + u64::from(length);
        at.max(offset)..end.min(at + u64::from(unit))
    }

    /// The byte of a zio that has the wrong bit, and that bit.
    pub fn bit(&self, offset: u64, length: u32) -> (u64, u8) {
        let bit = Random::new(self.seed).below(u64::from(length) * 8);
        (offset + bit / 8, 1 << (bit % 8))
    }

    /// The other place of a misdirected zio: a multiple of [`MISDIRECT_UNIT`], on the disk, and apart from the
    /// zio's own place. `None` if the disk has no such place.
    pub fn other_place(&self, offset: u64, length: u32, size: u64) -> Option<u64> {
        let length = u64::from(length);
        let last = size.checked_sub(length)? / MISDIRECT_UNIT;
        // The places below and above the zio that do not touch it.
        let below = offset
            .checked_sub(length)
            .map_or(0, |at| at / MISDIRECT_UNIT + 1);
        let first_above = (offset + length).div_ceil(MISDIRECT_UNIT);
        let above = (last + 1).saturating_sub(first_above);
        let count = below + above;
        if count == 0 {
            return None;
        }
        let at = Random::new(self.seed).below(count);
        let at = if at < below {
            at
        } else {
            at - below + first_above
        };
        Some(at * MISDIRECT_UNIT)
    }
}

/// Misdirected zios go to multiples of this many bytes, as sectors do.
const MISDIRECT_UNIT: u64 = 512;

/// The numbers of the aligned units that a range touches.
fn units(offset: u64, length: u32, unit: u32) -> Range<u64> {
    let unit = u64::from(unit);
    let end = offset.saturating_add(u64::from(length));
    offset / unit..end.div_ceil(unit)
}

#[cfg(test)]
mod tests {
    use super::{Damage, DataFault, MISDIRECT_UNIT, units};
    use crate::inject::RuleId;
    use crate::random::Random;

    /// Each place is one of those that a search finds, and all of them come.
    #[test]
    fn places_are_inside_and_all_come() {
        let mut random = Random::new(3);
        for _ in 0..200 {
            let offset = random.below(6_000);
            let length = 1 + random.below(4_000) as u32;
            let unit = [512, 1_024, 4_096][random.below(3) as usize];
            let end = offset + u64::from(length);
            let size = end + random.below(6_000);
            let (mut spots, mut others) = (0, 0);
            for seed in 0..100 {
                let damage = Damage::Zero(unit);
                let rule = RuleId(1);
                let fault = DataFault { rule, damage, seed };
                let spot = fault.spot(offset, length, unit);
                assert!(offset <= spot.start && spot.start < spot.end && spot.end <= end);
                assert_eq!(
                    units(spot.start, (spot.end - spot.start) as u32, unit).count(),
                    1
                );
                spots |= 1_u64 << (spot.start / u64::from(unit) - offset / u64::from(unit));
                let (at, bit) = fault.bit(offset, length);
                assert!((offset..end).contains(&at) && bit.count_ones() == 1);
                if units(offset, length, unit).count() > 1 {
                    let kept = fault.stored(offset, length, unit);
                    let is_first = kept.start == offset && kept.end < end;
                    let is_last = kept.end == end && kept.start > offset;
                    assert!(kept.start < kept.end && (is_first || is_last), "{kept:?}");
                }
                if let Some(at) = fault.other_place(offset, length, size) {
                    let length = u64::from(length);
                    assert_eq!(at % MISDIRECT_UNIT, 0);
                    assert!(at + length <= size);
                    assert!(at + length <= offset || at >= end, "{at} meets {offset}");
                    others |= 1_u64 << (at / MISDIRECT_UNIT % 64);
                }
            }
            let all = units(offset, length, unit).count();
            assert_eq!(spots.count_ones() as usize, all, "all spots of {all} come");
            let apart = |at: &u64| {
                let end_of_other = at * MISDIRECT_UNIT + u64::from(length);
                end_of_other <= size && (end_of_other <= offset || at * MISDIRECT_UNIT >= end)
            };
            let known = (0..64).filter(apart).count();
            assert!(others.count_ones() as usize <= known && (others > 0) == (known > 0));
        }
    }
}
