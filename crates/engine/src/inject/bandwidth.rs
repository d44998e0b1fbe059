//! The bandwidth of a disk: one serial server that zios pass after their lanes.

use crate::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct Bandwidth {
    free: Instant,
}

impl Bandwidth {
    /// Books `length` bytes at `rate` bytes per second, and says when the last one has passed.
    /// Called in the order in which zios reach the server.
    pub(crate) fn pass(&mut self, reached: Instant, length: u32, rate: u64) -> Instant {
        self.free = self.free.max(reached) + transfer_time(length, rate);
        self.free
    }
}

/// How long `length` bytes take at `rate` bytes per second, rounded up.
pub(crate) fn transfer_time(length: u32, rate: u64) -> Duration {
    let ns = (u128::from(length) * 1_000_000_000).div_ceil(u128::from(rate));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{Bandwidth, transfer_time};
    use crate::time::{Duration, Instant};

    #[test]
    fn bytes_pass_one_after_the_other() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut server = Bandwidth::default();
        assert_eq!(server.pass(at(10), 4_096, 4_096_000), at(11));
        assert_eq!(server.pass(at(10), 4_096, 4_096_000), at(12));
        assert_eq!(server.pass(at(20), 8_192, 4_096_000), at(22));
    }

    #[test]
    fn a_part_of_a_nanosecond_counts_as_one() {
        assert_eq!(transfer_time(1, 3_000_000_000), Duration::from_nanos(1));
        assert_eq!(transfer_time(0, 1), Duration::ZERO);
        assert_eq!(
            transfer_time(u32::MAX, 1),
            Duration::from_secs(u64::from(u32::MAX))
        );
    }
}
