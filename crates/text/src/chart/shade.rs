//! The shade of a cell of a heat map, by the number of I/Os in the cell.
//!
//! The shade grows with the logarithm of the count, so that readers can distinguish one I/O from none, and a
//! thousand from a million. A linear shade would hide the few slow I/Os that a reader looks for.

/// Maps counts to shades.
pub struct Shades {
    most: u64,
    steps: usize,
}

impl Shades {
    /// Makes `steps` shades, the last of which is for the highest count, `most`. If `most` is less than the
    /// number of shades, the last shade is for that number of I/Os instead.
    pub fn new(most: u64, steps: usize) -> Shades {
        Shades {
            most: most.max(steps as u64),
            steps,
        }
    }

    /// The count of the last shade.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// The shade of a count, from 0 for one I/O to the last shade for the highest count; `None` for no
    /// I/O.
    pub fn of(&self, count: u64) -> Option<usize> {
        let last = self.steps - 1;
        let part = libm::log(count.max(1) as f64) / libm::log(self.most.max(2) as f64);
        let step = libm::round(part * last as f64) as usize;
        (count > 0).then_some(step.min(last))
    }
}

#[cfg(test)]
mod tests {
    use super::Shades;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_is_seen_and_more_is_never_less(most in 1..u64::MAX, steps in 2..20_usize, counts: [u64; 2]) {
            let shades = Shades::new(most, steps);
            let [a, b] = counts.map(|count| count % most + 1);
            prop_assert!(shades.of(a.min(b)) <= shades.of(a.max(b)));
            prop_assert_eq!(shades.of(0), None);
            prop_assert_eq!(shades.of(1), Some(0));
            prop_assert!(shades.of(most) < Some(steps));
        }
    }

    #[test]
    fn the_most_has_the_last_shade_if_it_is_many() {
        assert_eq!(Shades::new(1_000_000, 9).of(1_000_000), Some(8));
        assert_eq!(Shades::new(1_000_000, 9).of(1_000), Some(4));
        assert_eq!(Shades::new(2, 9).of(2), Some(3));
    }
}
