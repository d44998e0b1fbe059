//! A small seeded generator and exact probabilities.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood 2014). Its state has only 64 bits, so each rule can own a
//! generator and draw independently of other rules.

/// A seeded stream of uniform 64-bit integers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of integers for this seed.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next integer of the stream.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// True with the probability `ratio`.
    pub fn draw(&mut self, ratio: Ratio) -> bool {
        self.below(ratio.denominator) < ratio.numerator
    }

    /// A uniform integer in `0..bound`; `bound` is not zero. Uses Lemire's method, which rejects some draws
    /// so that no integer is likelier than another.
    pub fn below(&mut self, bound: u64) -> u64 {
        let reject_under = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= reject_under {
                return (product >> 64) as u64;
            }
        }
    }
}

/// An exact probability: `numerator` ÷ `denominator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

impl Ratio {
    /// The probability `numerator` ÷ `denominator`, or `None` if it is not between 0 and 1.
    pub const fn new(numerator: u64, denominator: u64) -> Option<Ratio> {
        if denominator == 0 || numerator > denominator {
            return None;
        }
        Some(Ratio {
            numerator,
            denominator,
        })
    }

    /// The number of hits among [`Ratio::denominator`] cases.
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// The number of cases.
    pub const fn denominator(self) -> u64 {
        self.denominator
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, Ratio};

    #[test]
    fn the_stream_is_splitmix64() {
        // The reference implementation's first outputs for seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_ratio_is_met_about_as_often_as_it_says() {
        let mut random = Random::new(7);
        let ratio = Ratio::new(1, 100).unwrap();
        let hits = (0..1_000_000).filter(|_| random.draw(ratio)).count();
        assert!((9_600..10_400).contains(&hits), "{hits}");
    }

    #[test]
    fn certainty_and_impossibility_are_exact() {
        let mut random = Random::new(7);
        let (never, always) = (Ratio::new(0, 3).unwrap(), Ratio::new(3, 3).unwrap());
        assert!((0..1_000).all(|_| !random.draw(never) && random.draw(always)));
        assert_eq!(Ratio::new(4, 3), None);
        assert_eq!(Ratio::new(0, 0), None);
    }
}
