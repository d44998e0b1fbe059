//! Sums from which averages and standard deviations are computed as DTrace computes them: with truncated
//! integers.

/// The sum of some values, and the sum of their squares. The caller must know how many values there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// The sum of the values. The sum has 128 bits, because the latencies of 100,000 zios in flight would
    /// fill 64 bits of nanoseconds in two days.
    pub sum: u128,
    /// The sum of the squares of the values. It saturates instead of overflowing.
    pub sum_of_squares: u128,
}

impl Moments {
    /// The average of `count` values, truncated; `None` if there are no values.
    pub fn mean(&self, count: u64) -> Option<u64> {
        let mean = self.sum.checked_div(u128::from(count))?;
        Some(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The standard deviation of `count` values. Like DTrace, it subtracts the square of the truncated mean
    /// from the truncated mean of the squares, and truncates the square root of the difference.
    pub fn stddev(&self, count: u64) -> Option<u64> {
        let mean = u128::from(self.mean(count)?);
        let variance = (self.sum_of_squares / u128::from(count)).saturating_sub(mean * mean);
        Some(u64::try_from(variance.isqrt()).unwrap_or(u64::MAX))
    }

    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        let value = u128::from(value);
        self.sum += value;
        self.sum_of_squares = self.sum_of_squares.saturating_add(value * value);
    }

    /// The moments of `count` values, each `by` larger.
    pub(super) fn shifted(&self, by: u64, count: u64) -> Moments {
        let (by, count) = (u128::from(by), u128::from(count));
        let square = count.saturating_mul(by * by);
        let middle = self.sum.saturating_mul(2 * by);
        Moments {
            sum: self.sum + count * by,
            sum_of_squares: self
                .sum_of_squares
                .saturating_add(middle)
                .saturating_add(square),
        }
    }

    pub(super) fn merge(&mut self, other: &Moments) {
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
    }

    pub(super) fn since(&self, earlier: &Moments) -> Moments {
        Moments {
            sum: self.sum.saturating_sub(earlier.sum),
            sum_of_squares: self.sum_of_squares.saturating_sub(earlier.sum_of_squares),
        }
    }
}
