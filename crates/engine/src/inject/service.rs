//! How long a lane takes: a constant, or a distribution given by its quantiles.
//!
//! Distributions reach the engine as integer tables. Crate `dashpot-rules` computes these tables with
//! a pinned libm, so that equal seeds give equal latencies on every machine.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::random::Random;
use crate::time::Duration;

/// The time that one zio spends in a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// Always the same time.
    Constant(Duration),
    /// A time drawn from a table.
    Quantiles(Arc<QuantileTable>),
}

impl Service {
    /// The time that the engine assumes when it chooses a lane: the constant, or the distribution's p50.
    pub fn nominal(&self) -> Duration {
        match self {
            Service::Constant(span) => *span,
            Service::Quantiles(table) => table.at(1 << 63),
        }
    }

    /// Draws one service time.
    pub fn sample(&self, random: &mut Random) -> Duration {
        match self {
            Service::Constant(span) => *span,
            Service::Quantiles(table) => table.at(random.next_u64()),
        }
    }
}

/// A distribution of times, given by knots of its quantile function, which is linear between knots.
///
/// A quantile `q` stands for the fraction `q` ÷ 2^64. The table is constant before its first knot and after
/// its last one. Knots may be close together where the distribution needs detail, such as in its tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantileTable {
    knots: Vec<(u64, Duration)>,
}

/// The reason that a list of knots is not a valid table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantileError {
    /// There are no knots.
    Empty,
    /// The knot at this index does not have a larger quantile than the knot before it, or has a shorter time.
    Order(usize),
}

impl fmt::Display for QuantileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuantileError::Empty => f.write_str("a distribution needs at least one quantile"),
            QuantileError::Order(at) => write!(
                f,
                "quantile {at} does not follow the one before it: percentiles must grow, and \
                 latencies must not shrink"
            ),
        }
    }
}

impl QuantileTable {
    /// A table of knots `(q, latency)`, in the order of q.
    pub fn new(knots: Vec<(u64, Duration)>) -> Result<QuantileTable, QuantileError> {
        if knots.is_empty() {
            return Err(QuantileError::Empty);
        }
        for (at, pair) in knots.windows(2).enumerate() {
            if pair[0].0 >= pair[1].0 || pair[0].1 > pair[1].1 {
                return Err(QuantileError::Order(at + 1));
            }
        }
        Ok(QuantileTable { knots })
    }

    /// The latency at the quantile `q` ÷ 2^64, rounded down.
    pub fn at(&self, q: u64) -> Duration {
        let after = self.knots.partition_point(|(knot, _)| *knot <= q);
        let Some(&(low_q, low)) = after.checked_sub(1).and_then(|i| self.knots.get(i)) else {
            return self.knots[0].1;
        };
        let Some(&(high_q, high)) = self.knots.get(after) else {
            return low;
        };
        let rise = u128::from((high - low).as_nanos());
        let share = rise * u128::from(q - low_q) / u128::from(high_q - low_q);
        low + Duration::from_nanos(share as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::{QuantileError, QuantileTable};
    use crate::time::Duration;
    use alloc::vec;

    #[test]
    fn lines_between_knots_and_constants_outside() {
        let ms = Duration::from_millis;
        let table = QuantileTable::new(vec![(100, ms(10)), (200, ms(20)), (201, ms(90))]).unwrap();
        for (q, latency) in [
            (0, 10),
            (100, 10),
            (150, 15),
            (200, 20),
            (201, 90),
            (9_999, 90),
        ] {
            assert_eq!(table.at(q), ms(latency), "q {q}");
        }
    }

    #[test]
    fn knots_out_of_order_are_refused() {
        let ms = Duration::from_millis;
        assert_eq!(QuantileTable::new(vec![]), Err(QuantileError::Empty));
        let falling = QuantileTable::new(vec![(1, ms(2)), (2, ms(1))]);
        assert_eq!(falling, Err(QuantileError::Order(1)));
        let standing = QuantileTable::new(vec![(1, ms(1)), (1, ms(2))]);
        assert_eq!(standing, Err(QuantileError::Order(1)));
    }
}
